"""Convolutions of 8-bit integers. Results lie in memory with their channels last."""

from __future__ import annotations

from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight._quantized import integers_of, wrap
from rushlight.ao.nn.quantized._base import QuantizedLayer, form_of, take
from rushlight.ao.nn.quantized._packed import (
    PackedWeight,
    float_layer_of,
    take_weight,
    weight_observer_of,
)
from rushlight.nn.modules.utils import _ntuple

__all__ = ["Conv1d", "Conv2d", "Conv3d"]


class _ConvNd(QuantizedLayer):
    _dims: int
    _relu = False
    _has_form = True  # whether results are quantized
    _settings: tuple[str, ...] = ("stride", "padding", "dilation", "groups", "padding_mode")

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | tuple[int, ...],
        stride: int | tuple[int, ...] = 1,
        padding: int | tuple[int, ...] | str = 0,
        dilation: int | tuple[int, ...] = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        name, dims = type(self).__name__, self._dims
        if groups < 1 or in_channels % groups or out_channels % groups:
            raise ValueError(
                f"{name}: {in_channels} and {out_channels} channels must be divisible by "
                f"{groups} groups."
            )
        if padding_mode not in ("zeros", "reflect"):
            raise ValueError(f"{name}: padding_mode must be 'zeros' or 'reflect'.")
        self.in_channels, self.out_channels, self.groups = in_channels, out_channels, groups
        window = (kernel_size, stride, dilation)
        self.kernel_size, self.stride, self.dilation = map(_ntuple(dims), window)
        self.padding = self._named_padding(padding)
        self.padding_mode = padding_mode
        self.output_padding = (0,) * dims
        zeros = rl.zeros(*self._weight_channels(), *self.kernel_size, dtype=rl.int8)
        weight = rl._make_per_tensor_quantized_tensor(zeros, 1.0, 0)
        self.set_weight_bias(weight, rl.zeros(out_channels) if bias else None)

    def _weight_channels(self) -> tuple[int, int]:
        return self.out_channels, self.in_channels // self.groups

    def _named_padding(self, padding: Any) -> tuple[int, ...]:
        if not isinstance(padding, str):
            return _ntuple(self._dims)(padding)
        totals = [d * (k - 1) for d, k in zip(self.dilation, self.kernel_size, strict=True)]
        if padding == "valid":
            return (0,) * self._dims
        if padding != "same" or any(total % 2 for total in totals):
            raise ValueError(
                f"{type(self).__name__}: padding {padding!r} of kernel {self.kernel_size} is not "
                "the same at both ends. Pad the input before the layer."
            )
        return tuple(total // 2 for total in totals)

    def set_weight_bias(self, w: Any, b: Tensor | None) -> None:
        """Replaces weight, (out, in / groups, *kernel_size) of dtype qint8, and bias."""
        self._weight, self._bias = w, None if b is None else b.detach()
        padding = self.padding if self.padding_mode == "zeros" else (0,) * self._dims
        self._packed_params = self._packed(w, self.stride, padding)

    def _packed(self, w: Any, stride: tuple[int, ...], padding: tuple[int, ...]) -> PackedWeight:
        # Sequences are images of one line.
        line = (1,) if self._dims == 1 else ()
        return PackedWeight(
            wrap(integers_of(w).unsqueeze(2), w.form) if line else w,
            self._bias,
            line + stride,
            (0,) * len(line) + padding,
            line + self.dilation,
            self.groups,
            f"conv{self._dims}d",
        )

    def weight(self) -> Any:
        """The weight, of dtype qint8."""
        return self._weight

    def bias(self) -> Any:
        """The bias in float32, or None."""
        return self._bias

    def _weight_bias(self) -> tuple[Any, Any]:
        return self._weight, self._bias

    def forward(self, input: Tensor) -> Tensor:
        """Returns the quantized result: (N, C, ...) to (N, out_channels, ...)."""
        return self._convolved(input, self.scale, self.zero_point)

    def _convolved(self, input: Tensor, scale: float | None, zero_point: int) -> Tensor:
        """The result for a quantized input; in floats if scale is None."""
        if input.dim() != self._dims + 2:
            raise ValueError(f"Input shape must be `(N, C, ...)` of {self._dims + 2} dims!")
        input = self._padded(input)
        if self._dims == 1:
            input = input.unsqueeze(2)
        result = self._packed_params(input, scale, zero_point, self._relu)
        return result.squeeze(2) if self._dims == 1 else result

    def _padded(self, input: Any) -> Any:
        """The input with what its padding is besides zeros."""
        if self.padding_mode == "zeros":
            return input
        ends = [n for n in reversed(self.padding) for _ in range(2)]
        return rl.nn.functional.pad(input, ends, mode="reflect")

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        destination[prefix + "weight"] = self._weight
        destination[prefix + "bias"] = self._bias
        super()._save_to_state_dict(destination, prefix, keep_vars)

    def _load_from_state_dict(
        self, state_dict: Any, prefix: str, *args: Any, **kwargs: Any
    ) -> None:
        weight = take(state_dict, prefix + "weight", args[2])
        bias = state_dict.pop(prefix + "bias", None)
        if weight is not None:
            self.set_weight_bias(weight, bias)
        super()._load_from_state_dict(state_dict, prefix, *args, **kwargs)

    def extra_repr(self) -> str:
        text = (
            f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, "
            f"stride={self.stride}, scale={self.scale}, zero_point={self.zero_point}"
        )
        if any(self.padding):
            text += f", padding={self.padding}"
        if any(d != 1 for d in self.dilation):
            text += f", dilation={self.dilation}"
        if any(self.output_padding):
            text += f", output_padding={self.output_padding}"
        if self.groups != 1:
            text += f", groups={self.groups}"
        return text if self._bias is not None else text + ", bias=False"

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """Returns the quantized form of a float layer that was observed, or trained by qat."""
        layer = float_layer_of(mod)
        observer = weight_observer_of(layer, layer.weight)
        result = cls._like(layer)
        take_weight(result, layer, observer)
        if cls._has_form:
            result.scale, result.zero_point = form_of(mod)
        return result

    @classmethod
    def from_reference(cls, ref_qconv: Any, output_scale: Any, output_zero_point: Any) -> Any:
        """Returns the quantized form of a reference layer."""
        result = cls._like(ref_qconv)
        result.set_weight_bias(ref_qconv.get_quantized_weight(), ref_qconv.bias)
        result.scale, result.zero_point = float(output_scale), int(output_zero_point)
        return result

    @classmethod
    def _like(cls, layer: Any) -> Any:
        return cls(
            layer.in_channels,
            layer.out_channels,
            layer.kernel_size,
            bias=layer.bias is not None,
            **{name: getattr(layer, name) for name in cls._settings},
        )


class Conv1d(_ConvNd):
    """nn.Conv1d of quint8 inputs with a qint8 weight; its arguments are those of nn.Conv1d."""

    _dims = 1


class Conv2d(_ConvNd):
    """nn.Conv2d of quint8 inputs with a qint8 weight; its arguments are those of nn.Conv2d.

    Example:
        >>> layer = torch.ao.nn.quantized.Conv2d(3, 8, 3, padding=1)
        >>> x = torch.quantize_per_tensor(torch.ones(1, 3, 4, 4), 0.1, 0, torch.quint8)
        >>> layer(x).shape
        torch.Size([1, 8, 4, 4])
    """

    _dims = 2


class Conv3d(_ConvNd):
    """nn.Conv3d of quint8 inputs with a qint8 weight; its arguments are those of nn.Conv3d."""

    _dims = 3
