"""The pooling functions whose arguments decide what they return, in front of the core's ops.

nn.functional installs them over the ops of the same names; they hold no state.
"""

from __future__ import annotations

from typing import Any

from rushlight import _C, Tensor
from rushlight._overridable import overridable

Sizes = int | tuple[int, ...]
OutputSize = int | tuple[int | None, ...] | None

__all__ = [
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    "adaptive_max_pool1d",
    "adaptive_max_pool2d",
    "adaptive_max_pool3d",
    "max_pool1d",
    "max_pool2d",
    "max_pool3d",
]

_ops = _C.ops("nn.functional")
_adaptive_avg_pool2d = _ops["adaptive_avg_pool2d"]
_adaptive_avg_pool3d = _ops["adaptive_avg_pool3d"]
_adaptive_max_pool1d = _ops["adaptive_max_pool1d_with_indices"]
_adaptive_max_pool2d = _ops["adaptive_max_pool2d_with_indices"]
_adaptive_max_pool3d = _ops["adaptive_max_pool3d_with_indices"]
_max_pool1d, _max_pool1d_with_indices = _ops["max_pool1d"], _ops["max_pool1d_with_indices"]
_max_pool2d, _max_pool2d_with_indices = _ops["max_pool2d"], _ops["max_pool2d_with_indices"]
_max_pool3d, _max_pool3d_with_indices = _ops["max_pool3d"], _ops["max_pool3d_with_indices"]


