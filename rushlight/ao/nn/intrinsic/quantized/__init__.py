"""torch.ao.nn.intrinsic.quantized: quantized layers that end in a relu."""

from __future__ import annotations

from rushlight import _later
from rushlight.ao.nn import quantized as nnq

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


__getattr__ = _later.imports(__name__, ("dynamic",))
