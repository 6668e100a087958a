"""Transposed convolutions of 8-bit integers.

They are convolutions of an input whose elements stand as far apart as the stride, by the kernel
turned around, so that the integer kernels of convolutions serve them, too.
"""

from __future__ import annotations

from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight._quantized import PerTensor, QuantizedTensor, integers_of, wrap
from rushlight.ao.nn.quantized.conv import _ConvNd
from rushlight.nn.modules.utils import _ntuple

__all__ = ["ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"]


class _ConvTransposeNd(_ConvNd):
    _settings = ("stride", "padding", "output_padding", "groups", "dilation", "padding_mode")

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | tuple[int, ...],
        stride: int | tuple[int, ...] = 1,
        padding: int | tuple[int, ...] = 0,
        output_padding: int | tuple[int, ...] = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: int | tuple[int, ...] = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if padding_mode != "zeros":
            raise ValueError(
                f"{type(self).__name__}: padding_mode must be 'zeros', but is {padding_mode!r}."
            )
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias
        )
        self.output_padding = _ntuple(self._dims)(output_padding)
        steps = list(zip(self.stride, self.dilation, self.output_padding, strict=True))
        if min(self.stride) < 1 or any(not 0 <= n < max(s, d) for s, d, n in steps):
            raise ValueError(
                f"{type(self).__name__}: stride must be at least 1 and output padding must be "
                "smaller than either stride or dilation, but got output_padding "
                f"{self.output_padding}, stride {self.stride} and dilation {self.dilation}."
            )

    def _weight_channels(self) -> tuple[int, int]:
        return self.in_channels, self.out_channels // self.groups

    def set_weight_bias(self, w: Any, b: Tensor | None) -> None:
        """Replaces weight, (in, out / groups, *kernel_size) of dtype qint8, and bias."""
        if not isinstance(w, QuantizedTensor) or not isinstance(w.form, PerTensor):
            raise RuntimeError(
                f"conv_transpose{self._dims}d: the weight must be quantized per tensor. Give the "
                "layer a qconfig with torch.ao.quantization.default_weight_observer."
            )
        self._weight, self._bias = w, None if b is None else b.detach()
        integers = integers_of(w).flip(list(range(2, w.dim())))
        grouped = integers.unflatten(0, (self.groups, -1)).transpose(1, 2).flatten(0, 1)
        ones = (1,) * self._dims
        self._packed_params = self._packed(wrap(grouped, w.form), ones, (0,) * self._dims)

    def _padded(self, input: Any) -> Any:
        """The input with its elements apart and all padding around; what is added means zero."""
        integers, zero = integers_of(input), input.q_zero_point()
        strides = (1, 1, *self.stride)
        sizes = [(n - 1) * step + 1 for n, step in zip(integers.shape, strides, strict=True)]
        apart = integers.new_full(sizes, zero)
        apart[tuple(slice(None, None, step) for step in strides)] = integers
        ends: list[int] = []
        for dim in reversed(range(self._dims)):
            around = self.dilation[dim] * (self.kernel_size[dim] - 1) - self.padding[dim]
            ends += [around, around + self.output_padding[dim]]
        return wrap(rl.nn.functional.pad(apart, ends, value=zero), input.form)


class ConvTranspose1d(_ConvTransposeNd):
    """nn.ConvTranspose1d of quint8 inputs with a qint8 weight, by the same arguments."""

    _dims = 1


class ConvTranspose2d(_ConvTransposeNd):
    """nn.ConvTranspose2d of quint8 inputs with a qint8 weight, by the same arguments.

    Example:
        >>> layer = torch.ao.nn.quantized.ConvTranspose2d(3, 8, 2, stride=2)
        >>> x = torch.quantize_per_tensor(torch.ones(1, 3, 4, 4), 0.1, 0, torch.quint8)
        >>> layer(x).shape
        torch.Size([1, 8, 8, 8])
    """

    _dims = 2


class ConvTranspose3d(_ConvTransposeNd):
    """nn.ConvTranspose3d of quint8 inputs with a qint8 weight, by the same arguments."""

    _dims = 3
