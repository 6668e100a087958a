"""How the tensors of several ranks become one."""

from __future__ import annotations

import enum
from collections.abc import Callable

import rushlight as rl
from rushlight import Tensor

__all__ = ["ReduceOp", "check_reducible", "finish", "fold", "reduce_op"]


class ReduceOp(enum.IntEnum):
    """What all_reduce, reduce and reduce_scatter compute of the elements at one place.

    AVG needs a floating-point dtype; BAND, BOR and BXOR need integers or bool. On bool, SUM is "or"
    and PRODUCT is "and". PREMUL_SUM exists in PyTorch's NCCL backend only.

    Example:
        >>> torch.distributed.ReduceOp.SUM
        <ReduceOp.SUM: 0>
    """

    SUM = 0
    AVG = 1
    PRODUCT = 2
    MIN = 3
    MAX = 4
    BAND = 5
    BOR = 6
    BXOR = 7
    PREMUL_SUM = 8
    UNUSED = 9


setattr(ReduceOp, "RedOpType", ReduceOp)  # noqa: B010, what PyTorch calls the type
reduce_op = ReduceOp  # its name before PyTorch 1.0

_BITWISE = (ReduceOp.BAND, ReduceOp.BOR, ReduceOp.BXOR)
_FOLDS: dict[ReduceOp, Callable[[Tensor, Tensor], Tensor]] = {
    ReduceOp.SUM: Tensor.add_,
    ReduceOp.AVG: Tensor.add_,
    ReduceOp.PRODUCT: Tensor.mul_,
    ReduceOp.MIN: lambda x, other: rl.minimum(x, other, out=x),
    ReduceOp.MAX: lambda x, other: rl.maximum(x, other, out=x),
    ReduceOp.BAND: Tensor.bitwise_and_,
    ReduceOp.BOR: Tensor.bitwise_or_,
    ReduceOp.BXOR: Tensor.bitwise_xor_,
}


def check_reducible(name: str, op: ReduceOp, dtype: rl.dtype) -> None:
    """Sees that a dtype has the reduction.

    Raises:
        ValueError: for complex tensors, which have no order and no bits.
        RuntimeError: for others that have not.
    """
    if op not in _FOLDS:
        raise RuntimeError(f"{name}: ReduceOp.{op.name} is not available without NCCL.")
    if dtype.is_complex and op not in (ReduceOp.SUM, ReduceOp.AVG):
        raise ValueError(
            f"{name} does not support ReduceOp.{op.name} on complex tensors. Use SUM or AVG."
        )
    if op in _BITWISE and (dtype.is_floating_point or dtype.is_complex):
        raise RuntimeError(f"{name}: cannot use ReduceOp.{op.name} with the non-integral {dtype}.")
    if op is ReduceOp.AVG and not (dtype.is_floating_point or dtype.is_complex):
        raise RuntimeError(f"{name}: cannot use ReduceOp.AVG with {dtype}. Use SUM and divide.")


def fold(op: ReduceOp, x: Tensor, other: Tensor) -> None:
    """Reduces x with another tensor, in place."""
    _FOLDS[op](x, other)


def finish(op: ReduceOp, x: Tensor, size: int) -> None:
    """Does what is left when x holds the tensors of `size` ranks."""
    if op is ReduceOp.AVG:
        x.div_(size)
