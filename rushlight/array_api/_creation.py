"""Arrays from nothing, from numbers and from other objects."""

from __future__ import annotations

import numbers
from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight.array_api._data_types import Number, promoted

Sizes = int | tuple[int, ...]


def asarray(
    obj: Any,
    /,
    *,
    dtype: rl.dtype | None = None,
    device: Any | None = None,
    copy: bool | None = None,
) -> Tensor:
    """Returns an object as an array.

    Args:
        obj: an array, a number, nested sequences of them, or an object of the DLPack or the buffer
            protocol, such as NumPy's arrays.
        dtype: what to convert to; the default of the numbers' kind, or that of the object. It is
            uint64 for an integer that only this one holds.
        device: where the array is to be; where obj is, if it is an array.
        copy: True copies always, False never, None where it must.

    Raises:
        ValueError: if copy is False and sharing is impossible.

    Example:
        >>> xp.asarray([[1, 2], [3, 4]], dtype=xp.float64)
        tensor([[1., 2.],
                [3., 4.]], dtype=torch.float64)
    """
    shared = _shared(obj, copy)
    if shared is None:
        if copy is False:
            raise ValueError("asarray: numbers and sequences cannot be shared. Leave out copy.")
        if dtype is None and isinstance(obj, int) and obj > rl.iinfo(rl.int64).max:
            dtype = rl.uint64
        return rl.tensor(obj, dtype=dtype, device=device)
    result = shared.to(
        shared.device if device is None else device, dtype=dtype or shared.dtype, copy=bool(copy)
    )
    if copy is False and result is not shared:
        raise ValueError(
            f"asarray: an array of {shared.dtype} on {shared.device} becomes {result.dtype} on "
            f"{result.device} by a copy only. Leave out copy."
        )
    return result


def _shared(obj: Any, copy: bool | None) -> Tensor | None:
    """The object as a tensor, on its own memory unless copy is not False; None without memory."""
    if isinstance(obj, Tensor):
        return obj
    if hasattr(obj, "__array_interface__"):
        return _of_numpy(obj, copy)
    if hasattr(obj, "__dlpack__"):
        return rl.from_dlpack(obj)
    try:
        buffer = memoryview(obj)
    except TypeError:
        return None
    return _of_numpy(buffer, copy)


def _of_numpy(array: Any, copy: bool | None) -> Tensor:
    import numpy as np

    array = np.asarray(array)  # of NumPy's scalars, arrays
    try:
        return rl.from_numpy(array)
    except ValueError:  # negative strides, and such that are no multiple of the item size
        if copy is False:
            raise
        return rl.from_numpy(array.copy())


def from_dlpack(x: Any, /, *, device: Any | None = None, copy: bool | None = None) -> Tensor:
    """Returns an object of the DLPack protocol as an array, on the same memory unless copied.

    Args:
        device: where the array is to be; where x is, by default.
        copy: True copies always, False never, None where it must.

    Raises:
        BufferError: if copy is False and sharing is impossible.
    """
    return rl.from_dlpack(x, device=device, copy=copy)


def arange(
    start: float,
    /,
    stop: float | None = None,
    step: float = 1,
    *,
    dtype: rl.dtype | None = None,
    device: Any | None = None,
) -> Tensor:
    """Returns numbers from start (0 when only one bound is given) to stop, which is left out.

    Example:
        >>> xp.arange(1, 7, 2)
        tensor([1, 3, 5])
    """
    if stop is None:
        start, stop = 0, start
    if (stop - start) * step <= 0 and step != 0:  # PyTorch refuses these
        whole = all(isinstance(n, numbers.Integral) for n in (start, stop, step))
        return rl.empty(0, dtype=dtype or (rl.int64 if whole else None), device=device)
    return rl.arange(start, stop, step, dtype=dtype, device=device)


def linspace(
    start: complex,
    stop: complex,
    /,
    num: int,
    *,
    dtype: rl.dtype | None = None,
    device: Any | None = None,
    endpoint: bool = True,
) -> Tensor:
    """Returns num evenly spaced numbers from start to stop, the last of which endpoint keeps.

    Example:
        >>> xp.linspace(0, 1, 4, endpoint=False)
        tensor([0.0000, 0.2500, 0.5000, 0.7500])
    """
    count = num if endpoint else num + 1
    if isinstance(start, complex) or isinstance(stop, complex) or (dtype and dtype.is_complex):
        dtype = dtype or _default_complex()
        real, imag = (
            rl.linspace(first, last, count, dtype=dtype.to_real(), device=device)
            for first, last in ((start.real, stop.real), (start.imag, stop.imag))
        )
        result = rl.complex(real, imag)
    elif dtype is not None and not dtype.is_floating_point:
        result = rl.linspace(start, stop, count, dtype=rl.float64, device=device).to(dtype)
    else:
        result = rl.linspace(start, stop, count, dtype=dtype, device=device)
    return result[:num]


