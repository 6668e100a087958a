"""Layers that take the maximum or mean over windows."""

from __future__ import annotations

from typing import Any

from rushlight import Tensor
from rushlight.nn import functional as F
from rushlight.nn.modules._special_pooling import (
    FractionalMaxPool2d,
    FractionalMaxPool3d,
    LPPool1d,
    LPPool2d,
    LPPool3d,
    MaxUnpool1d,
    MaxUnpool2d,
    MaxUnpool3d,
)
from rushlight.nn.modules._special_pooling import _LPPoolNd as _LPPoolNd
from rushlight.nn.modules._special_pooling import _MaxUnpoolNd as _MaxUnpoolNd
from rushlight.nn.modules.module import Module
from rushlight.nn.modules.utils import _pair as _pair
from rushlight.nn.modules.utils import _single
from rushlight.nn.modules.utils import _triple as _triple

__all__ = [
    "AdaptiveAvgPool1d",
    "AdaptiveAvgPool2d",
    "AdaptiveAvgPool3d",
    "AdaptiveMaxPool1d",
    "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d",
    "AvgPool1d",
    "AvgPool2d",
    "AvgPool3d",
    "FractionalMaxPool2d",
    "FractionalMaxPool3d",
    "LPPool1d",
    "LPPool2d",
    "LPPool3d",
    "MaxPool1d",
    "MaxPool2d",
    "MaxPool3d",
    "MaxUnpool1d",
    "MaxUnpool2d",
    "MaxUnpool3d",
]


class _MaxPoolNd(Module):
    def __init__(
        self,
        kernel_size: int | tuple[int, ...],
        stride: int | tuple[int, ...] | None = None,
        padding: int | tuple[int, ...] = 0,
        dilation: int | tuple[int, ...] = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.dilation = dilation
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode

    def extra_repr(self) -> str:
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, "
            f"dilation={self.dilation}, ceil_mode={self.ceil_mode}"
        )


class MaxPool1d(_MaxPoolNd):
    """Maximum over windows of a sequence.

    Output length: floor((L + 2 * padding - dilation * (kernel_size - 1) - 1) / stride) + 1.

    Args:
        kernel_size: length of the window.
        stride: step between windows; kernel_size if None.
        padding: -inf added at both ends, at most half of kernel_size.
        dilation: distance between the window's elements.
        return_indices: whether to return the positions of the maxima as well.
        ceil_mode: whether to round the output length up, so that a window may overhang.

    Shape:
        (N, C, L) or (C, L) to the same with L_out.

    Example:
        >>> torch.nn.MaxPool1d(2)(torch.tensor([[1.0, 3.0, 2.0, 0.0]])).tolist()
        [[3.0, 2.0]]
    """

    def forward(self, input: Tensor) -> Any:
        return F.max_pool1d(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.dilation,
            ceil_mode=self.ceil_mode,
            return_indices=self.return_indices,
        )


class MaxPool2d(_MaxPoolNd):
    """Maximum over windows of images.

    Output height: floor((H + 2 * padding - dilation * (kernel_size - 1) - 1) / stride) + 1, and
    likewise the width.

    Args:
        kernel_size: height and width of the window; one number for a square.
        stride: step between windows; kernel_size if None.
        padding: -inf added at both sides, at most half of kernel_size.
        dilation: distance between the window's elements.
        return_indices: whether to return the positions of the maxima, in each flattened plane.
        ceil_mode: whether to round the output size up, so that a window may overhang.

    Shape:
        (N, C, H, W) or (C, H, W) to the same with (H_out, W_out).

    Example:
        >>> x = torch.tensor([[[1.0, 2.0], [3.0, 4.0]]])
        >>> torch.nn.MaxPool2d(2)(x).tolist()
        [[[4.0]]]
    """

    def forward(self, input: Tensor) -> Any:
        return F.max_pool2d(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.dilation,
            ceil_mode=self.ceil_mode,
            return_indices=self.return_indices,
        )


