"""Sums of products with the dims named: einsum, the order it contracts in, and tensordot."""

from __future__ import annotations

import math

import rushlight as rl
from rushlight import _C, Tensor
from rushlight._dims import wrapped_dim
from rushlight._overridable import asks_itself, overridable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


@asks_itself
def einsum(*args: Any) -> Tensor:
    """Returns sums of products of tensors' elements in Einstein's notation.

    Each operand's dims get a letter; letters that are not in the output are summed over. "..."
    stands for any dims, which broadcast. Without "->" the output has the letters that appear once,
    in alphabetical order.

    Args:
        args: the equation, then the operands or a list of them; or operands and lists of numbers
            below 52 in turn, with the list for the output last, if there is one.

    Raises:
        RuntimeError: if the equation does not fit the operands.

    Example:
        >>> a, b = torch.ones(2, 3), torch.ones(3, 4)
        >>> torch.einsum("ij,jk->ik", a, b).tolist()
        [[3.0, 3.0, 3.0, 3.0], [3.0, 3.0, 3.0, 3.0]]
        >>> torch.einsum(a, [0, 1], [1, 0]).shape
        torch.Size([3, 2])
    """
    if len(args) == 2 and isinstance(args[0], str) and isinstance(args[1], (list, tuple)):
        args = (args[0], *args[1])  # so that tracers see operands in one form
    if _C._argument_takes_over(args, {}):
        return _C._call_taken_over(einsum, args, {})
    if args and isinstance(args[0], str):
        equation, *operands = args
    else:
        pairs = len(args) // 2
        operands = list(args[: 2 * pairs : 2])
        equation = ",".join(_subscripts(labels) for labels in args[1 : 2 * pairs : 2])
        if len(args) % 2:
            equation += "->" + _subscripts(args[-1])
    return _C.einsum(equation, operands, _einsum_path(equation, operands))


def _einsum_path(equation: str, operands: Any) -> list[int] | None:
    """The order of contraction, two operands for each step; None leaves it to the core."""
    if len(operands) <= 2:
        return None
    from rushlight.backends import opt_einsum

    if not opt_einsum.enabled:  # from left to right
        path = [0, 1]
        for left in range(len(operands) - 2, 0, -1):
            path += [left, 0]
        return path
    planner = opt_einsum.get_opt_einsum()
    if planner is None:
        return None
    shapes = [tuple(operand.shape) for operand in operands]
    steps = planner.contract_path(equation, *shapes, shapes=True, optimize=opt_einsum.strategy)[0]
    path = []
    count = len(operands)
    for step in steps:  # a step with more than two operands takes them from left to right
        first, *rest = sorted(step)
        for k, operand in enumerate(rest):
            path += [first, operand - k] if k == 0 else [count - 1, operand - k - 1]
            count -= 1
    return path


def _subscripts(labels: Any) -> str:
    """The letters for a list of numbers, which may have an Ellipsis."""
    text = ""
    for label in labels:
        if label is Ellipsis:
            text += "..."
        elif 0 <= label < 52:
            text += chr(ord("A") + label) if label < 26 else chr(ord("a") + label - 26)
        else:
            raise ValueError(f"einsum: subscript {label} is out of range. It must be in [0, 52).")
    return text


@overridable
def tensordot(a: Tensor, b: Tensor, dims: Any = 2, out: Tensor | None = None) -> Tensor:
    """Returns the sums of products over some dims of two tensors.

    Args:
        a: any tensor.
        b: any tensor.
        dims: how many of a's last dims to sum with as many of b's first; or two lists, a's dims and
            b's. A dim of size 1 stands for as many equal elements as the other one has.
        out: where the result is written.

    Returns:
        A tensor with the remaining dims of a, then those of b.

    Raises:
        IndexError: if there is no such dim.
        RuntimeError: if the sizes of the dims differ.

    Example:
        >>> torch.tensordot(torch.ones(2, 3, 4), torch.ones(4, 3), dims=([1, 2], [1, 0])).tolist()
        [12.0, 12.0]
    """
    if isinstance(dims, int):
        if not 0 <= dims <= min(a.dim(), b.dim()):
            raise RuntimeError(
                f"tensordot: dims must be between 0 and the numbers of dims, {a.dim()} and "
                f"{b.dim()}, but is {dims}."
            )
        dims_a, dims_b = range(a.dim() - dims, a.dim()), range(dims)
    else:
        dims_a, dims_b = dims
    dims_a = [wrapped_dim(d, a.dim()) for d in dims_a]
    dims_b = [wrapped_dim(d, b.dim()) for d in dims_b]
    for d, e in zip(dims_a, dims_b, strict=False):
        if a.shape[d] == 1 != b.shape[e]:
            b = b.sum(e, keepdim=True, dtype=b.dtype)
        elif b.shape[e] == 1 != a.shape[d]:
            a = a.sum(d, keepdim=True, dtype=a.dtype)
    sizes_a, sizes_b = [a.shape[d] for d in dims_a], [b.shape[d] for d in dims_b]
    if sizes_a != sizes_b:
        raise RuntimeError(
            f"tensordot: contracted dimensions need to match, but have sizes {sizes_a} in a and "
            f"{sizes_b} in b."
        )
    free_a = [d for d in range(a.dim()) if d not in dims_a]
    free_b = [d for d in range(b.dim()) if d not in dims_b]
    shape = [a.shape[d] for d in free_a] + [b.shape[d] for d in free_b]
    inner = math.prod(sizes_a)
    left = a.permute(free_a + dims_a).reshape(math.prod(a.shape[d] for d in free_a), inner)
    right = b.permute(dims_b + free_b).reshape(inner, math.prod(b.shape[d] for d in free_b))
    result = (left @ right).reshape(shape)
    return result if out is None else rl.clone(result, out=out)
