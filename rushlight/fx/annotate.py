"""Types of values in the middle of a program."""

from __future__ import annotations

from typing import TypeVar

from rushlight.fx.proxy import Proxy

__all__ = ["annotate"]

T = TypeVar("T")


def annotate(val: T, type: object) -> T:
    """Returns the value; while a program is traced, its node gets the type, which code shows.

    Raises:
        RuntimeError: if the node has a type already.

    Example:
        >>> from rushlight.fx.annotate import annotate
        >>> program = torch.fx.symbolic_trace(lambda x: annotate(x * 2, float) + 1)
        >>> print(program.code.strip().splitlines()[1].strip())
        mul : float = x * 2;  x = None
    """
    if isinstance(val, Proxy):
        if val.node.type is not None:
            raise RuntimeError(
                f"annotate: {val.node} has the type {val.node.type} already, and cannot get "
                f"{type}. Give the type of a parameter in the function's signature alone."
            )
        val.node.type = type
    return val