@overridable
def max_pool1d(
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Returns the maxima over windows of sequences.

    Output length: floor((L + 2 * padding - dilation * (kernel_size - 1) - 1) / stride) + 1, rounded
    up with ceil_mode.

    Args:
        input: (N, C, L) or (C, L).
        kernel_size: length of the window.
        stride: step between windows; kernel_size if None.
        padding: -inf added at both ends, at most half of the window.
        dilation: distance between the window's elements.
        ceil_mode: whether a window may overhang the end.
        return_indices: whether to return the places of the maxima in their sequences as well.

    Example:
        >>> x = torch.tensor([[1.0, 3.0, 2.0, 0.0]])
        >>> torch.nn.functional.max_pool1d(x, 2).tolist()
        [[3.0, 2.0]]
    """
    pool = _max_pool1d_with_indices if return_indices else _max_pool1d
    return pool(input, kernel_size, stride, padding, dilation, ceil_mode)


@overridable
def max_pool2d(
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Returns the maxima over windows of images.

    Output height: floor((H + 2 * padding - dilation * (kernel_size - 1) - 1) / stride) + 1, rounded
    up with ceil_mode, and likewise the width.

    Args:
        input: (N, C, H, W) or (C, H, W).
        kernel_size: height and width of the window.
        stride: step between windows; kernel_size if None.
        padding: -inf added at all sides, at most half of the window.
        dilation: distance between the window's elements.
        ceil_mode: whether a window may overhang the image.
        return_indices: whether to return the places of the maxima in their flattened images as
            well.

    Example:
        >>> x = torch.tensor([[[1.0, 2.0], [3.0, 4.0]]])
        >>> torch.nn.functional.max_pool2d(x, 2).tolist()
        [[[4.0]]]
    """
    pool = _max_pool2d_with_indices if return_indices else _max_pool2d
    return pool(input, kernel_size, stride, padding, dilation, ceil_mode)


@overridable
def max_pool3d(
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Returns the maxima over windows of volumes: max_pool2d with a depth before the height.

    Args:
        input: (N, C, D, H, W) or (C, D, H, W).
        kernel_size: depth, height and width of the window.
        stride: step between windows; kernel_size if None.
        padding: -inf added at all sides, at most half of the window.
        dilation: distance between the window's elements.
        ceil_mode: whether a window may overhang the volume.
        return_indices: whether to return the places of the maxima in their flattened volumes as
            well.

    Example:
        >>> x = torch.arange(8.0).reshape(1, 2, 2, 2)
        >>> torch.nn.functional.max_pool3d(x, 2).tolist()
        [[[[7.0]]]]
    """
    pool = _max_pool3d_with_indices if return_indices else _max_pool3d
    return pool(input, kernel_size, stride, padding, dilation, ceil_mode)


def _full_size(op: str, input: Tensor, output_size: OutputSize, dims: int) -> Any:
    """The output size with the input's own sizes in the place of None."""
    if output_size is None:
        return tuple(input.shape[-dims:])
    if not isinstance(output_size, (tuple, list)):
        return output_size
    if isinstance(input, Tensor) and input.dim() <= len(output_size):
        raise ValueError(
            f"{op}: input has shape {tuple(input.shape)}, but the output size "
            f"{output_size} needs one of at least {len(output_size) + 1} dims."
        )
    if None not in output_size:
        return output_size
    own = input.shape[-len(output_size) :]
    return tuple(old if new is None else new for new, old in zip(output_size, own, strict=True))


@overridable
def adaptive_avg_pool2d(input: Tensor, output_size: OutputSize) -> Tensor:
    """Returns the means of windows that share an image out as evenly as they can.

    Along each dim, output i covers the elements from floor(i * size / output_size) to below
    ceil((i + 1) * size / output_size).

    Args:
        input: (N, C, H, W) or (C, H, W).
        output_size: height and width of the output; None keeps the input's.

    Example:
        >>> x = torch.tensor([[[1.0, 2.0], [3.0, 4.0]]])
        >>> torch.nn.functional.adaptive_avg_pool2d(x, (1, None)).tolist()
        [[[2.0, 3.0]]]
    """
    return _adaptive_avg_pool2d(input, _full_size("adaptive_avg_pool2d", input, output_size, 2))


@overridable
def adaptive_avg_pool3d(input: Tensor, output_size: OutputSize) -> Tensor:
    """Returns the means of windows that share a volume out as evenly as they can.

    Along each dim, output i covers the elements from floor(i * size / output_size) to below
    ceil((i + 1) * size / output_size).

    Args:
        input: (N, C, D, H, W) or (C, D, H, W).
        output_size: depth, height and width of the output; None keeps the input's.

    Example:
        >>> x = torch.arange(8.0).reshape(1, 2, 2, 2)
        >>> torch.nn.functional.adaptive_avg_pool3d(x, (1, 1, None)).tolist()
        [[[[3.0, 4.0]]]]
    """
    return _adaptive_avg_pool3d(input, _full_size("adaptive_avg_pool3d", input, output_size, 3))


@overridable
def adaptive_max_pool1d(input: Tensor, output_size: Sizes, return_indices: bool = False) -> Any:
    """Returns the maxima of the windows of adaptive_avg_pool1d.

    Args:
        input: (N, C, L) or (C, L).
        output_size: length of the output.
        return_indices: whether to return the places of the maxima in their sequences as well.

    Example:
        >>> x = torch.tensor([[1.0, 3.0, 2.0, 0.0]])
        >>> torch.nn.functional.adaptive_max_pool1d(x, 2).tolist()
        [[3.0, 2.0]]
    """
    values, indices = _adaptive_max_pool1d(input, output_size)
    return (values, indices) if return_indices else values


@overridable
def adaptive_max_pool2d(
    input: Tensor, output_size: OutputSize, return_indices: bool = False
) -> Any:
    """Returns the maxima of the windows of adaptive_avg_pool2d.

    Args:
        input: (N, C, H, W) or (C, H, W).
        output_size: height and width of the output; None keeps the input's.
        return_indices: whether to return the places of the maxima in their flattened images as
            well.

    Example:
        >>> x = torch.tensor([[[1.0, 2.0], [3.0, 4.0]]])
        >>> torch.nn.functional.adaptive_max_pool2d(x, 1).tolist()
        [[[4.0]]]
    """
    values, indices = _adaptive_max_pool2d(
        input, _full_size("adaptive_max_pool2d", input, output_size, 2)
    )
    return (values, indices) if return_indices else values


@overridable
def adaptive_max_pool3d(
    input: Tensor, output_size: OutputSize, return_indices: bool = False
) -> Any:
    """Returns the maxima of the windows of adaptive_avg_pool3d.

    Args:
        input: (N, C, D, H, W) or (C, D, H, W).
        output_size: depth, height and width of the output; None keeps the input's.
        return_indices: whether to return the places of the maxima in their flattened volumes as
            well.

    Example:
        >>> x = torch.arange(8.0).reshape(1, 2, 2, 2)
        >>> torch.nn.functional.adaptive_max_pool3d(x, 1).tolist()
        [[[[7.0]]]]
    """
    values, indices = _adaptive_max_pool3d(
        input, _full_size("adaptive_max_pool3d", input, output_size, 3)
    )
    return (values, indices) if return_indices else values
