"""A function of the slices of tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight.utils import _pytree

__all__ = ["map"]


def slices_of(xs: Any, dim: int = 0) -> list[Any]:
    """The slices of all tensors of xs along a dim, each in the structure of xs."""
    leaves, structure = _pytree.tree_flatten(xs)
    shapes = [tuple(x.shape) for x in leaves if isinstance(x, Tensor)]
    if len(shapes) < len(leaves):
        raise RuntimeError(f"expected xs to have only tensors, but got {leaves}.")
    if len({shape[dim] for shape in shapes if len(shape) > dim} or {0}) > 1:
        raise RuntimeError(f"expected tensors that are equally long along dim {dim}, got {shapes}.")
    if not shapes or not all(len(shape) > dim and shape[dim] for shape in shapes):
        raise RuntimeError(f"expected tensors with elements along dim {dim}, got shapes {shapes}.")
    parts = zip(*(leaf.unbind(dim) for leaf in leaves), strict=True)
    return [_pytree.tree_unflatten(list(part), structure) for part in parts]


def stacked(results: list[Any]) -> Any:
    """Results of one structure as one, with a first dim for them."""
    return _pytree.tree_map(lambda *parts: rl.stack(parts), *results)


def map(f: Callable[..., Any], xs: Any, *args: Any) -> Any:
    """Returns what a function makes of each slice along the first dim, stacked.

    Args:
        f: takes a slice, and args; returns a tensor, or tuples, lists and dicts of them.
        xs: a tensor, or tuples, lists and dicts of tensors that are equally long.
        *args: what is the same for all slices.

    Raises:
        RuntimeError: if xs has something else than tensors, or has no slices.

    Example:
        >>> from rushlight._higher_order_ops import map
        >>> map(lambda x, y: x.sum() * y, torch.ones(2, 3), 5)
        tensor([15., 15.])
    """
    return stacked([f(part, *args) for part in slices_of(xs)])
