"""Data classes as arguments and results of modules that are exported."""

from __future__ import annotations

import dataclasses
from typing import Any

from rushlight.utils import _pytree


def register_dataclass(cls: type[Any], *, serialized_type_name: str | None = None) -> None:
    """Makes a data class a container, whose fields may be inputs and results of a program.

    Args:
        cls: the class; its objects are built of the fields that its __init__ takes.
        serialized_type_name: the name of the class where the structure of a program is written.

    Raises:
        AssertionError: if it is no data class.
        ValueError: if it is a container already.

    Example:
        >>> import dataclasses
        >>> @dataclasses.dataclass
        ... class Point:
        ...     x: torch.Tensor
        ...     y: torch.Tensor
        >>> torch.export.register_dataclass(Point)
        >>> len(torch.utils._pytree.tree_leaves(Point(torch.ones(2), torch.zeros(2))))
        2
    """
    if not (isinstance(cls, type) and dataclasses.is_dataclass(cls)):
        raise AssertionError(
            f"register_dataclass: Only dataclasses can be registered with this function: {cls}"
        )
    _pytree.register_dataclass(cls, serialized_type_name=serialized_type_name)
