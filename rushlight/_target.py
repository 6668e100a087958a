"""Reads what to() of tensors and modules is asked for."""

from __future__ import annotations

from rushlight import _C

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


_OF_TYPES = {float: _C.float64, int: _C.int64, bool: _C.bool, complex: _C.complex128}


def read_target(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any, bool, bool, Any]:
    """Returns (device, dtype, non_blocking, copy, memory_format) from any of the call forms.

    Those are to(device, dtype, ...), to(dtype, ...) and to(other, ...) with the device and the
    dtype of another tensor.

    Raises:
        TypeError: if an argument is of another type, or given twice.
    """
    first = args[0] if args else kwargs.pop("other", kwargs.pop("tensor", None))
    if isinstance(first, _C.TensorBase):
        args = (first.device, first.dtype, *args[1:])
    elif isinstance(first, (_C.dtype, type)):
        args = (kwargs.pop("device", None), *args)
    device, dtype, non_blocking, copy, memory_format = to(*args, **kwargs)
    if device is not None and not isinstance(device, _C.device):
        if not isinstance(device, (str, int)) or isinstance(device, bool):
            raise TypeError(
                "to(): expected a dtype, a device or a Tensor, got " + type(device).__name__
            )
        try:
            device = _C.device(device)
        except RuntimeError:
            if isinstance(getattr(_C, str(device), None), _C.dtype):
                raise RuntimeError(
                    f"to(): Invalid device string: '{device}'. For the dtype, pass torch.{device}."
                ) from None
            raise
    if dtype is not None and not isinstance(dtype, _C.dtype):
        if not isinstance(dtype, type) or dtype not in _OF_TYPES:
            raise TypeError(f"to(): expected a dtype, got {dtype!r}")
        dtype = _OF_TYPES[dtype]
    for name, value in (("non_blocking", non_blocking), ("copy", copy)):
        if not isinstance(value, bool):
            raise TypeError(f"to(): {name} must be a bool, not {type(value).__name__}")
    return device, dtype, non_blocking, copy, memory_format


def to(
    device: Any = None,
    dtype: Any = None,
    non_blocking: bool = False,
    copy: bool = False,
    *,
    memory_format: Any = None,
) -> tuple[Any, Any, bool, bool, Any]:
    """Gives arguments their names; has the name that errors are to show."""
    return device, dtype, non_blocking, copy, memory_format
