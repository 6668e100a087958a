"""Deformable convolution: each element of a window is read where an offset says."""

from __future__ import annotations

import math
from collections.abc import Sequence

import rushlight as rl
from rushlight import _C, Tensor, nn
from rushlight.nn.modules.utils import _pair

__all__ = ["DeformConv2d", "deform_conv2d"]

Pair = int | Sequence[int]

_deform_conv2d = _C.ops("vision.ops")["_deform_conv2d"]


def deform_conv2d(
    input: Tensor,
    offset: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Pair = (1, 1),
    padding: Pair = (0, 0),
    dilation: Pair = (1, 1),
    mask: Tensor | None = None,
) -> Tensor:
    """Returns the convolution of images whose windows are bent by offsets.

    Source: Zhu et al., "Deformable ConvNets v2", 2018; without a mask it is their first version.

    Args:
        input: (N, C, H, W).
        offset: (N, 2 * offset_groups * kH * kW, H_out, W_out): y and x of each element of a window.
        weight: (C_out, C / groups, kH, kW).
        bias: (C_out,).
        stride: step between windows.
        padding: zeros added at all sides.
        dilation: distance between the window's elements.
        mask: (N, offset_groups * kH * kW, H_out, W_out), factors of the elements.

    Returns:
        (N, C_out, H_out, W_out).

    Example:
        >>> image, weight = torch.rand(1, 3, 8, 8), torch.rand(4, 3, 3, 3)
        >>> straight = deform_conv2d(image, torch.zeros(1, 18, 6, 6), weight)
        >>> torch.allclose(straight, torch.nn.functional.conv2d(image, weight), atol=1e-5)
        True
    """
    sizes = _pair(stride), _pair(padding), _pair(dilation)
    return _deform_conv2d(input, weight, offset, mask, bias, *sizes)


class DeformConv2d(nn.Module):
    """Does deform_conv2d with a weight and a bias that learn.

    Args:
        in_channels: C, channels of the input.
        out_channels: channels of the result.
        kernel_size: height and width of the window.
        stride: step between windows.
        padding: zeros added at all sides.
        dilation: distance between the window's elements.
        groups: groups of channels that do not see each other.
        bias: whether a bias is added.

    Raises:
        ValueError: if groups do not divide in_channels or out_channels.

    Example:
        >>> layer = DeformConv2d(3, 8, 3, padding=1)
        >>> layer(torch.rand(1, 3, 8, 8), torch.zeros(1, 18, 8, 8)).shape
        torch.Size([1, 8, 8, 8])
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Pair,
        stride: Pair = 1,
        padding: Pair = 0,
        dilation: Pair = 1,
        groups: int = 1,
        bias: bool = True,
    ) -> None:
        super().__init__()
        for name, channels in (("in_channels", in_channels), ("out_channels", out_channels)):
            if channels % groups != 0:
                raise ValueError(
                    f"DeformConv2d: {name} must be divisible by groups, but they are {channels} "
                    f"and {groups}."
                )
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = _pair(kernel_size)
        self.stride = _pair(stride)
        self.padding = _pair(padding)
        self.dilation = _pair(dilation)
        self.groups = groups
        self.weight = nn.Parameter(rl.empty(out_channels, in_channels // groups, *self.kernel_size))
        self.bias = nn.Parameter(rl.empty(out_channels)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws weight and bias as a convolution's are."""
        nn.init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            bound = 1 / math.sqrt(self.weight[0].numel())
            nn.init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Tensor, offset: Tensor, mask: Tensor | None = None) -> Tensor:
        sizes = self.stride, self.padding, self.dilation
        return deform_conv2d(input, offset, self.weight, self.bias, *sizes, mask=mask)

    def __repr__(self) -> str:
        shown = [f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}"]
        shown.append(f"stride={self.stride}")
        for name, usual in (("padding", (0, 0)), ("dilation", (1, 1)), ("groups", 1)):
            if getattr(self, name) != usual:
                shown.append(f"{name}={getattr(self, name)}")
        if self.bias is None:
            shown.append("bias=False")
        return f"{type(self).__name__}({', '.join(shown)})"
