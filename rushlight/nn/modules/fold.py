"""Layers that lay the windows of images out as columns, and back."""

from __future__ import annotations

from rushlight import Tensor
from rushlight.nn import functional as F
from rushlight.nn.modules.module import Module

__all__ = ["Fold", "Unfold"]


class Fold(Module):
    """Columns added up to images: where windows share a pixel their values are added.

    Args:
        output_size: height and width of the images.
        kernel_size: height and width of the window.
        dilation: distance between the window's elements.
        padding: zeros that were added at all sides.
        stride: step between windows.

    Shape:
        (N, C * window, outputs) or (C * window, outputs) to (N, C, H, W) or (C, H, W).

    Example:
        >>> torch.nn.Fold((1, 3), (1, 2))(torch.ones(1, 2, 2)).tolist()
        [[[[1.0, 2.0, 1.0]]]]
    """

    def __init__(
        self,
        output_size: int | tuple[int, ...],
        kernel_size: int | tuple[int, ...],
        dilation: int | tuple[int, ...] = 1,
        padding: int | tuple[int, ...] = 0,
        stride: int | tuple[int, ...] = 1,
    ) -> None:
        super().__init__()
        self.output_size = output_size
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def forward(self, input: Tensor) -> Tensor:
        return F.fold(
            input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride
        )

    def extra_repr(self) -> str:
        return (
            f"output_size={self.output_size}, kernel_size={self.kernel_size}, "
            f"dilation={self.dilation}, padding={self.padding}, stride={self.stride}"
        )


class Unfold(Module):
    """The windows of images as columns.

    There are floor((H + 2 * padding - dilation * (kernel_size - 1) - 1) / stride) + 1 windows along
    the height, and likewise along the width.

    Args:
        kernel_size: height and width of the window.
        dilation: distance between the window's elements.
        padding: zeros added at all sides.
        stride: step between windows.

    Shape:
        (N, C, H, W) or (C, H, W) to (N, C * window, outputs) or (C * window, outputs).

    Example:
        >>> torch.nn.Unfold((1, 2))(torch.tensor([[[[1.0, 2.0, 3.0]]]])).tolist()
        [[[1.0, 2.0], [2.0, 3.0]]]
    """

    def __init__(
        self,
        kernel_size: int | tuple[int, ...],
        dilation: int | tuple[int, ...] = 1,
        padding: int | tuple[int, ...] = 0,
        stride: int | tuple[int, ...] = 1,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def forward(self, input: Tensor) -> Tensor:
        return F.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self) -> str:
        return (
            f"kernel_size={self.kernel_size}, dilation={self.dilation}, padding={self.padding}, "
            f"stride={self.stride}"
        )
