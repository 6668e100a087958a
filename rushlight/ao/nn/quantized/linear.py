"""The linear layer of 8-bit integers."""

from __future__ import annotations

from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight.ao.nn.quantized._base import PrintedInOneLine, QuantizedLayer, form_of, take
from rushlight.ao.nn.quantized._packed import (
    PackedWeight,
    float_layer_of,
    take_weight,
    weight_observer_of,
)
from rushlight.nn import Module

__all__ = ["Linear", "LinearPackedParams"]


class LinearPackedParams(Module):
    """The weight and bias of a linear layer, where PyTorch's files have them.

    Args:
        dtype: torch.qint8, or torch.float16 for weights that are only stored in fewer bits.
    """

    _version = 3

    def __init__(self, dtype: Any = None) -> None:
        super().__init__()
        self.dtype = rl.qint8 if dtype is None else dtype
        if self.dtype is rl.qint8:
            weight: Any = rl._empty_affine_quantized([1, 1], scale=1, zero_point=0, dtype=rl.qint8)
            weight.int_repr().zero_()
        elif self.dtype is rl.float16:
            weight = rl.zeros([1, 1])
        else:
            raise RuntimeError(f"Linear: dtype must be torch.qint8 or float16, but is {dtype}.")
        self.set_weight_bias(weight, None)

    def set_weight_bias(self, weight: Tensor, bias: Tensor | None) -> None:
        """Takes a weight, qint8 or float32, and a bias."""
        self._packed_params: Any
        if self.dtype is rl.qint8:
            self._packed_params = PackedWeight(weight, bias)
        else:
            self._packed_params = (weight.detach().to(rl.float16).float(), bias)

    def _weight_bias(self) -> tuple[Any, Any]:
        packed = self._packed_params
        return (packed.weight, packed.bias) if self.dtype is rl.qint8 else packed

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "dtype"] = self.dtype
        destination[prefix + "_packed_params"] = self._weight_bias()

    def _load_from_state_dict(
        self, state_dict: Any, prefix: str, *args: Any, **kwargs: Any
    ) -> None:
        self.dtype = take(state_dict, prefix + "dtype", args[2]) or self.dtype
        parts = take(state_dict, prefix + "_packed_params", args[2])
        if parts is not None:
            self.set_weight_bias(*parts)
        super()._load_from_state_dict(state_dict, prefix, *args, **kwargs)

    def __repr__(self) -> str:
        return repr(self._weight_bias())


class WithPackedParams(PrintedInOneLine):
    """The weight and bias of a linear layer that has LinearPackedParams."""

    _packed_params: LinearPackedParams

    def weight(self) -> Any:
        """The weight, of dtype qint8."""
        return self._packed_params._weight_bias()[0]

    def bias(self) -> Any:
        """The bias in float32, or None."""
        return self._packed_params._weight_bias()[1]

    def _weight_bias(self) -> tuple[Any, Any]:
        return self._packed_params._weight_bias()

    def set_weight_bias(self, w: Tensor, b: Tensor | None) -> None:
        """Replaces weight and bias."""
        self._packed_params.set_weight_bias(w, b)


class Linear(WithPackedParams, QuantizedLayer):
    """nn.Linear of quint8 inputs with a qint8 weight; sums are exact, results rounded once.

    Args:
        in_features: size of the input's last dim.
        out_features: size of the result's.
        bias_: whether there is a bias.
        dtype: torch.qint8.

    Example:
        >>> layer = torch.ao.nn.quantized.Linear(3, 2)
        >>> x = torch.quantize_per_tensor(torch.ones(1, 3), 0.1, 0, torch.quint8)
        >>> layer(x).shape
        torch.Size([1, 2])
    """

    _version = 3
    _relu = False

    def __init__(
        self, in_features: int, out_features: int, bias_: bool = True, dtype: Any = None
    ) -> None:
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        self._packed_params = LinearPackedParams(dtype)
        weight = rl.zeros(out_features, in_features)
        if self._packed_params.dtype is rl.qint8:
            weight = rl.quantize_per_tensor(weight, 1.0, 0, rl.qint8)
        self.set_weight_bias(weight, rl.zeros(out_features) if bias_ else None)

    def forward(self, x: Tensor) -> Tensor:
        """Returns the quantized result: (*, in_features) to (*, out_features)."""
        return self._packed_params._packed_params(x, self.scale, self.zero_point, self._relu)

    def extra_repr(self) -> str:
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, "
            f"scale={self.scale}, zero_point={self.zero_point}, qscheme={self.weight().qscheme()}"
        )

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Linear:
        """Returns the quantized form of a float layer that was observed, or trained by qat."""
        layer = float_layer_of(mod)
        observer = weight_observer_of(layer, layer.weight)
        result = cls(layer.in_features, layer.out_features, dtype=observer.dtype)
        take_weight(result, layer, observer)
        result.scale, result.zero_point = form_of(mod)
        return result

    @classmethod
    def from_reference(cls, ref_qlinear: Any, output_scale: Any, output_zero_point: Any) -> Linear:
        """Returns the quantized form of a reference layer."""
        result = cls(ref_qlinear.in_features, ref_qlinear.out_features)
        result.set_weight_bias(ref_qlinear.get_quantized_weight(), ref_qlinear.bias)
        result.scale, result.zero_point = float(output_scale), int(output_zero_point)
        return result
