"""A loop as a function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight.utils import _pytree

__all__ = ["while_loop"]


def while_loop(
    cond_fn: Callable[..., Any], body_fn: Callable[..., Any], carried_inputs: Any
) -> tuple[Any, ...]:
    """Returns values after a function has changed them for as long as a condition holds.

    Args:
        cond_fn: takes the values, and returns a bool or a tensor with one element.
        body_fn: takes the values, and returns as many.
        carried_inputs: the values at the beginning.

    Raises:
        RuntimeError: if body_fn returns another structure.

    Example:
        >>> torch.while_loop(lambda n, x: n < 3, lambda n, x: (n + 1, x * 2), (0, torch.ones(2)))
        (3, tensor([8., 8.]))
    """
    values = tuple(carried_inputs)
    structure = _pytree.tree_structure(values)
    while cond_fn(*values):
        made = body_fn(*values)
        values = tuple(made) if isinstance(made, (tuple, list)) else (made,)
        if _pytree.tree_structure(values) != structure:
            raise RuntimeError(
                f"while_loop: body_fn returned {len(values)} values that are not like the "
                f"{len(structure.children_specs)} that it takes. They must be of one structure."
            )
    return values
