"""Products of vectors and matrices; decompositions are in linalg."""

from __future__ import annotations

from collections.abc import Sequence

import rushlight as rl
from rushlight import Tensor
from rushlight.array_api._data_types import promoted


def matmul(x1: Tensor, x2: Tensor, /) -> Tensor:
    """Returns the product of two stacks of matrices, or of vectors where an array is 1-d."""
    return rl.matmul(*promoted(x1, x2))


def matrix_transpose(x: Tensor, /) -> Tensor:
    """Returns the matrices with rows and columns swapped, a view."""
    if x.ndim < 2:
        raise ValueError(f"matrix_transpose: x must be at least 2-d, but has {x.ndim} dims.")
    return x.mT


def tensordot(
    x1: Tensor, x2: Tensor, /, *, axes: int | tuple[Sequence[int], Sequence[int]] = 2
) -> Tensor:
    """Returns the sums of products over some axes of two arrays.

    Args:
        axes: how many of x1's last axes to sum with as many of x2's first; or two lists, x1's axes
            and x2's.
    """
    return rl.tensordot(*promoted(x1, x2), dims=axes)


def vecdot(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """Returns the sums of conj(x1) * x2 along a negative axis; the others broadcast.

    Example:
        >>> xp.vecdot(xp.asarray([[1, 2], [3, 4]]), xp.asarray([1, 10]))
        tensor([21, 43])
    """
    x1, x2 = promoted(x1, x2)
    if x1.shape[axis] != x2.shape[axis]:
        raise ValueError(
            f"vecdot: the vectors have {x1.shape[axis]} and {x2.shape[axis]} elements. They must "
            "have as many."
        )
    product = rl.conj_physical(x1) * x2
    return product.sum(axis, dtype=product.dtype)
