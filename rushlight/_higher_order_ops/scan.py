"""A loop over slices that carries values along."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight._dims import wrapped_dim
from rushlight._higher_order_ops.map import slices_of, stacked
from rushlight.utils import _pytree

__all__ = ["scan"]


def scan(
    combine_fn: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    xs: Any,
    *,
    dim: int = 0,
    reverse: bool = False,
) -> tuple[Any, Any]:
    """Returns the last value that a function carries from slice to slice, and its results, stacked.

    Args:
        combine_fn: takes the value carried and a slice; returns the next value and a result.
        init: the first value: a tensor, or tuples, lists and dicts of them.
        xs: tensors in the same way, with as many slices.
        dim: the dim of the slices.
        reverse: whether to go from the last slice to the first; results are in the order of xs.

    Raises:
        RuntimeError: if xs has no slices, or the value that is carried changes its structure.

    Example:
        >>> from rushlight._higher_order_ops import scan
        >>> scan(lambda total, x: (total + x, total * x), torch.zeros(1), torch.arange(1.0, 4.0))
        (tensor([6.]), tensor([[0.],
                [2.],
                [9.]]))
    """
    leaves = _pytree.tree_leaves(xs)
    if not leaves:
        return init, []
    parts = slices_of(xs, wrapped_dim(dim, leaves[0].dim()))
    structure = _pytree.tree_structure(init)
    value, results = init, []
    for part in reversed(parts) if reverse else parts:
        value, result = combine_fn(value, part)
        if _pytree.tree_structure(value) != structure:
            raise RuntimeError(
                f"scan: combine_fn carries {_pytree.tree_structure(value)} on, but init is "
                f"{structure}. They must be of one structure."
            )
        results.append(result)
    return value, stacked(results[::-1] if reverse else results)
