"""Tensors from other objects and files, and torch.range: constructors that are not ops."""

from __future__ import annotations

import math
from os import PathLike
from typing import Any

import numpy as np

import rushlight as rl
from rushlight import _C, Tensor, dtype


def from_file(
    filename: str | PathLike[str],
    shared: bool | None = None,
    size: int | None = 0,
    *,
    dtype: dtype | None = None,
    requires_grad: bool = False,
    **options: Any,
) -> Tensor:
    """Returns a tensor on the CPU whose memory is a file.

    Args:
        filename: the path of the file.
        shared: whether what is written goes to the file, which is made or grown as needed; else it
            stays in this process.
        size: the number of elements.
        dtype: their dtype; the default dtype unless given.
        requires_grad: whether the tensor collects a gradient.
        options: device, layout and pin_memory, for PyTorch's sake.

    Raises:
        RuntimeError: if the file cannot be opened or is too short.
    """
    kind = _C.get_default_dtype() if dtype is None else dtype
    bytes = _C._map_file_bytes(filename, bool(shared), (size or 0) * kind.itemsize)
    return bytes.view(kind).requires_grad_(requires_grad)


def asarray(
    obj: Any,
    *,
    dtype: dtype | None = None,
    device: Any = None,
    copy: bool | None = None,
    requires_grad: bool | None = None,
) -> Tensor:
    """Returns an object as a tensor, of the same memory if possible.

    Args:
        obj: a tensor, an array, an object of DLPack or of the buffer protocol, a number or nested
            sequences of numbers.
        dtype: the dtype; that of obj unless given.
        device: the device; that of obj unless given.
        copy: True always copies; False never does; None does when it must.
        requires_grad: whether the tensor collects a gradient; as obj does unless given.

    Raises:
        ValueError: if copy is False and a copy is needed.

    Example:
        >>> import numpy
        >>> array = numpy.zeros(2)
        >>> torch.asarray(array)[0] = 7
        >>> float(array[0])
        7.0
    """
    if isinstance(obj, Tensor):
        made, is_fresh = obj, False
    elif hasattr(obj, "__array_interface__") and not isinstance(obj, np.generic):
        made, is_fresh = _C.as_tensor(obj), False
    elif hasattr(obj, "__dlpack__") or type(obj).__name__ == "PyCapsule":
        made, is_fresh = rl.from_dlpack(obj), False
    elif not isinstance(obj, np.generic) and _has_buffer(obj):
        made = _C.frombuffer(obj, dtype=dtype or _C.get_default_dtype())
        is_fresh = False
    else:
        made, is_fresh = _C.tensor(obj, dtype=dtype, device=device), True
    if is_fresh and copy is False:
        raise ValueError("asarray: can't alias arbitrary sequence into a tensor.")
    converted = made.to(made.device if device is None else device, dtype or made.dtype)
    if converted is not made and copy is False:
        raise ValueError(
            f"asarray: can't alias {made.dtype} on {made.device} as {converted.dtype} on "
            f"{converted.device}. Pass copy=None to allow a copy."
        )
    if converted is made and copy and not is_fresh:
        converted = made.clone()
    if requires_grad in (None, converted.requires_grad):
        return converted
    return converted.detach().requires_grad_(requires_grad)


def _has_buffer(obj: Any) -> bool:
    try:
        memoryview(obj)
    except TypeError:
        return False
    return True


def range(start: float = 0, end: float | None = None, step: float = 1, **options: Any) -> Tensor:
    """Returns start, start + step, ... up to end, which is included; old, use arange.

    Args:
        start: the first number.
        end: the last one, if the steps meet it.
        step: the distance of two.
        options: dtype, device and requires_grad of the tensor, and out; floats unless told.

    Raises:
        RuntimeError: if the steps do not lead from start to end.
    """
    import warnings

    warnings.warn(
        "torch.range is deprecated and will be removed in a future release because its behavior is "
        "inconsistent with Python's range builtin. Instead, use torch.arange, which produces "
        "values in [start, end).",
        stacklevel=2,
    )
    if end is None:
        start, end = 0, start
    if not step:
        raise RuntimeError("range: step must be nonzero")
    count = math.floor((end - start) / step) + 1
    if count < 1:
        raise RuntimeError(
            f"range: upper bound and lower bound inconsistent with step sign: {start} to {end} by "
            f"{step}."
        )
    out, requires_grad = options.pop("out", None), options.pop("requires_grad", False)
    dtype = options.pop("dtype", None) or (_C.get_default_dtype() if out is None else out.dtype)
    numbers = (rl.arange(count, dtype=_C.float64, **options) * step + start).to(dtype)
    if out is not None:
        return rl.clone(numbers.view_as(out) if out.numel() == count else numbers, out=out)
    return numbers.requires_grad_(requires_grad)
