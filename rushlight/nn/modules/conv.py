"""Convolution layers: their parameters, their start and the padding modes that need a copy."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import rushlight as rl
from rushlight import Tensor, _later
from rushlight.nn import functional as F
from rushlight.nn import init
from rushlight.nn.modules.module import Module
from rushlight.nn.modules.utils import (
    _pair,
    _reverse_repeat_tuple,
    _single,
    _triple,
    check_sizes,
)
from rushlight.nn.parameter import Parameter

__all__ = [
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "ConvTranspose3d",
]

_PADDING_MODES = ("zeros", "reflect", "replicate", "circular")


class _ConvNd(Module):
    """What convolutions of any number of dimensions share.

    Padding modes other than zeros pad the input with F.pad first and then convolve without padding.
    """

    transposed = False
    bias: Parameter | None
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
        check_sizes(self, in_channels=in_channels, out_channels=out_channels, groups=groups)
        check_sizes(self, kernel_size=kernel_size, stride=stride, dilation=dilation)
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
        self.output_padding = self._ntuple(0)
        self.groups = groups
        self.padding_mode = padding_mode
        if padding == "same" and any(step != 1 for step in self.stride):
            raise ValueError(
                f"{name}: padding='same' is not supported for strided convolutions, but got "
                f"stride={self.stride}. Give the padding as numbers."
            )
        self._reversed_padding_repeated_twice = self._reversed_padding()

        factory: Any = {"device": device, "dtype": dtype}
        self.weight = Parameter(rl.empty(self._weight_shape(), **factory))
        self.register_parameter(
            "bias", Parameter(rl.empty((out_channels,), **factory)) if bias else None
        )
        self.reset_parameters()

    def _weight_shape(self) -> tuple[int, ...]:
        return self.out_channels, self.in_channels // self.groups, *self.kernel_size

    def _reversed_padding(self) -> Sequence[int]:
        """The padding as F.pad takes it: before and after, from the last dimension to the first."""
        if self.padding == "valid":
            return [0, 0] * len(self.kernel_size)
        if self.padding == "same":
            dims = zip(self.kernel_size, self.dilation, strict=True)
            totals = [dilation * (kernel - 1) for kernel, dilation in dims]
            return [edge for total in reversed(totals) for edge in (total // 2, total - total // 2)]
        if isinstance(self.padding, str):
            raise ValueError(
                f"{type(self).__name__}: Invalid padding string {self.padding!r}, should be one of "
                "'valid', 'same'."
            )
        return _reverse_repeat_tuple(self.padding, 2)

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
        edges = self._reversed_padding_repeated_twice
        return F.pad(input, edges, mode=self.padding_mode), 0

    def extra_repr(self) -> str:
        settings = [
            f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, "
            f"stride={self.stride}"
        ]
        if self.padding != (0,) * len(self.kernel_size):
            settings.append(f"padding={self.padding}")
        if self.dilation != (1,) * len(self.kernel_size):
            settings.append(f"dilation={self.dilation}")
        if any(self.output_padding):
            settings.append(f"output_padding={self.output_padding}")
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
        return self._conv_forward(input, self.weight, self.bias)

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        input, padding = self._padded(input)
        return F.conv1d(input, weight, bias, self.stride, padding, self.dilation, self.groups)


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
        return self._conv_forward(input, self.weight, self.bias)

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        input, padding = self._padded(input)
        return F.conv2d(input, weight, bias, self.stride, padding, self.dilation, self.groups)


class Conv3d(_ConvNd):
    """Slides learned filters over volumes: cross-correlation plus bias.

    Output depth: floor((D + 2 * padding - dilation * (kernel_size - 1) - 1) / stride) + 1, and
    likewise height and width. Weight and bias start uniform within 1 / sqrt(fan_in) of zero.

    Args:
        in_channels: channels of the input.
        out_channels: channels of the output, one filter each.
        kernel_size: depth, height and width of the filters; one number for a cube.
        stride: step between outputs; the other arguments are those of Conv2d.

    Shape:
        (N, in_channels, D, H, W) to (N, out_channels, D_out, H_out, W_out), or both without N.

    Example:
        >>> layer = torch.nn.Conv3d(1, 4, kernel_size=3)
        >>> tuple(layer(torch.zeros(2, 1, 8, 8, 8)).shape)
        (2, 4, 6, 6, 6)
    """

    _ntuple = staticmethod(_triple)

    def forward(self, input: Tensor) -> Tensor:
        return self._conv_forward(input, self.weight, self.bias)

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        input, padding = self._padded(input)
        return F.conv3d(input, weight, bias, self.stride, padding, self.dilation, self.groups)


class _ConvTransposeNd(_ConvNd):
    """What transposed convolutions share: the gradient of a convolution, used as a layer."""

    transposed = True
    padding: tuple[int, ...]  # never a word here

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
        device: rl.device | str | None = None,
        dtype: rl.dtype | None = None,
    ) -> None:
        if padding_mode != "zeros":
            raise ValueError(
                f'Only "zeros" padding mode is supported for {type(self).__name__}, but got '
                f"{padding_mode!r}."
            )
        super().__init__(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            groups,
            bias,
            device=device,
            dtype=dtype,
        )
        self.output_padding = self._ntuple(output_padding)

    def _weight_shape(self) -> tuple[int, ...]:
        return self.in_channels, self.out_channels // self.groups, *self.kernel_size

    def _output_padding(
        self, input: Tensor, output_size: Sequence[int] | None
    ) -> tuple[int, ...] | list[int]:
        """What to add at the ends so that the output gets the size asked for."""
        if output_size is None:
            return self.output_padding
        dims = len(self.kernel_size)
        if len(output_size) not in (dims, input.dim()):
            raise ValueError(
                f"{type(self).__name__}: for {input.dim()}D input, output_size must have {dims} or "
                f"{input.dim()} elements (got {len(output_size)})."
            )
        wanted = list(output_size)[-dims:]
        smallest = [
            (size - 1) * stride - 2 * padding + dilation * (kernel - 1) + 1
            for size, stride, padding, dilation, kernel in zip(
                input.shape[-dims:],
                self.stride,
                self.padding,
                self.dilation,
                self.kernel_size,
                strict=True,
            )
        ]
        added = [size - least for size, least in zip(wanted, smallest, strict=True)]
        if not all(0 <= extra < stride for extra, stride in zip(added, self.stride, strict=True)):
            largest = [
                least + stride - 1 for least, stride in zip(smallest, self.stride, strict=True)
            ]
            raise ValueError(
                f"{type(self).__name__}: requested an output size of {wanted}, but valid sizes "
                f"range from {smallest} to {largest} (for an input of {list(input.shape[-dims:])})."
            )
        return added


class _ConvTransposeMixin(_ConvTransposeNd):
    """A class that libraries name in isinstance; in PyTorch, too, no layer is one."""


class ConvTranspose1d(_ConvTransposeNd):
    """The gradient of Conv1d with respect to its input, used as a layer that lengthens sequences.

    Output length: (L - 1) * stride - 2 * padding + dilation * (kernel_size - 1) + output_padding
    + 1. Weight and bias start uniform within 1 / sqrt(out_channels / groups * kernel_size) of zero.

    Args:
        in_channels: channels of the input.
        out_channels: channels of the output.
        kernel_size: length of the filters.
        stride: step between inputs, on the output.
        padding: what the convolution added at both ends, so that it is cut off here.
        output_padding: elements to add at the end, where several lengths are possible.
        groups: number of blocks that input and output channels are divided into.
        bias: whether to add a learned bias.
        dilation: distance between the filter's elements.
        padding_mode: "zeros".
        device: where to put the parameters.
        dtype: their dtype.

    Shape:
        (N, in_channels, L) to (N, out_channels, L_out), or both without N.

    Example:
        >>> layer = torch.nn.ConvTranspose1d(2, 4, kernel_size=2, stride=2)
        >>> tuple(layer(torch.zeros(1, 2, 10)).shape)
        (1, 4, 20)
    """

    _ntuple = staticmethod(_single)

    def forward(self, input: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        return F.conv_transpose1d(
            input,
            self.weight,
            self.bias,
            self.stride,
            self.padding,
            self._output_padding(input, output_size),
            self.groups,
            self.dilation,
        )


class ConvTranspose2d(_ConvTransposeNd):
    """The gradient of Conv2d with respect to its input, used as a layer that enlarges images.

    Output height: (H - 1) * stride - 2 * padding + dilation * (kernel_size - 1) + output_padding
    + 1, and likewise the width.

    Args:
        in_channels: channels of the input.
        out_channels: channels of the output.
        kernel_size: height and width of the filters; one number for a square.
        stride: step between inputs, on the output; the other arguments are those of
            ConvTranspose1d.

    Shape:
        (N, in_channels, H, W) to (N, out_channels, H_out, W_out), or both without N.

    Example:
        >>> layer = torch.nn.ConvTranspose2d(1, 4, kernel_size=3, stride=2, padding=1)
        >>> tuple(layer(torch.zeros(2, 1, 5, 5), output_size=(10, 10)).shape)
        (2, 4, 10, 10)
    """

    _ntuple = staticmethod(_pair)

    def forward(self, input: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        return F.conv_transpose2d(
            input,
            self.weight,
            self.bias,
            self.stride,
            self.padding,
            self._output_padding(input, output_size),
            self.groups,
            self.dilation,
        )


class ConvTranspose3d(_ConvTransposeNd):
    """The gradient of Conv3d with respect to its input, used as a layer that enlarges volumes.

    Output depth: (D - 1) * stride - 2 * padding + dilation * (kernel_size - 1) + output_padding
    + 1, and likewise height and width.

    Args:
        in_channels: channels of the input.
        out_channels: channels of the output.
        kernel_size: depth, height and width of the filters; one number for a cube.
        stride: step between inputs, on the output; the other arguments are those of
            ConvTranspose1d.

    Shape:
        (N, in_channels, D, H, W) to (N, out_channels, D_out, H_out, W_out), or both without N.

    Example:
        >>> layer = torch.nn.ConvTranspose3d(1, 4, kernel_size=2, stride=2)
        >>> tuple(layer(torch.zeros(2, 1, 3, 4, 5)).shape)
        (2, 4, 6, 8, 10)
    """

    _ntuple = staticmethod(_triple)

    def forward(self, input: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        return F.conv_transpose3d(
            input,
            self.weight,
            self.bias,
            self.stride,
            self.padding,
            self._output_padding(input, output_size),
            self.groups,
            self.dilation,
        )


# PyTorch has these here.
__getattr__ = _later.imports(
    __name__,
    names_in={
        "_lazy_layers": (
            "LazyConv1d LazyConv2d LazyConv3d LazyConvTranspose1d LazyConvTranspose2d "
            "LazyConvTranspose3d"
        ),
    },
    package="rushlight.nn.modules",
)
