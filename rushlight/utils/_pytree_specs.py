"""Specs of trees from their parts, and as texts.

The JSON form is PyTorch's: [1, {type, context, children_spec}]. Types are written by the names that
they were registered with, so a text makes no others.
"""

from __future__ import annotations

import builtins
import collections
import json
import pprint
from collections import namedtuple
from collections.abc import Iterable, Mapping
from typing import Any

from rushlight.utils._pytree import (
    SUPPORTED_SERIALIZED_TYPES,
    LeafSpec,
    TreeSpec,
    Written,
    tree_unflatten,
)

__all__ = [
    "treespec_dict",
    "treespec_dumps",
    "treespec_leaf",
    "treespec_loads",
    "treespec_pprint",
    "treespec_tuple",
]

_PROTOCOL = 1


def treespec_leaf() -> TreeSpec:
    """Returns the spec of a tree that is one leaf."""
    return LeafSpec()


def treespec_tuple(iterable: Iterable[TreeSpec] = (), /) -> TreeSpec:
    """Returns the spec of a tuple from those of its items.

    Example:
        >>> from rushlight.utils._pytree import tree_structure, treespec_leaf, treespec_tuple
        >>> treespec_tuple([treespec_leaf()]) == tree_structure((1,))
        True
    """
    return TreeSpec(tuple, None, _specs(iterable))


def treespec_dict(
    mapping: Mapping[Any, TreeSpec] | Iterable[tuple[Any, TreeSpec]] = (),
    /,
    **kwargs: TreeSpec,
) -> TreeSpec:
    """Returns the spec of a dict from those of its items."""
    items = dict(mapping, **kwargs)
    return TreeSpec(dict, list(items), _specs(items.values()))


def _specs(iterable: Iterable[TreeSpec]) -> list[TreeSpec]:
    specs = list(iterable)
    for spec in specs:
        if not isinstance(spec, TreeSpec):
            raise ValueError(f"expected specs of trees, but got {spec!r}.")
    return specs


class _Star:
    def __repr__(self) -> str:
        return "*"


def treespec_pprint(treespec: TreeSpec) -> str:
    """Returns a spec as Python writes the tree, with a star for each leaf.

    Example:
        >>> from rushlight.utils._pytree import tree_structure, treespec_pprint
        >>> treespec_pprint(tree_structure({"a": [1, 2]}))
        "{'a': [*, *]}"
    """
    return pprint.pformat(tree_unflatten([_Star()] * treespec.num_leaves, treespec))


def treespec_dumps(treespec: TreeSpec, protocol: int | None = None) -> str:
    """Returns a spec as text.

    Args:
        treespec: what tree_flatten returns.
        protocol: 1, the only one.

    Raises:
        NotImplementedError: for a class that was registered without serialized_type_name.
        TypeError: if it is no spec, or what a class needs beside its items is nothing that JSON can
            tell.
        ValueError: for another protocol.

    Example:
        >>> from rushlight.utils._pytree import tree_structure, treespec_dumps, treespec_loads
        >>> spec = tree_structure({"a": 1, "b": (2, 3)})
        >>> treespec_loads(treespec_dumps(spec)) == spec
        True
    """
    if not isinstance(treespec, TreeSpec):
        raise TypeError(f"treespec_dumps: expected a spec of a tree, but got {treespec!r}.")
    _check(_PROTOCOL if protocol is None else protocol)
    return json.dumps((_PROTOCOL, _described(treespec)))


def treespec_loads(serialized: str) -> TreeSpec:
    """Returns the spec of a text that treespec_dumps has written, here or in PyTorch.

    Raises:
        NotImplementedError: for a name that no class was registered with.
        ValueError: if it is no such text.
    """
    try:
        protocol, content = json.loads(serialized)
        _check(protocol)
        return _built(content)
    except (TypeError, LookupError, AttributeError, RecursionError) as error:
        raise ValueError(f"treespec_loads: the text is no spec: {error!r}.") from None


def _check(protocol: object) -> None:
    if protocol != _PROTOCOL:
        raise ValueError(f"Unknown protocol {protocol}. Available protocols: [{_PROTOCOL}]")


def _written(cls: Any) -> Written:
    found = SUPPORTED_SERIALIZED_TYPES.get(cls)
    if found is None or found.name is None:
        raise NotImplementedError(
            f"treespec_dumps: No registered serialization name for {cls} found. Register it with "
            "serialized_type_name; named tuples by _register_namedtuple."
        )
    return found


def _described(spec: TreeSpec) -> dict[str, Any]:
    if spec.is_leaf():
        return {"type": None, "context": None, "children_spec": []}
    written = _written(spec.type)
    try:
        context = (written.dump or json.dumps)(spec.context)
    except TypeError as error:
        raise TypeError(
            f"treespec_dumps: Unable to serialize context of {spec.type}: {error}. Register it "
            "with to_dumpable_context."
        ) from None
    children = [_described(child) for child in spec.children_specs]
    return {"type": written.name, "context": context, "children_spec": children}


def _built(content: Any) -> TreeSpec:
    name, context = content["type"], content["context"]
    if name is None:
        return LeafSpec()
    cls = _class_of(name)
    context = (SUPPORTED_SERIALIZED_TYPES[cls].load or json.loads)(context)
    return TreeSpec(cls, context, [_built(child) for child in content["children_spec"]])


def _class_of(name: str) -> Any:
    for cls, written in SUPPORTED_SERIALIZED_TYPES.items():
        if written.name is not None and written.name == name:
            return cls
    raise NotImplementedError(
        f"treespec_loads: Deserializing {name} in pytree is not registered. Register its class "
        "first."
    )


def _dump_factory(context: Any) -> dict[str, Any]:
    factory, keys = context
    module, name = factory.__module__, factory.__qualname__
    return {
        "default_factory_module": module,
        "default_factory_name": name,
        "dict_context": keys,
    }


def _load_factory(content: Any) -> list[Any]:
    homes = {"builtins": builtins, "collections": collections}
    module, name = content["default_factory_module"], content["default_factory_name"]
    factory = getattr(homes.get(module), name, None)
    if not isinstance(factory, type):
        raise NotImplementedError(
            f"treespec_loads: a defaultdict of {module}.{name} is not made from a text. Classes "
            "of builtins and collections are."
        )
    return [factory, content["dict_context"]]


for _cls, _name in (
    (tuple, "builtins.tuple"),
    (list, "builtins.list"),
    (dict, "builtins.dict"),
    (collections.OrderedDict, "collections.OrderedDict"),
    (collections.deque, "collections.deque"),
):
    SUPPORTED_SERIALIZED_TYPES[_cls] = Written(_name, None, None)
SUPPORTED_SERIALIZED_TYPES[namedtuple] = Written(
    "collections.namedtuple", lambda cls: _written(cls).name, _class_of
)
SUPPORTED_SERIALIZED_TYPES[collections.defaultdict] = Written(
    "collections.defaultdict", _dump_factory, _load_factory
)
