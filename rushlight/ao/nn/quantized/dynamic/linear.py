"""The linear layer of floats with a weight of 8 bits."""

from __future__ import annotations

from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight.ao.nn.quantized import linear as nnq
from rushlight.ao.nn.quantized._packed import quantize_weight, weight_observer_of
from rushlight.nn import functional as F

__all__ = ["Linear"]


class Linear(nnq.Linear):
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

    def forward(self, x: Tensor) -> Tensor:
        """Returns the result in float32: (*, in_features) to (*, out_features)."""
        packed: Any = self._packed_params._packed_params
        if self._packed_params.dtype is rl.qint8:
            return packed.dynamic(x, relu=self._relu)
        result = F.linear(x, *packed)
        return result.relu() if self._relu else result

    def _get_name(self) -> str:
        return f"DynamicQuantized{type(self).__name__}"

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
        return cls._with(layer, weight, dtype)

    @classmethod
    def from_reference(
        cls, ref_qlinear: Any, output_scale: Any = None, output_zero_point: Any = None
    ) -> Linear:
        """Returns the quantized form of a reference layer; its results have no form."""
        return cls._with(ref_qlinear, ref_qlinear.get_quantized_weight(), ref_qlinear.weight_dtype)

    @classmethod
    def _with(cls, layer: Any, weight: Tensor, dtype: Any) -> Linear:
        result = cls(layer.in_features, layer.out_features, dtype=dtype)
        result.set_weight_bias(weight, None if layer.bias is None else layer.bias.detach())
        return result
