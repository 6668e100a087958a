"""Sums and products that go on, with any associative function of two in their place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight.utils import _pytree

__all__ = ["associative_scan"]


def associative_scan(
    combine_fn: Callable[[Any, Any], Any],
    xs: Any,
    dim: int,
    reverse: bool = False,
    combine_mode: str = "pointwise",
) -> Any:
    """Returns at each place along a dim what all values up to there combine to.

    The n values are combined in log2(n) rounds, each one call for all of them: in the round k each
    value takes in the one that is 2^k places before it (Hillis and Steele, Data parallel
    algorithms, 1986).

    Args:
        combine_fn: associative; takes two values like xs, of any length, and returns one.
        xs: a tensor, or tuples, lists and dicts of tensors that are equally long along dim.
        dim: that dim.
        reverse: whether to go from the end to the beginning.
        combine_mode: "pointwise" or "generic", which are the same here.

    Raises:
        ValueError: for another combine_mode, or if xs has no tensors, or of different lengths.

    Example:
        >>> from rushlight._higher_order_ops.associative_scan import associative_scan
        >>> associative_scan(torch.mul, torch.arange(1.0, 6.0), 0)
        tensor([  1.,   2.,   6.,  24., 120.])
    """
    if combine_mode not in ("pointwise", "generic"):
        raise ValueError(
            "Combine_mode must either 'pointwise' or 'generic', but got " + repr(combine_mode)
        )
    leaves, structure = _pytree.tree_flatten(xs)
    lengths = {leaf.shape[dim] for leaf in leaves}
    if len(lengths) != 1:
        raise ValueError(
            f"associative_scan: tensors are {sorted(lengths)} long along dim {dim}. Expected at "
            "least one, and all of one length."
        )

    def combined(first: list[Tensor], second: list[Tensor]) -> list[Tensor]:
        trees = (_pytree.tree_unflatten(side, structure) for side in (first, second))
        return _pytree.tree_leaves(combine_fn(*trees))

    (length,) = lengths
    if reverse:
        leaves = [leaf.flip(dim) for leaf in leaves]
    step = 1
    while step < length:
        before = [leaf.narrow(dim, 0, length - step) for leaf in leaves]
        here = [leaf.narrow(dim, step, length - step) for leaf in leaves]
        starts = [leaf.narrow(dim, 0, step) for leaf in leaves]
        made = combined(before, here)
        leaves = [rl.cat(pair, dim) for pair in zip(starts, made, strict=True)]
        step *= 2
    if reverse:
        leaves = [leaf.flip(dim) for leaf in leaves]
    return _pytree.tree_unflatten(leaves, structure)
