"""torch.ao.nn.intrinsic.quantized: quantized layers that end in a relu."""

from __future__ import annotations

from importlib import import_module

from rushlight.ao.nn import quantized as nnq

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

__all__ = ["BNReLU2d", "BNReLU3d", "ConvReLU1d", "ConvReLU2d", "ConvReLU3d", "LinearReLU"]


class LinearReLU(nnq.Linear):
    """relu of a quantized linear layer."""

    _relu = True


class ConvReLU1d(nnq.Conv1d):
    """relu of a quantized Conv1d."""

    _relu = True


class ConvReLU2d(nnq.Conv2d):
    """relu of a quantized Conv2d."""

    _relu = True


class ConvReLU3d(nnq.Conv3d):
    """relu of a quantized Conv3d."""

    _relu = True


class BNReLU2d(nnq.BatchNorm2d):
    """relu of a quantized BatchNorm2d."""

    _relu = True


class BNReLU3d(nnq.BatchNorm3d):
    """relu of a quantized BatchNorm3d."""

    _relu = True


def __getattr__(name: str) -> ModuleType:
    if name == "dynamic":
        return import_module("rushlight.ao.nn.intrinsic.quantized.dynamic")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
