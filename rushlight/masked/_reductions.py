"""Reductions and normalizations that leave out masked elements.

Each fills what the mask leaves out with the value that does not change its result, by the table
_IDENTITIES, and runs the plain op; mean and variance count what is left.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight._dims import wrapped_dim

Dims = int | Sequence[int] | None

__all__ = [
    "amax",
    "amin",
    "argmax",
    "argmin",
    "cumprod",
    "cumsum",
    "log_softmax",
    "logaddexp",
    "logsumexp",
    "mean",
    "median",
    "norm",
    "normalize",
    "prod",
    "softmax",
    "softmin",
    "std",
    "sum",
    "var",
]

# By op: 0 or 1, or the end of the dtype's range at which nothing is more, or less.
_IDENTITIES: dict[str, float] = {
    "sum": 0,
    "prod": 1,
    "amax": -math.inf,
    "amin": math.inf,
    "median": math.nan,
    "norm": 0,
}


def _filled(op: str, name: str, input: Tensor, mask: Tensor | None) -> Tensor:
    """The tensor with the identity of an op where the mask leaves elements out."""
    from rushlight.masked.maskedtensor.core import MaskedTensor

    if isinstance(input, MaskedTensor):
        input, mask = input.get_data(), input.get_mask()
    if input.layout is not rl.strided:
        raise ValueError(
            f"masked {name} expects strided tensor (got {input.layout} tensor). Use to_dense()."
        )
    if mask is None:
        return input
    return input.masked_fill(~_broadcast(input, mask, name), _identity(op, name, input.dtype))


def _identity(op: str, name: str, dtype: rl.dtype) -> Any:
    value = _IDENTITIES[op]
    if math.isfinite(value) or dtype.is_floating_point:
        return value
    if dtype.is_complex and name == "logsumexp":
        return value  # exp(-inf) is 0, whatever the imaginary part
    if dtype.is_complex or dtype is rl.bool:
        raise NotImplementedError(f"identity of {name} on {dtype} input")
    return rl.iinfo(dtype).max if value > 0 else rl.iinfo(dtype).min


def _broadcast(input: Tensor, mask: Tensor, name: str) -> Tensor:
    """The mask in the shape of the tensor."""
    if mask.dim() > input.dim():
        raise IndexError(
            f"masked {name}: expected broadcastable mask (got mask dimensionality higher than of "
            f"the input, {mask.dim()} and {input.dim()})"
        )
    return mask.to(rl.bool).broadcast_to(input.shape)


def _dims(dim: Dims, count: int) -> tuple[int, ...]:
    """The dims from 0 up in order; all for None and for ()."""
    if dim is None or dim == ():
        return tuple(range(count))
    found: list[int] = []
    for d in (dim,) if isinstance(dim, int) else dim:
        place = wrapped_dim(d, max(count, 1))
        if place in found:
            raise RuntimeError(f"dim={d} appears multiple times in the list of dims")
        found.append(place)
    return tuple(sorted(found))


def _summed_dtype(dtype: rl.dtype) -> rl.dtype:
    """What sums are in: short integers would overflow."""
    return dtype if dtype.is_floating_point or dtype.is_complex else rl.int64


# Reductions


def sum(
    input: Tensor,
    dim: Dims = None,
    *,
    keepdim: bool | None = False,
    dtype: rl.dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Returns the sum over dims of the elements that the mask keeps; 0 where it keeps none.

    Args:
        input: a tensor, or a MaskedTensor, whose own mask counts.
        dim: the dims that are reduced; all if None.
        keepdim: whether they stay, with size 1.
        dtype: of the result; int64 for integers if None.
        mask: bool, True for what is kept, broadcast to input; None keeps all.

    Raises:
        IndexError: if a dim is out of range, or mask has more dims than input.
        ValueError: if input is sparse.

    Example:
        >>> x, mask = torch.tensor([[1, 2], [3, 4]]), torch.tensor([[True, False], [True, True]])
        >>> torch.masked.sum(x, 1, mask=mask)
        tensor([1, 7])
    """
    filled = _filled("sum", "sum", input, mask)
    dims = _dims(dim, filled.dim())
    return filled.sum(dims, bool(keepdim), dtype=dtype or _summed_dtype(filled.dtype))


