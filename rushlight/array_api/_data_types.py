"""Data types of the array API: promotion, casts, limits, and broadcasting.

Owns promotion as the standard has it, in which 0-d arrays count like all others; PyTorch's, which
operators follow, gives them less weight.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import rushlight as rl
from rushlight import Tensor

Number = bool | int | float | complex

BOOL = (rl.bool,)
SIGNED = (rl.int8, rl.int16, rl.int32, rl.int64)
UNSIGNED = (rl.uint8, rl.uint16, rl.uint32, rl.uint64)
REAL = (rl.float32, rl.float64)
COMPLEX = (rl.complex64, rl.complex128)
KINDS = {
    "bool": BOOL,
    "signed integer": SIGNED,
    "unsigned integer": UNSIGNED,
    "integral": SIGNED + UNSIGNED,
    "real floating": REAL,
    "complex floating": COMPLEX,
    "numeric": SIGNED + UNSIGNED + REAL + COMPLEX,
}


def is_integral(dtype: rl.dtype) -> bool:
    """Whether a dtype is one of the integers."""
    return dtype in KINDS["integral"]


def _dtype_of(argument: Any) -> rl.dtype:
    return argument.dtype if isinstance(argument, Tensor) else argument


def result_type(*arrays_and_dtypes: Tensor | rl.dtype | Number) -> rl.dtype:
    """Returns the dtype that the arguments promote to.

    Args:
        arrays_and_dtypes: arrays, dtypes and Python numbers; a number only raises the category, to
            the default dtype of its kind.

    Raises:
        ValueError: if there is neither an array nor a dtype.
        RuntimeError: if one is uint64 and another a signed integer.

    Example:
        >>> xp.result_type(xp.uint8, xp.int8)
        torch.int16
        >>> xp.result_type(xp.float32, 2.5)
        torch.float32
    """
    numbers = [a for a in arrays_and_dtypes if isinstance(a, Number)]
    dtypes = [_dtype_of(a) for a in arrays_and_dtypes if not isinstance(a, Number)]
    if not dtypes:
        raise ValueError("result_type: at least one array or dtype is required.")
    result = dtypes[0]
    for dtype in dtypes[1:]:
        result = rl.promote_types(result, dtype)
    for number in numbers:
        # An array with a dim, which numbers do not widen within its category.
        result = rl.result_type(rl.empty(0, dtype=result), number)
    return result


def promoted(*arrays: Tensor) -> tuple[Tensor, ...]:
    """The arrays in their common dtype."""
    first = arrays[0].dtype
    if all(a.dtype is first for a in arrays):
        return arrays
    dtype = result_type(*arrays)
    return tuple(a.to(dtype) for a in arrays)


def as_arrays(x1: Tensor | Number, x2: Tensor | Number) -> tuple[Tensor, Tensor]:
    """Two operands in their common dtype, of which one may be a Python number."""
    if isinstance(x1, Tensor) and isinstance(x2, Tensor):
        if x1.dtype is x2.dtype:
            return x1, x2
        dtype = result_type(x1, x2)
        return x1.to(dtype), x2.to(dtype)
    array, number = (x1, x2) if isinstance(x1, Tensor) else (x2, x1)
    if not (isinstance(array, Tensor) and isinstance(number, Number)):
        raise TypeError(
            f"expected two arrays, or an array and a Python number, got {type(x1).__name__} and "
            f"{type(x2).__name__}. Make arrays with asarray."
        )
    dtype, device = result_type(x1, x2), array.device

    def converted(x: Tensor | Number) -> Tensor:
        return x.to(dtype) if isinstance(x, Tensor) else rl.full((), x, dtype=dtype, device=device)

    return converted(x1), converted(x2)


def astype(
    x: Tensor, dtype: rl.dtype, /, *, copy: bool = True, device: Any | None = None
) -> Tensor:
    """Returns the array in another dtype, and on another device if one is given.

    Args:
        copy: returns a new array even if nothing changes.

    Example:
        >>> xp.astype(xp.asarray([1.7, -1.7]), xp.int64)
        tensor([ 1, -1])
    """
    if x.dtype.is_complex and not dtype.is_complex and dtype is not rl.bool:
        raise TypeError(
            f"astype: cannot cast {x.dtype} to {dtype}. Take xp.real(x) or xp.imag(x) first."
        )
    return x.to(x.device if device is None else device, dtype=dtype, copy=copy)


def broadcast_to(x: Tensor, /, shape: tuple[int, ...]) -> Tensor:
    """Returns a view of the array with its elements repeated to a shape.

    Raises:
        RuntimeError: if the array does not broadcast to it.
    """
    return rl.broadcast_to(x, shape)


def broadcast_arrays(*arrays: Tensor) -> list[Tensor]:
    """Returns views of the arrays, broadcast against one another."""
    return list(rl.broadcast_tensors(*arrays)) if arrays else []


def can_cast(from_: Tensor | rl.dtype, to: rl.dtype, /) -> bool:
    """Returns whether a dtype promotes to another one.

    Example:
        >>> xp.can_cast(xp.int16, xp.int32), xp.can_cast(xp.int32, xp.int16)
        (True, False)
    """
    try:
        return rl.promote_types(_dtype_of(from_), to) is to
    except RuntimeError:  # uint64 and a signed integer
        return False


def isdtype(dtype: rl.dtype, kind: rl.dtype | str | tuple[rl.dtype | str, ...]) -> bool:
    """Returns whether a dtype is of a kind: another dtype, a name such as "integral", or several.

    Raises:
        ValueError: for unknown names.

    Example:
        >>> xp.isdtype(xp.uint16, ("bool", "unsigned integer"))
        True
    """
    if isinstance(kind, tuple):
        return any(isdtype(dtype, one) for one in kind)
    if not isinstance(kind, str):
        return dtype is kind
    if kind not in KINDS:
        raise ValueError(f"isdtype: unknown kind {kind!r}. The kinds are {', '.join(KINDS)}.")
    return dtype in KINDS[kind]


@dataclass(frozen=True)
class FloatLimits:
    """The limits of a floating-point dtype."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: rl.dtype


@dataclass(frozen=True)
class IntegerLimits:
    """The limits of an integer dtype."""

    bits: int
    max: int
    min: int
    dtype: rl.dtype


def finfo(type: rl.dtype | Tensor, /) -> FloatLimits:
    """Returns the limits of a floating-point dtype; of a complex one, those of its parts.

    Example:
        >>> xp.finfo(xp.complex64).eps
        1.1920928955078125e-07
    """
    dtype = _dtype_of(type)
    limits = rl.finfo(dtype)
    return FloatLimits(
        limits.bits, limits.eps, limits.max, limits.min, limits.smallest_normal, dtype.to_real()
    )


def iinfo(type: rl.dtype | Tensor, /) -> IntegerLimits:
    """Returns the limits of an integer dtype.

    Example:
        >>> xp.iinfo(xp.uint64).max
        18446744073709551615
    """
    dtype = _dtype_of(type)
    limits = rl.iinfo(dtype)
    return IntegerLimits(limits.bits, limits.max, limits.min, dtype)
