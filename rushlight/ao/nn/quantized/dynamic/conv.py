"""Convolutions of floats with weights of 8 bits."""

from __future__ import annotations

from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight.ao.nn.quantized import conv, conv_transpose

__all__ = [
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "ConvTranspose3d",
]


class _Dynamic(conv._ConvNd):
    """A layer of floats, whose input is rounded by its own range in each call."""

    _has_form = False

    def forward(self, input: Tensor, reduce_range: bool = True) -> Any:
        """Returns the result in float32: (N, C, ...) to (N, out_channels, ...)."""
        rounded = rl.quantize_per_tensor_dynamic(input, rl.quint8, reduce_range)
        return self._convolved(rounded, None, 0)

    def _get_name(self) -> str:
        return f"DynamicQuantized{type(self).__name__}"


class Conv1d(_Dynamic, conv.Conv1d):
    """nn.Conv1d of floats with a qint8 weight."""


class Conv2d(_Dynamic, conv.Conv2d):
    """nn.Conv2d of floats with a qint8 weight.

    quantize_dynamic leaves convolutions as they are, unless its mapping names their classes.

    Example:
        >>> network = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3))
        >>> mapping = {torch.nn.Conv2d: torch.ao.nn.quantized.dynamic.Conv2d}
        >>> network = torch.ao.quantization.quantize_dynamic(
        ...     network, {torch.nn.Conv2d}, mapping=mapping
        ... )
        >>> network(torch.ones(1, 3, 4, 4)).shape
        torch.Size([1, 8, 2, 2])
    """


class Conv3d(_Dynamic, conv.Conv3d):
    """nn.Conv3d of floats with a qint8 weight."""


class ConvTranspose1d(_Dynamic, conv_transpose.ConvTranspose1d):
    """nn.ConvTranspose1d of floats with a qint8 weight."""


class ConvTranspose2d(_Dynamic, conv_transpose.ConvTranspose2d):
    """nn.ConvTranspose2d of floats with a qint8 weight."""


class ConvTranspose3d(_Dynamic, conv_transpose.ConvTranspose3d):
    """nn.ConvTranspose3d of floats with a qint8 weight."""
