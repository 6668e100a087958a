"""The device of tensors that are made without one, under the names that libraries import.

Owns set_device. A device is a context manager itself, and so what DeviceContext is.
"""

from __future__ import annotations

from rushlight import _C
from rushlight import device as DeviceContext
from rushlight.utils._contextlib import context_decorator

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from rushlight._grad_mode import F

__all__ = ["DeviceContext", "device_decorator", "set_device"]


def device_decorator(device: Any, func: F) -> F:
    """Returns a function that makes tensors on a device unless another is given.

    Args:
        device: a device or its name.
        func: the function.

    Example:
        >>> from rushlight.utils._device import device_decorator
        >>> device_decorator("meta", torch.ones)(2).device
        device(type='meta')
    """
    return context_decorator(DeviceContext(device), func)


def set_device(device: Any) -> Callable[[F], F]:
    """Returns the decorator of functions that make tensors on a device unless another is given.

    Args:
        device: a device or its name.

    Example:
        >>> from rushlight.utils._device import set_device
        >>> @set_device("meta")
        ... def ones():
        ...     return torch.ones(2)
        >>> ones().device
        device(type='meta')
    """
    return lambda func: device_decorator(device, func)


def __getattr__(name: str) -> Any:
    if name == "CURRENT_DEVICE":
        place = _C._default_device()
        return None if place == DeviceContext("cpu") else place
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
