"""torch.ao.nn.intrinsic.quantized: quantized layers with what follows them."""

from __future__ import annotations

from typing import Any

import rushlight as rl
from rushlight import Tensor, _later
from rushlight.ao.nn import quantized as nnq
from rushlight.ao.nn._addresses import lead
from rushlight.nn import functional as F

__all__ = [
    "BNReLU2d",
    "BNReLU3d",
    "ConvAdd2d",
    "ConvAddReLU2d",
    "ConvReLU1d",
    "ConvReLU2d",
    "ConvReLU3d",
    "LinearLeakyReLU",
    "LinearReLU",
    "LinearTanh",
]


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


class ConvAdd2d(nnq.Conv2d):
    """The sum of a quantized Conv2d and a quantized tensor, rounded once."""

    _end = staticmethod(lambda y: y)

    def forward(self, input: Tensor, extra_input: Tensor) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Returns the quantized sum of the convolution and extra_input, of its shape."""
        values = self._convolved(input, None, 0) + extra_input.dequantize()
        return rl.quantize_per_tensor(self._end(values), self.scale, self.zero_point, input.dtype)


class ConvAddReLU2d(ConvAdd2d):
    """relu of ConvAdd2d."""

    _end = staticmethod(Tensor.relu)


class _LinearInFloats(nnq.Linear):
    """A quantized linear layer whose results go through a function before they are rounded."""

    def _function(self, y: Tensor) -> Tensor:
        raise NotImplementedError

    def forward(self, x: Tensor) -> Tensor:
        """Returns the quantized result: (*, in_features) to (*, out_features)."""
        values = self._packed_params._packed_params(x, None, 0)
        return rl.quantize_per_tensor(self._function(values), self.scale, self.zero_point, x.dtype)


class LinearLeakyReLU(_LinearInFloats):
    """leaky_relu of a quantized linear layer.

    Args:
        in_features: as for the linear layer, as the others are.
        negative_slope: of the leaky_relu.
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        negative_slope: float = 0.01,
        bias: bool = True,
        dtype: Any = None,
    ) -> None:
        super().__init__(in_features, out_features, bias, dtype)
        self.negative_slope = negative_slope

    def _function(self, y: Tensor) -> Tensor:
        return F.leaky_relu(y, self.negative_slope)


class LinearTanh(_LinearInFloats):
    """tanh of a quantized linear layer."""

    def _function(self, y: Tensor) -> Tensor:
        return y.tanh()


__getattr__ = _later.imports(__name__, ("dynamic",))

lead("modules modules.bn_relu modules.conv_add", __name__)
lead("modules.conv_relu modules.linear_relu", __name__)
