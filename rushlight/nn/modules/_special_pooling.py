"""The rarer pooling layers: p-norms, windows at random, and the inverse of max pooling."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from rushlight import Tensor
from rushlight.nn import functional as F
from rushlight.nn.modules.module import Module
from rushlight.nn.modules.utils import _pair, _single, _triple

Sizes = int | tuple[int, ...]

__all__ = [
    "FractionalMaxPool2d",
    "FractionalMaxPool3d",
    "LPPool1d",
    "LPPool2d",
    "LPPool3d",
    "MaxUnpool1d",
    "MaxUnpool2d",
    "MaxUnpool3d",
]


class _LPPoolNd(Module):
    def __init__(
        self,
        norm_type: float,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.norm_type = norm_type
        self.kernel_size = kernel_size
        self.stride = stride
        self.ceil_mode = ceil_mode

    def extra_repr(self) -> str:
        return (
            f"norm_type={self.norm_type}, kernel_size={self.kernel_size}, stride={self.stride}, "
            f"ceil_mode={self.ceil_mode}"
        )


class LPPool1d(_LPPoolNd):
    """p-norm of windows of sequences: sum(x ** p) ** (1 / p).

    Args:
        norm_type: p; 1 gives sums.
        kernel_size: length of the window.
        stride: step between windows; kernel_size if None.
        ceil_mode: whether to round the output size up, so that a window may overhang.

    Shape:
        (N, C, L) or (C, L) to the same with L_out.

    Example:
        >>> torch.nn.LPPool1d(2, 2)(torch.tensor([[3.0, 4.0, 0.0, 1.0]])).tolist()
        [[5.0, 1.0]]
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.lp_pool1d(
            input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode
        )


class LPPool2d(_LPPoolNd):
    """p-norm of windows of images: sum(x ** p) ** (1 / p).

    Args:
        norm_type: p; 1 gives sums.
        kernel_size: height and width of the window; one number for a square.
        stride: step between windows; kernel_size if None.
        ceil_mode: whether to round the output size up, so that a window may overhang.

    Shape:
        (N, C, H, W) or (C, H, W) to the same with (H_out, W_out).

    Example:
        >>> torch.nn.LPPool2d(1, 2)(torch.ones(1, 2, 2)).tolist()
        [[[4.0]]]
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.lp_pool2d(
            input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode
        )


class LPPool3d(_LPPoolNd):
    """p-norm of windows of volumes: sum(x ** p) ** (1 / p).

    Args:
        norm_type: p; 1 gives sums.
        kernel_size: depth, height and width of the window; one number for a cube.
        stride: step between windows; kernel_size if None.
        ceil_mode: whether to round the output size up, so that a window may overhang.

    Shape:
        (N, C, D, H, W) or (C, D, H, W) to the same with (D_out, H_out, W_out).

    Example:
        >>> torch.nn.LPPool3d(1, 2)(torch.ones(1, 2, 2, 2)).tolist()
        [[[[8.0]]]]
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.lp_pool3d(
            input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode
        )