class MaxPool3d(_MaxPoolNd):
    """Maximum over windows of volumes.

    Output depth: floor((D + 2 * padding - dilation * (kernel_size - 1) - 1) / stride) + 1, and
    likewise height and width.

    Args:
        kernel_size: depth, height and width of the window; one number for a cube.
        stride: step between windows; kernel_size if None. The other arguments are those of
            MaxPool2d.

    Shape:
        (N, C, D, H, W) or (C, D, H, W) to the same with (D_out, H_out, W_out).

    Example:
        >>> torch.nn.MaxPool3d(2)(torch.arange(8.0).reshape(1, 2, 2, 2)).tolist()
        [[[[7.0]]]]
    """

    def forward(self, input: Tensor) -> Any:
        return F.max_pool3d(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.dilation,
            ceil_mode=self.ceil_mode,
            return_indices=self.return_indices,
        )


class AvgPool1d(Module):
    """Mean over windows of a sequence.

    Output length: floor((L + 2 * padding - kernel_size) / stride) + 1.

    Args:
        kernel_size: length of the window.
        stride: step between windows; kernel_size if None.
        padding: zeros added at both ends, at most half of kernel_size.
        ceil_mode: whether to round the output length up, so that a window may overhang.
        count_include_pad: whether padding counts in the number to divide by.

    Shape:
        (N, C, L) or (C, L) to the same with L_out.

    Example:
        >>> torch.nn.AvgPool1d(2)(torch.tensor([[1.0, 3.0, 2.0, 0.0]])).tolist()
        [[2.0, 1.0]]
    """

    def __init__(
        self,
        kernel_size: int | tuple[int],
        stride: int | tuple[int] | None = None,
        padding: int | tuple[int] = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        super().__init__()
        self.kernel_size = _single(kernel_size)
        self.stride = self.kernel_size if stride is None else _single(stride)
        self.padding = _single(padding)
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad

    def forward(self, input: Tensor) -> Tensor:
        return F.avg_pool1d(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
        )

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class _AvgPoolNd(Module):
    def __init__(
        self,
        kernel_size: int | tuple[int, ...],
        stride: int | tuple[int, ...] | None = None,
        padding: int | tuple[int, ...] = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool2d(_AvgPoolNd):
    """Mean over windows of images.

    Output height: floor((H + 2 * padding - kernel_size) / stride) + 1, and likewise the width.

    Args:
        kernel_size: height and width of the window; one number for a square.
        stride: step between windows; kernel_size if None.
        padding: zeros added at both sides, at most half of kernel_size.
        ceil_mode: whether to round the output size up, so that a window may overhang.
        count_include_pad: whether padding counts in the number to divide by.
        divisor_override: number to divide by in place of the window's size.

    Shape:
        (N, C, H, W) or (C, H, W) to the same with (H_out, W_out).

    Example:
        >>> x = torch.tensor([[[1.0, 2.0], [3.0, 4.0]]])
        >>> torch.nn.AvgPool2d(2)(x).tolist()
        [[[2.5]]]
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.avg_pool2d(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
            self.divisor_override,
        )


class AvgPool3d(_AvgPoolNd):
    """Mean over windows of volumes.

    Output depth: floor((D + 2 * padding - kernel_size) / stride) + 1, and likewise height and
    width.

    Args:
        kernel_size: depth, height and width of the window; one number for a cube.
        stride: step between windows; kernel_size if None. The other arguments are those of
            AvgPool2d.

    Shape:
        (N, C, D, H, W) or (C, D, H, W) to the same with (D_out, H_out, W_out).

    Example:
        >>> torch.nn.AvgPool3d(2)(torch.arange(8.0).reshape(1, 2, 2, 2)).tolist()
        [[[[3.5]]]]
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.avg_pool3d(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
            self.divisor_override,
        )


class _AdaptiveAvgPoolNd(Module):
    def __init__(self, output_size: int | tuple[int | None, ...] | None) -> None:
        super().__init__()
        self.output_size: Any = output_size

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveAvgPool1d(_AdaptiveAvgPoolNd):
    """Mean over as many windows as the output shall have elements.

    Window i reaches from floor(i * L / output_size) to ceil((i + 1) * L / output_size).

    Args:
        output_size: length of the output.

    Shape:
        (N, C, L) or (C, L) to the same with output_size.

    Example:
        >>> torch.nn.AdaptiveAvgPool1d(2)(torch.tensor([[1.0, 3.0, 2.0, 0.0]])).tolist()
        [[2.0, 1.0]]
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.adaptive_avg_pool1d(input, self.output_size)


class AdaptiveAvgPool2d(_AdaptiveAvgPoolNd):
    """Mean over as many windows as the output shall have pixels.

    Row i covers the rows from floor(i * H / H_out) to ceil((i + 1) * H / H_out), and likewise the
    columns.

    Args:
        output_size: (H_out, W_out), or one number for a square; None keeps the input's size.

    Shape:
        (N, C, H, W) or (C, H, W) to the same with (H_out, W_out).

    Example:
        >>> tuple(torch.nn.AdaptiveAvgPool2d((1, None))(torch.zeros(2, 3, 5, 7)).shape)
        (2, 3, 1, 7)
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.adaptive_avg_pool2d(input, self.output_size)


class AdaptiveAvgPool3d(_AdaptiveAvgPoolNd):
    """Mean over as many windows as the output shall have voxels.

    The windows along each dim are those of AdaptiveAvgPool2d.

    Args:
        output_size: (D_out, H_out, W_out), or one number for a cube; None keeps the input's size.

    Shape:
        (N, C, D, H, W) or (C, D, H, W) to the same with (D_out, H_out, W_out).

    Example:
        >>> tuple(torch.nn.AdaptiveAvgPool3d((1, 2, None))(torch.zeros(2, 3, 4, 5, 7)).shape)
        (2, 3, 1, 2, 7)
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.adaptive_avg_pool3d(input, self.output_size)


class _AdaptiveMaxPoolNd(Module):
    def __init__(
        self, output_size: int | tuple[int | None, ...] | None, return_indices: bool = False
    ) -> None:
        super().__init__()
        self.output_size: Any = output_size
        self.return_indices = return_indices

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveMaxPool1d(_AdaptiveMaxPoolNd):
    """Maximum over as many windows as the output shall have elements.

    The windows are those of AdaptiveAvgPool1d.

    Args:
        output_size: length of the output.
        return_indices: whether to return the positions of the maxima as well.

    Shape:
        (N, C, L) or (C, L) to the same with output_size.

    Example:
        >>> torch.nn.AdaptiveMaxPool1d(2)(torch.tensor([[1.0, 3.0, 2.0, 0.0]])).tolist()
        [[3.0, 2.0]]
    """

    def forward(self, input: Tensor) -> Any:
        return F.adaptive_max_pool1d(input, self.output_size, self.return_indices)


class AdaptiveMaxPool2d(_AdaptiveMaxPoolNd):
    """Maximum over as many windows as the output shall have pixels.

    The windows are those of AdaptiveAvgPool2d.

    Args:
        output_size: (H_out, W_out), or one number for a square; None keeps the input's size.
        return_indices: whether to return the positions of the maxima, in each flattened plane.

    Shape:
        (N, C, H, W) or (C, H, W) to the same with (H_out, W_out).

    Example:
        >>> torch.nn.AdaptiveMaxPool2d(1)(torch.tensor([[[1.0, 2.0], [3.0, 4.0]]])).tolist()
        [[[4.0]]]
    """

    def forward(self, input: Tensor) -> Any:
        return F.adaptive_max_pool2d(input, self.output_size, self.return_indices)


class AdaptiveMaxPool3d(_AdaptiveMaxPoolNd):
    """Maximum over as many windows as the output shall have voxels.

    The windows are those of AdaptiveAvgPool3d.

    Args:
        output_size: (D_out, H_out, W_out), or one number for a cube; None keeps the input's size.
        return_indices: whether to return the positions of the maxima, in each flattened volume.

    Shape:
        (N, C, D, H, W) or (C, D, H, W) to the same with (D_out, H_out, W_out).

    Example:
        >>> torch.nn.AdaptiveMaxPool3d(1)(torch.arange(8.0).reshape(1, 2, 2, 2)).tolist()
        [[[[7.0]]]]
    """

    def forward(self, input: Tensor) -> Any:
        return F.adaptive_max_pool3d(input, self.output_size, self.return_indices)