def prod(
    input: Tensor,
    dim: Dims = None,
    *,
    keepdim: bool | None = False,
    dtype: rl.dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Returns the product over dims of the elements that the mask keeps, 1 without any; see sum."""
    filled = _filled("prod", "prod", input, mask)
    result = filled.to(dtype or _summed_dtype(filled.dtype))
    for d in reversed(_dims(dim, filled.dim())):
        result = result.prod(d, bool(keepdim))
    return result


def amax(
    input: Tensor,
    dim: Dims = None,
    *,
    keepdim: bool | None = False,
    dtype: rl.dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Returns the largest over dims of the elements that the mask keeps; see sum.

    Where it keeps none, the least number of the dtype.
    """
    filled = _filled("amax", "amax", input, mask)
    return filled.amax(_dims(dim, filled.dim()), bool(keepdim)).to(dtype or filled.dtype)


def amin(
    input: Tensor,
    dim: Dims = None,
    *,
    keepdim: bool | None = False,
    dtype: rl.dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Returns the smallest over dims of the elements that the mask keeps; see sum.

    Where it keeps none, the greatest number of the dtype.
    """
    filled = _filled("amin", "amin", input, mask)
    return filled.amin(_dims(dim, filled.dim()), bool(keepdim)).to(dtype or filled.dtype)


def argmax(
    input: Tensor,
    dim: int | None = None,
    *,
    keepdim: bool | None = False,
    dtype: rl.dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Returns where amax() is along a dim, in the dtype of input as PyTorch does; see sum."""
    filled = _filled("amax", "argmax", input, mask)
    return filled.argmax(dim, bool(keepdim)).to(dtype or filled.dtype)


def argmin(
    input: Tensor,
    dim: int | None = None,
    *,
    keepdim: bool | None = False,
    dtype: rl.dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Returns where amin() is along a dim, in the dtype of input as PyTorch does; see sum."""
    filled = _filled("amin", "argmin", input, mask)
    return filled.argmin(dim, bool(keepdim)).to(dtype or filled.dtype)


def mean(
    input: Tensor,
    dim: Dims = None,
    *,
    keepdim: bool | None = False,
    dtype: rl.dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Returns the mean over dims of the elements that the mask keeps; nan without any; see sum.

    Raises:
        ValueError: if the result would not be floating or complex.
    """
    wanted = dtype or input.dtype
    if not (wanted.is_floating_point or wanted.is_complex):
        raise ValueError(
            f"mean(): Could not infer output dtype. {'Input' if dtype is None else 'Optional'} "
            f"dtype must be either a floating point or complex dtype. Got: {wanted}"
        )
    filled = _filled("sum", "mean", input, mask)
    dims = _dims(dim, filled.dim())
    total = filled.sum(dims, bool(keepdim), dtype=wanted)
    return total / _count(input, filled, mask, dims, bool(keepdim))


def _count(
    input: Tensor, filled: Tensor, mask: Tensor | None, dims: Sequence[int], keepdim: bool
) -> Tensor:
    """How many elements over dims are kept."""
    kept = _kept(input, mask)
    if kept is None:
        kept = rl.ones((), dtype=rl.bool, device=filled.device)
    return kept.to(rl.bool).broadcast_to(filled.shape).sum(tuple(dims), keepdim)


def _kept(input: Tensor, mask: Tensor | None) -> Tensor | None:
    """The mask that counts: a MaskedTensor's own."""
    from rushlight.masked.maskedtensor.core import MaskedTensor

    return input.get_mask() if isinstance(input, MaskedTensor) else mask


def median(
    input: Tensor,
    dim: int = -1,
    *,
    keepdim: bool = False,
    dtype: rl.dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Returns the median along a dim of the elements that the mask keeps, nan without any; see sum.

    Raises:
        ValueError: if input is not floating, and nothing is kept somewhere.
    """
    is_float = input.dtype.is_floating_point
    filled = _filled("median", "median", input if is_float else input.to(rl.float32), mask)
    (dim,) = _dims(dim, filled.dim())
    found: Tensor = filled.nanmedian(dim, keepdim)[0]
    if is_float:
        return found
    if found.isnan().any():
        raise ValueError(
            "masked median expects no fully masked out rows if dtype is not floating point"
        )
    return found.to(dtype or input.dtype)


def var(
    input: Tensor,
    dim: Dims = None,
    unbiased: bool | None = None,
    *,
    correction: float | None = None,
    keepdim: bool | None = False,
    dtype: rl.dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Returns the variance over dims of the elements that the mask keeps; see sum.

    Args:
        input: a tensor or a MaskedTensor.
        dim: the dims that are reduced; all if None.
        unbiased: False is correction=0, True is correction=1.
        correction: what the number of elements is lessened by; 1 if None.
        keepdim: whether they stay, with size 1.
        dtype: of the result; that of input, or float32, if None.
        mask: bool, True for what is kept.

    Raises:
        AssertionError: if both unbiased and correction are given.

    Example:
        >>> torch.masked.var(torch.tensor([1.0, 3.0, 9.0]), mask=torch.tensor([True, True, False]))
        tensor(2.)
    """
    if unbiased is not None and correction is not None:
        raise AssertionError("Only one of unbiased and correction may be given")
    if correction is None:
        correction = 0.0 if unbiased is False else 1.0
    filled = _filled("sum", "std/var", input, mask)
    if dtype is None:
        dtype = filled.dtype if filled.dtype.is_floating_point or filled.dtype.is_complex else None
    dtype = dtype or rl.float32
    dims = _dims(dim, filled.dim())
    count = _count(input, filled, mask, dims, True)
    average = filled.sum(dims, True, dtype=dtype) / count
    gaps = filled - average
    squares = sum(gaps * gaps.conj(), dims, keepdim=True, dtype=dtype, mask=_kept(input, mask))
    result = squares / (count - correction).clamp(min=0)
    return (result if keepdim or not dims else result.squeeze(dims)).to(dtype)


def std(
    input: Tensor,
    dim: Dims = None,
    unbiased: bool | None = None,
    *,
    correction: float | None = None,
    keepdim: bool | None = False,
    dtype: rl.dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Returns the root of var()."""
    return var(
        input, dim, unbiased, correction=correction, keepdim=keepdim, dtype=dtype, mask=mask
    ).sqrt()


def norm(
    input: Tensor,
    ord: float | None = 2.0,
    dim: Dims = None,
    *,
    keepdim: bool | None = False,
    dtype: rl.dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Returns the vector norm over dims of the elements that the mask keeps; see sum.

    Args:
        input: a tensor or a MaskedTensor.
        ord: of the norm, as in torch.linalg.vector_norm.
        dim, keepdim, dtype, mask: as in sum.
    """
    order = 2.0 if ord is None else ord
    filled = _filled("amin" if order == -math.inf else "norm", "norm", input, mask)
    dims = _dims(dim, filled.dim())
    return rl.linalg.vector_norm(filled, order, dims, bool(keepdim), dtype=dtype)


def logsumexp(
    input: Tensor,
    dim: Dims = None,
    *,
    keepdim: bool = False,
    dtype: rl.dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Returns log(sum(exp(x))) over dims of the elements that the mask keeps; see sum."""
    filled = _filled("amax", "logsumexp", input, mask)
    return filled.logsumexp(_dims(dim, filled.dim()), keepdim).to(dtype or filled.dtype)


def logaddexp(
    input: Tensor,
    other: Tensor,
    *,
    dtype: rl.dtype | None = None,
    input_mask: Tensor | None = None,
    other_mask: Tensor | None = None,
) -> Tensor:
    """Returns log(exp(input) + exp(other)), where a masked element counts as -inf.

    Args:
        input: a tensor.
        other: a tensor that broadcasts with it.
        dtype: of the result; that of input if None.
        input_mask: bool, True for what is kept of input.
        other_mask: bool, True for what is kept of other.

    Example:
        >>> x, mask = torch.zeros(2), torch.tensor([True, False])
        >>> torch.masked.logaddexp(x, x, input_mask=mask, other_mask=mask)
        tensor([0.6931,   -inf])
    """
    a = _filled("amax", "logaddexp", input, input_mask)
    b = _filled("amax", "logaddexp", other, other_mask)
    return rl.logaddexp(a, b).to(dtype or input.dtype)


# Normalizations


def softmax(
    input: Tensor, dim: int, *, dtype: rl.dtype | None = None, mask: Tensor | None = None
) -> Tensor:
    """Returns softmax along a dim of the elements that the mask keeps; 0 for the others.

    Args:
        input: a tensor, or a MaskedTensor, whose own mask counts.
        dim: along which.
        dtype: that input is converted to first.
        mask: bool, True for what is kept, broadcast to input. Where it keeps none, nan.

    Example:
        >>> torch.masked.softmax(torch.zeros(3), 0, mask=torch.tensor([True, False, True]))
        tensor([0.5000, 0.0000, 0.5000])
    """
    return _normalized("amax", "softmax", rl.nn.functional.softmax, input, dim, dtype, mask)


def log_softmax(
    input: Tensor, dim: int, *, dtype: rl.dtype | None = None, mask: Tensor | None = None
) -> Tensor:
    """Returns the logarithm of softmax(), -inf for what is masked."""
    return _normalized("amax", "log_softmax", rl.nn.functional.log_softmax, input, dim, dtype, mask)


def softmin(
    input: Tensor, dim: int, *, dtype: rl.dtype | None = None, mask: Tensor | None = None
) -> Tensor:
    """Returns softmax() of the negative."""
    return _normalized("amin", "softmin", rl.nn.functional.softmin, input, dim, dtype, mask)


def cumsum(
    input: Tensor, dim: int, *, dtype: rl.dtype | None = None, mask: Tensor | None = None
) -> Tensor:
    """Returns the sums up to each place along a dim, of what the mask keeps; see softmax."""
    return _normalized("sum", "cumsum", rl.cumsum, input, dim, dtype or input.dtype, mask)


def cumprod(
    input: Tensor, dim: int, *, dtype: rl.dtype | None = None, mask: Tensor | None = None
) -> Tensor:
    """Returns the products up to each place along a dim, of what the mask keeps; see softmax."""
    return _normalized("prod", "cumprod", rl.cumprod, input, dim, dtype or input.dtype, mask)


def _normalized(
    op: str,
    name: str,
    function: Callable[..., Tensor],
    input: Tensor,
    dim: int,
    dtype: rl.dtype | None,
    mask: Tensor | None,
) -> Tensor:
    filled = _filled(op, name, input, mask)
    (dim,) = _dims(dim, filled.dim())[:1]
    return function(filled, dim, dtype=dtype)


def normalize(
    input: Tensor,
    ord: float,
    dim: int,
    *,
    eps: float = 1e-12,
    dtype: rl.dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Returns what the mask keeps divided by its norm() along a dim; 0 for the others.

    Args:
        input: a tensor or a MaskedTensor.
        ord: of the norm.
        dim: along which.
        eps: the least that is divided by.
        dtype: of the norm.
        mask: bool, True for what is kept.

    Example:
        >>> x, mask = torch.tensor([3.0, 7.0, 4.0]), torch.tensor([True, False, True])
        >>> torch.masked.normalize(x, 2, 0, mask=mask)
        tensor([0.6000, 0.0000, 0.8000])
    """
    length = norm(input, ord, dim, keepdim=True, dtype=dtype, mask=mask)
    return _filled("sum", "normalize", input, mask) / length.clamp(min=eps)