class _FractionalMaxPoolNd(Module):
    # Spreads one number over the dimensions; set by each subclass.
    _ntuple: Callable[[Any], tuple[Any, ...]]

    def __init__(
        self,
        kernel_size: Sizes,
        output_size: Sizes | None = None,
        output_ratio: float | tuple[float, ...] | None = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> None:
        super().__init__()
        name = type(self).__name__
        self.kernel_size = self._ntuple(kernel_size)
        self.return_indices = return_indices
        self.register_buffer("_random_samples", _random_samples)
        self.output_size = None if output_size is None else self._ntuple(output_size)
        self.output_ratio = None if output_ratio is None else self._ntuple(output_ratio)
        if output_size is None and output_ratio is None:
            raise ValueError(
                f"{name} requires specifying either an output size, or a pooling ratio"
            )
        if output_size is not None and output_ratio is not None:
            raise ValueError("only one of output_size and output_ratio may be specified")
        if self.output_ratio is not None and not all(0 < r < 1 for r in self.output_ratio):
            raise ValueError(f"{name}: output_ratio must be between 0 and 1 (got {output_ratio})")


class FractionalMaxPool2d(_FractionalMaxPoolNd):
    """Maximum over windows of images that lie at random, anew in each call (Graham 2014).

    Args:
        kernel_size: height and width of the window; one number for a square.
        output_size: height and width of the output.
        output_ratio: the output's size over the input's, in its place; numbers in (0, 1).
        return_indices: whether to return the positions of the maxima, in each flattened plane.
        _random_samples: (N, C, 2) numbers in [0, 1) that say where the windows lie, for tests.

    Shape:
        (N, C, H, W) or (C, H, W) to the same with the output's size.

    Raises:
        ValueError: unless just one of output_size and output_ratio is given.

    Example:
        >>> layer = torch.nn.FractionalMaxPool2d(2, output_ratio=0.5)
        >>> tuple(layer(torch.zeros(1, 6, 6)).shape)
        (1, 3, 3)
    """

    _ntuple = staticmethod(_pair)

    def forward(self, input: Tensor) -> Any:
        return F.fractional_max_pool2d(
            input,
            self.kernel_size,
            self.output_size,
            self.output_ratio,
            self.return_indices,
            _random_samples=self._random_samples,
        )


class FractionalMaxPool3d(_FractionalMaxPoolNd):
    """Maximum over windows of volumes that lie at random, anew in each call (Graham 2014).

    Args:
        kernel_size: depth, height and width of the window; one number for a cube.
        output_size: depth, height and width of the output.
        output_ratio: the output's size over the input's, in its place; numbers in (0, 1).
        return_indices: whether to return the positions of the maxima, in each flattened plane.
        _random_samples: (N, C, 3) numbers in [0, 1) that say where the windows lie, for tests.

    Shape:
        (N, C, D, H, W) or (C, D, H, W) to the same with the output's size.

    Raises:
        ValueError: unless just one of output_size and output_ratio is given.

    Example:
        >>> layer = torch.nn.FractionalMaxPool3d(2, output_ratio=0.5)
        >>> tuple(layer(torch.zeros(1, 6, 6, 6)).shape)
        (1, 3, 3, 3)
    """

    _ntuple = staticmethod(_triple)

    def forward(self, input: Tensor) -> Any:
        return F.fractional_max_pool3d(
            input,
            self.kernel_size,
            self.output_size,
            self.output_ratio,
            self.return_indices,
            _random_samples=self._random_samples,
        )


class _MaxUnpoolNd(Module):
    # Spreads one number over the dimensions; set by each subclass.
    _ntuple: Callable[[Any], tuple[Any, ...]]

    def __init__(self, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0) -> None:
        super().__init__()
        self.kernel_size = self._ntuple(kernel_size)
        self.stride = self.kernel_size if stride is None else self._ntuple(stride)
        self.padding = self._ntuple(padding)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class MaxUnpool1d(_MaxUnpoolNd):
    """Puts maxima of sequences back where MaxPool1d found them, among zeros.

    Args:
        kernel_size: length of the window that was pooled.
        stride: step between windows; kernel_size if None.
        padding: what was added at the sides.

    Shape:
        (N, C, L) or (C, L) and places of the same shape, to the size before
        pooling, which forward's output_size says where several are possible.

    Example:
        >>> x = torch.tensor([[1.0, 3.0, 2.0, 0.0]])
        >>> y, places = torch.nn.MaxPool1d(2, return_indices=True)(x)
        >>> torch.nn.MaxUnpool1d(2)(y, places).tolist()
        [[0.0, 3.0, 2.0, 0.0]]
    """

    _ntuple = staticmethod(_single)

    def forward(
        self, input: Tensor, indices: Tensor, output_size: Sequence[int] | None = None
    ) -> Tensor:
        return F.max_unpool1d(
            input, indices, self.kernel_size, self.stride, self.padding, output_size
        )


class MaxUnpool2d(_MaxUnpoolNd):
    """Puts maxima of images back where MaxPool2d found them, among zeros.

    Args:
        kernel_size: height and width of the window that was pooled.
        stride: step between windows; kernel_size if None.
        padding: what was added at the sides.

    Shape:
        (N, C, H, W) or (C, H, W) and places of the same shape, to the size before
        pooling, which forward's output_size says where several are possible.

    Example:
        >>> x = torch.tensor([[[1.0, 2.0], [4.0, 3.0]]])
        >>> y, places = torch.nn.MaxPool2d(2, return_indices=True)(x)
        >>> torch.nn.MaxUnpool2d(2)(y, places).tolist()
        [[[0.0, 0.0], [4.0, 0.0]]]
    """

    _ntuple = staticmethod(_pair)

    def forward(
        self, input: Tensor, indices: Tensor, output_size: Sequence[int] | None = None
    ) -> Tensor:
        return F.max_unpool2d(
            input, indices, self.kernel_size, self.stride, self.padding, output_size
        )


class MaxUnpool3d(_MaxUnpoolNd):
    """Puts maxima of volumes back where MaxPool3d found them, among zeros.

    Args:
        kernel_size: depth, height and width of the window that was pooled.
        stride: step between windows; kernel_size if None.
        padding: what was added at the sides.

    Shape:
        (N, C, D, H, W) or (C, D, H, W) and places of the same shape, to the size before
        pooling, which forward's output_size says where several are possible.

    Example:
        >>> x = torch.arange(8.0).reshape(1, 2, 2, 2)
        >>> y, places = torch.nn.MaxPool3d(2, return_indices=True)(x)
        >>> torch.nn.MaxUnpool3d(2)(y, places).tolist()
        [[[[0.0, 0.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, 7.0]]]]
    """

    _ntuple = staticmethod(_triple)

    def forward(
        self, input: Tensor, indices: Tensor, output_size: Sequence[int] | None = None
    ) -> Tensor:
        return F.max_unpool3d(
            input, indices, self.kernel_size, self.stride, self.padding, output_size
        )
