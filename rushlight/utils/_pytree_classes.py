"""Classes that join the containers of _pytree at one call: data classes, and constants.

A part of _pytree, which has these names too.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

from rushlight.utils._pytree import GetAttrKey, register_pytree_node

__all__ = ["register_constant", "register_dataclass"]


def register_dataclass(
    cls: type[Any],
    *,
    field_names: list[str] | None = None,
    drop_field_names: list[str] | None = None,
    serialized_type_name: str | None = None,
) -> None:
    """Makes a class a container whose items are its fields; a field that is None is no item.

    Args:
        cls: a data class, or one whose __init__ takes the fields by name.
        field_names: the fields; those that the __init__ of a data class takes if None.
        drop_field_names: fields that are left out, so that they must have defaults.
        serialized_type_name: what treespec_dumps calls the class; without it, it refuses.

    Raises:
        ValueError: if the names are not the fields, or the class is a container already.

    Example:
        >>> import dataclasses
        >>> from rushlight.utils._pytree import register_dataclass, tree_map
        >>> @dataclasses.dataclass
        ... class Point:
        ...     x: int
        ...     y: int
        >>> register_dataclass(Point)
        >>> tree_map(lambda n: -n, Point(1, 2))
        Point(x=-1, y=-2)
    """
    names = _fields(cls, field_names, drop_field_names or [])

    def flatten_with_keys(data: Any) -> tuple[list[tuple[GetAttrKey, Any]], list[list[str]]]:
        values = {name: getattr(data, name) for name in names}
        held = [name for name in names if values[name] is not None]
        items = [(GetAttrKey(name), values[name]) for name in held]
        return items, [held, [name for name in names if values[name] is None]]

    def flatten(data: Any) -> tuple[list[Any], list[list[str]]]:
        items, context = flatten_with_keys(data)
        return [value for _, value in items], context

    def unflatten(values: Iterable[Any], context: list[list[str]]) -> Any:
        held, empty = context
        return cls(**dict(zip(held, values, strict=True)), **dict.fromkeys(empty))

    register_pytree_node(
        cls,
        flatten,
        unflatten,
        serialized_type_name=serialized_type_name,
        flatten_with_keys_fn=flatten_with_keys,
    )


def _fields(cls: type[Any], given: list[str] | None, dropped: list[str]) -> list[str]:
    if not dataclasses.is_dataclass(cls):
        if given is None:
            raise ValueError(
                f"register_dataclass: {cls} is no data class. Name its fields by field_names."
            )
        return [name for name in given if name not in dropped]
    fields = [field.name for field in dataclasses.fields(cls) if field.init]
    names = fields if given is None else given
    if given is not None and sorted({*given, *dropped}) != sorted(fields):
        raise ValueError(
            f"register_dataclass: field_names {given} and drop_field_names {dropped} are not the "
            f"fields of {cls}, {fields}. Together they must be."
        )
    return [name for name in names if name not in dropped]


def register_constant(cls: type[Any]) -> None:
    """Makes a class a container without items: its objects belong to the spec, not to the leaves.

    Args:
        cls: a class whose objects can be compared and hashed.

    Raises:
        TypeError: if they cannot.
        ValueError: if the class is a container already.

    Example:
        >>> from rushlight.utils._pytree import register_constant, tree_leaves
        >>> class Version(tuple):
        ...     pass
        >>> register_constant(Version)
        >>> tree_leaves([1, Version((2, 0))])
        [1]
    """
    if cls.__eq__ is object.__eq__ or cls.__hash__ in (None, object.__hash__):
        raise TypeError(
            f"register_constant: {cls} needs __eq__ and __hash__ of its own, by which specs are "
            "compared."
        )
    register_pytree_node(
        cls,
        lambda constant: ([], constant),
        lambda _, constant: constant,
        flatten_with_keys_fn=lambda constant: ([], constant),
    )
