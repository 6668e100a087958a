"""The linear layer of floats with a weight of 8 bits."""

from __future__ import annotations

from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight.ao.nn.quantized._packed import quantize_weight, weight_observer_of
from rushlight.ao.nn.quantized.linear import LinearPackedParams, WithPackedParams
from rushlight.nn import functional as F

__all__ = ["Linear"]


class Linear(WithPackedParams):
    """nn.Linear of floats with a qint8 weight, whose input is rounded by its own range.

    Args:
        in_features: size of the input's last dim.
        out_features: size of the result's.
        bias_: whether there is a bias.
        dtype: torch.qint8, or torch.float16, whose weights only lose digits.

    Example:
        >>> network = torch.nn.Sequential(torch.nn.Linear(3, 2))
        >>> small = torch.ao.quantization.quantize_dynamic(network, {torch.nn.Linear})
        >>> small(torch.ones(1, 3)).dtype
        torch.float32
    """

    _version = 4
    _relu = False

    def __init__(
        self, in_features: int, out_features: int, bias_: bool = True, dtype: Any = None
    ) -> None:
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self._packed_params = LinearPackedParams(dtype)
        bias = rl.zeros(out_features) if bias_ else None
        weight = rl.zeros(out_features, in_features)
        if self._packed_params.dtype is rl.qint8:
            weight = rl.quantize_per_tensor(weight, 1.0, 0, rl.qint8)
        self.set_weight_bias(weight, bias)

    def forward(self, x: Tensor) -> Tensor:
        """Returns the result in float32: (*, in_features) to (*, out_features)."""
        packed: Any = self._packed_params._packed_params
        if self._packed_params.dtype is rl.qint8:
            return packed.dynamic(x, relu=self._relu)
        result = F.linear(x, *packed)
        return result.relu() if self._relu else result

    def _get_name(self) -> str:
        return "DynamicQuantizedLinear"

    def extra_repr(self) -> str:
        text = f"in_features={self.in_features}, out_features={self.out_features}, "
        text += f"dtype={self._packed_params.dtype}"
        if self._packed_params.dtype is rl.qint8:
            text += f", qscheme={self.weight().qscheme()}"
        return text

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Linear:
        """Returns the quantized form of a float layer with a qconfig."""
        layer = mod[0] if isinstance(mod, rl.nn.Sequential) else mod
        if getattr(layer, "qconfig", None) is None:
            from rushlight.ao.quantization.qconfig import default_dynamic_qconfig

            layer.qconfig = getattr(mod, "qconfig", None) or default_dynamic_qconfig
        if layer.qconfig.weight().dtype is rl.float16:
            weight, dtype = layer.weight.detach().float(), rl.float16
        else:
            observer = weight_observer_of(layer, layer.weight)
            weight, dtype = quantize_weight(layer.weight, observer), observer.dtype
        result = cls(layer.in_features, layer.out_features, dtype=dtype)
        result.set_weight_bias(weight, None if layer.bias is None else layer.bias.detach())
        return result
