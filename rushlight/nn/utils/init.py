"""Modules without initial values."""

from __future__ import annotations

from typing import Any, TypeVar

from rushlight.nn.modules.module import Module

M = TypeVar("M", bound=Module)

__all__ = ["skip_init"]


def skip_init(module_cls: type[M], *args: Any, **kwargs: Any) -> M:
    """Returns a module whose parameters and buffers are not initialized.

    Args:
        module_cls: class of the module; it takes an argument `device`.
        args: arguments of the class.
        kwargs: its keyword arguments; device is where the module ends up.

    Raises:
        RuntimeError: if module_cls is not a module, or takes no device.

    Example:
        >>> torch.nn.utils.skip_init(torch.nn.Linear, 2, 3)
        Linear(in_features=2, out_features=3, bias=True)
    """
    if not issubclass(module_cls, Module):
        raise RuntimeError(f"Expected a Module; got {module_cls}")
    from rushlight._signatures import signature

    if "device" not in signature(module_cls).parameters:
        raise RuntimeError("Module must support a 'device' arg to skip initialization")
    device = kwargs.pop("device", "cpu")
    kwargs["device"] = "meta"
    return module_cls(*args, **kwargs).to_empty(device=device)