def _default_complex() -> rl.dtype:
    return rl.complex128 if rl.get_default_dtype() is rl.float64 else rl.complex64


def empty(shape: Sizes, *, dtype: rl.dtype | None = None, device: Any | None = None) -> Tensor:
    """Returns an array of a shape whose elements are whatever was in its memory."""
    return rl.empty(shape, dtype=dtype, device=device)


def zeros(shape: Sizes, *, dtype: rl.dtype | None = None, device: Any | None = None) -> Tensor:
    """Returns an array of zeros."""
    return rl.zeros(shape, dtype=dtype, device=device)


def ones(shape: Sizes, *, dtype: rl.dtype | None = None, device: Any | None = None) -> Tensor:
    """Returns an array of ones."""
    return rl.ones(shape, dtype=dtype, device=device)


def full(
    shape: Sizes,
    fill_value: Number,
    *,
    dtype: rl.dtype | None = None,
    device: Any | None = None,
) -> Tensor:
    """Returns an array whose elements are all fill_value, in its default dtype unless one is given.

    Example:
        >>> xp.full(2, 7)
        tensor([7, 7])
    """
    sizes = (shape,) if isinstance(shape, int) else shape
    return rl.full(sizes, fill_value, dtype=dtype, device=device)


def empty_like(x: Tensor, /, *, dtype: rl.dtype | None = None, device: Any | None = None) -> Tensor:
    """Returns an uninitialized array with the shape, and by default dtype and device, of x."""
    return rl.empty_like(x, dtype=dtype, device=device)


def zeros_like(x: Tensor, /, *, dtype: rl.dtype | None = None, device: Any | None = None) -> Tensor:
    """Returns zeros with the shape, and by default dtype and device, of x."""
    return rl.zeros_like(x, dtype=dtype, device=device)


def ones_like(x: Tensor, /, *, dtype: rl.dtype | None = None, device: Any | None = None) -> Tensor:
    """Returns ones with the shape, and by default dtype and device, of x."""
    return rl.ones_like(x, dtype=dtype, device=device)


def full_like(
    x: Tensor,
    /,
    fill_value: Number,
    *,
    dtype: rl.dtype | None = None,
    device: Any | None = None,
) -> Tensor:
    """Returns fill_value repeated, with the shape, and by default dtype and device, of x."""
    return rl.full_like(x, fill_value, dtype=dtype, device=device)


def eye(
    n_rows: int,
    n_cols: int | None = None,
    /,
    *,
    k: int = 0,
    dtype: rl.dtype | None = None,
    device: Any | None = None,
) -> Tensor:
    """Returns a matrix with ones on its k-th diagonal and zeros elsewhere.

    Example:
        >>> xp.eye(2, 3, k=1, dtype=xp.int64)
        tensor([[0, 1, 0],
                [0, 0, 1]])
    """
    result = rl.zeros(n_rows, n_rows if n_cols is None else n_cols, dtype=dtype, device=device)
    if -n_rows < k < result.shape[1]:
        result.diagonal(k).fill_(1)
    return result


def meshgrid(*arrays: Tensor, indexing: str = "xy") -> list[Tensor]:
    """Returns the coordinates of a grid, one array for each axis.

    Args:
        arrays: the coordinates along each axis, 1-d.
        indexing: "ij", or "xy", which swaps the first two dims of the results.

    Raises:
        ValueError: for any other indexing.
    """
    if indexing not in ("xy", "ij"):
        raise ValueError(f"meshgrid: indexing must be 'xy' or 'ij', but is {indexing!r}.")
    return list(rl.meshgrid(*promoted(*arrays), indexing=indexing)) if arrays else []


def tril(x: Tensor, /, *, k: int = 0) -> Tensor:
    """Returns the matrices with zeros above their k-th diagonal."""
    return rl.tril(x, k)


def triu(x: Tensor, /, *, k: int = 0) -> Tensor:
    """Returns the matrices with zeros below their k-th diagonal."""
    return rl.triu(x, k)
