"""Convolution layers: their parameters, their start and the padding modes that need a copy."""

from __future__ import annotations

import math

import rushlight as rl
from rushlight import Tensor
from rushlight.nn import functional as F
from rushlight.nn import init
from rushlight.nn.modules.module import Module
from rushlight.nn.modules.utils import _pair, _single
from rushlight.nn.parameter import Parameter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = ["Conv1d", "Conv2d"]

_PADDING_MODES = ("zeros", "reflect", "replicate", "circular")


class _ConvNd(Module):
    """What convolutions of any number of dimensions share.

    Padding modes other than zeros pad the input with F.pad first and then convolve without padding.
    """

    # Spreads one number over the dimensions; set by each subclass.
    _ntuple: Callable[[Any], tuple[Any, ...]]

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
        device: rl.device | str | None = None,
        dtype: rl.dtype | None = None,
    ) -> None:
        super().__init__()
        name = type(self).__name__
        if groups <= 0:
            raise ValueError(f"{name}: groups must be a positive integer, but got {groups}.")
        for what, channels in (("in_channels", in_channels), ("out_channels", out_channels)):
            if channels % groups != 0:
                raise ValueError(
                    f"{name}: {what} must be divisible by groups, but got {channels} and {groups}."
                )
        if padding_mode not in _PADDING_MODES:
            raise ValueError(
                f"{name}: padding_mode must be one of {_PADDING_MODES}, but got "
                f"padding_mode='{padding_mode}'."
            )
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = self._ntuple(kernel_size)
        self.stride = self._ntuple(stride)
        self.padding = padding if isinstance(padding, str) else self._ntuple(padding)
        self.dilation = self._ntuple(dilation)
        self.groups = groups
        self.padding_mode = padding_mode
        if padding == "same" and any(step != 1 for step in self.stride):
            raise ValueError(
                f"{name}: padding='same' is not supported for strided convolutions, but got "
                f"stride={self.stride}. Give the padding as numbers."
            )
        self._edges = self._padding_edges()

        factory: Any = {"device": device, "dtype": dtype}
        shape = (out_channels, in_channels // groups, *self.kernel_size)
        self.weight = Parameter(rl.empty(shape, **factory))
        self.bias = Parameter(rl.empty((out_channels,), **factory)) if bias else None
        self.reset_parameters()

    def _padding_edges(self) -> list[int]:
        """The padding as F.pad takes it: before and after, from the last dimension to the first."""
        edges: list[int] = []
        dims = zip(self.kernel_size, self.dilation, strict=True)
        if self.padding == "same":
            for kernel, dilation in reversed(list(dims)):
                total = dilation * (kernel - 1)
                edges += [total // 2, total - total // 2]
        elif self.padding == "valid":
            edges = [0, 0] * len(self.kernel_size)
        elif isinstance(self.padding, str):
            raise ValueError(
                f"{type(self).__name__}: Invalid padding string {self.padding!r}, should be one of "
                "'valid', 'same'."
            )
        else:
            for amount in reversed(self.padding):
                edges += [amount, amount]
        return edges

    def reset_parameters(self) -> None:
        """Draws weight and bias uniformly within 1 / sqrt(fan_in) of zero."""
        # a = sqrt(5) makes the bound of kaiming_uniform_ 1 / sqrt(fan_in).
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in = math.prod(self.weight.shape[1:])
            bound = 1 / math.sqrt(fan_in) if fan_in > 0 else 0
            init.uniform_(self.bias, -bound, bound)

    def _padded(self, input: Tensor) -> tuple[Tensor, int | tuple[int, ...] | str]:
        """The input and the padding that the op shall still add to it."""
        if self.padding_mode == "zeros":
            return input, self.padding
        return F.pad(input, self._edges, mode=self.padding_mode), 0

    def extra_repr(self) -> str:
        settings = [
            f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, "
            f"stride={self.stride}"
        ]
        if self.padding != (0,) * len(self.kernel_size):
            settings.append(f"padding={self.padding}")
        if self.dilation != (1,) * len(self.kernel_size):
            settings.append(f"dilation={self.dilation}")
        if self.groups != 1:
            settings.append(f"groups={self.groups}")
        if self.bias is None:
            settings.append("bias=False")
        if self.padding_mode != "zeros":
            settings.append(f"padding_mode={self.padding_mode}")
        return ", ".join(settings)


class Conv1d(_ConvNd):
    """Slides learned filters along a sequence: cross-correlation plus bias.

    Output length: floor((L + 2 * padding - dilation * (kernel_size - 1) - 1) / stride) + 1.
    Weight and bias start uniform within 1 / sqrt(fan_in) of zero.

    Args:
        in_channels: channels of the input.
        out_channels: channels of the output, one filter each.
        kernel_size: length of the filters.
        stride: step between outputs.
        padding: added at both ends; or "valid" for none, "same" to keep the length.
        dilation: distance between the filter's elements.
        groups: number of blocks that input and output channels are divided into.
        bias: whether to add a learned bias.
        padding_mode: "zeros", "reflect", "replicate" or "circular".
        device: where to put the parameters.
        dtype: their dtype.

    Shape:
        (N, in_channels, L) to (N, out_channels, L_out), or both without N.

    Example:
        >>> layer = torch.nn.Conv1d(2, 4, kernel_size=3)
        >>> tuple(layer(torch.zeros(1, 2, 10)).shape)
        (1, 4, 8)
    """

    _ntuple = staticmethod(_single)

    def forward(self, input: Tensor) -> Tensor:
        input, padding = self._padded(input)
        return F.conv1d(
            input, self.weight, self.bias, self.stride, padding, self.dilation, self.groups
        )


class Conv2d(_ConvNd):
    """Slides learned filters over images: cross-correlation plus bias.

    Output height: floor((H + 2 * padding - dilation * (kernel_size - 1) - 1) / stride) + 1, and
    likewise the width. Weight and bias start uniform within 1 / sqrt(fan_in) of zero.

    Args:
        in_channels: channels of the input.
        out_channels: channels of the output, one filter each.
        kernel_size: height and width of the filters; one number for a square.
        stride: step between outputs.
        padding: added at both sides; or "valid" for none, "same" to keep the size.
        dilation: distance between the filter's elements.
        groups: number of blocks that input and output channels are divided into.
        bias: whether to add a learned bias.
        padding_mode: "zeros", "reflect", "replicate" or "circular".
        device: where to put the parameters.
        dtype: their dtype.

    Shape:
        (N, in_channels, H, W) to (N, out_channels, H_out, W_out), or both without N.

    Example:
        >>> layer = torch.nn.Conv2d(1, 4, kernel_size=3, padding=1)
        >>> tuple(layer(torch.zeros(2, 1, 8, 8)).shape)
        (2, 4, 8, 8)
    """

    _ntuple = staticmethod(_pair)

    def forward(self, input: Tensor) -> Tensor:
        input, padding = self._padded(input)
        return F.conv2d(
            input, self.weight, self.bias, self.stride, padding, self.dilation, self.groups
        )
