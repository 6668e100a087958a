"""Ops that give another dtype than they would."""

from __future__ import annotations

from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight._ops import OpOverload
from rushlight.utils import _pytree

__all__ = ["out_dtype"]


def out_dtype(op: OpOverload, output_dtype: rl.dtype, *args: Any) -> Tensor:
    """Returns what an op makes of its arguments in the dtype that they and another promote to.

    Args:
        op: an overload, such as torch.ops.aten.mm.default.
        output_dtype: of the result, and one of those that are promoted.
        args: those of the op.

    Raises:
        ValueError: if op is no overload.

    Example:
        >>> a = torch.full((1, 4), 100, dtype=torch.int8)
        >>> out_dtype(torch.ops.aten.mm.default, torch.int32, a, a.T)
        tensor([[40000]], dtype=torch.int32)
    """
    if not isinstance(op, OpOverload):
        raise ValueError(f"out_dtype's first argument must be an OpOverload, but is {op!r}.")
    dtype = output_dtype
    for tensor in _pytree.tensor_leaves(args):
        dtype = rl.promote_types(dtype, tensor.dtype)
    promoted = _pytree.tree_map_only(Tensor, lambda tensor: tensor.to(dtype), args)
    return op(*promoted).to(output_dtype)
