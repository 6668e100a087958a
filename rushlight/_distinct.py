"""The different elements of a tensor, or its different slices: unique and unique_consecutive."""

from __future__ import annotations

import math

from rushlight import _C, Tensor
from rushlight._overridable import overridable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


@overridable
def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """Returns the different elements, in order; with dim, the different slices along it.

    Args:
        input: tensor of any shape.
        sorted: accepted for PyTorch's sake; the result is always in order.
        return_inverse: also return which of them each element of input is.
        return_counts: also return how often each occurs.

    Example:
        >>> torch.unique(torch.tensor([3, 1, 3]), return_counts=True)
        (tensor([1, 3]), tensor([1, 2]))
    """
    if dim is None:
        values, inverse, counts = _C._unique(input, return_inverse)
    else:
        values, inverse, counts = _unique_slices(input, dim)
    return _asked(values, inverse if return_inverse else None, counts if return_counts else None)


def _unique_slices(input: Tensor, dim: int) -> tuple[Tensor, Tensor, Tensor]:
    """Numbers the slices along dim in their order, taking one position after the other."""
    rank = _C._unique
    rows = input.detach().movedim(dim, 0)
    rows = rows.reshape(rows.shape[0], math.prod(rows.shape[1:]))
    numbers = rows.new_zeros(len(rows), dtype=_C.int64)
    for column in rows.unbind(1):
        values, inverse, _ = rank(column)
        different, numbers, _ = rank(numbers * len(values) + inverse)
        if len(different) == len(rows):
            break  # their order is known
    _, inverse, counts = rank(numbers)
    first = numbers.argsort(stable=True)[counts.cumsum(0) - counts]
    return input.index_select(dim, first), inverse, counts


@overridable
def unique_consecutive(
    input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """Returns the elements (or slices along dim) that differ from the one before.

    Example:
        >>> torch.unique_consecutive(torch.tensor([1, 1, 2, 1]))
        tensor([1, 2, 1])
    """
    rows = input.flatten() if dim is None else input.movedim(dim, 0)
    values, inverse, counts = _C._unique_consecutive(rows, return_inverse, return_counts)
    if dim is not None:
        values = values.movedim(0, dim)
    elif return_inverse:
        inverse = inverse.reshape(input.shape)
    return _asked(values, inverse if return_inverse else None, counts if return_counts else None)


def _asked(values: Tensor, inverse: Tensor | None, counts: Tensor | None) -> Any:
    results = [part for part in (values, inverse, counts) if part is not None]
    return tuple(results) if len(results) > 1 else values
