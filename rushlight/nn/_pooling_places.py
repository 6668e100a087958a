"""Pooling by places: maxima over windows that lie at random, and the inverse of max pooling.

Owns what their arguments mean; the work is done by private ops of the core.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import rushlight as rl
from rushlight import _C, Tensor
from rushlight._overridable import overridable

Sizes = int | Sequence[int]
Ratio = float | Sequence[float]

__all__ = [
    "fractional_max_pool2d",
    "fractional_max_pool2d_with_indices",
    "fractional_max_pool3d",
    "fractional_max_pool3d_with_indices",
    "max_unpool1d",
    "max_unpool2d",
    "max_unpool3d",
]


def _numbers(value: Any, dims: int, name: str) -> tuple[Any, ...]:
    """An argument as one number for each dim."""
    numbers = (value,) * dims if isinstance(value, (int, float)) else tuple(value)
    if len(numbers) != dims:
        raise RuntimeError(f"{name}: expected a number or {dims} numbers, but got {value}.")
    return numbers


def _batched(dims: int, name: str, input: Tensor) -> Tensor:
    """The input with a batch, which may be of one."""
    if input.dim() not in (dims + 1, dims + 2):
        raise RuntimeError(
            f"{name}: expected {dims + 1}D or {dims + 2}D (batch mode) input, but got shape "
            f"{tuple(input.shape)}."
        )
    return input if input.dim() == dims + 2 else input.unsqueeze(0)


def _fractional_max_pool(
    dims: int,
    input: Tensor,
    kernel_size: Sizes,
    output_size: Sizes | None,
    output_ratio: Ratio | None,
    samples: Tensor | None,
) -> tuple[Tensor, Tensor]:
    name = f"fractional_max_pool{dims}d"
    batch = _batched(dims, name, input)
    if 0 in input.shape[1:]:
        raise RuntimeError(
            f"{name}: Expected input to have non-zero size for non-batch dimensions, but got "
            f"{tuple(input.shape)}."
        )
    if output_size is None:
        if output_ratio is None:
            raise ValueError(f"{name} requires specifying either an output_size or an output_ratio")
        if not isinstance(output_ratio, (int, float)) and len(output_ratio) != dims:
            raise ValueError(f"{name}: output_ratio is one number or {dims}, got {output_ratio}.")
        sizes = zip(batch.shape[2:], _numbers(output_ratio, dims, name), strict=True)
        output_size = [int(size * ratio) for size, ratio in sizes]
    if samples is None:
        samples = rl.rand((*batch.shape[:2], dims), dtype=input.dtype, device=input.device)
    samples = samples[: len(batch)]  # there may be more
    values, indices = _C._fractional_max_pool(
        batch, samples, _numbers(kernel_size, dims, name), _numbers(output_size, dims, name)
    )
    return (values, indices) if batch is input else (values.squeeze(0), indices.squeeze(0))


@overridable
def fractional_max_pool2d_with_indices(
    input: Tensor,
    kernel_size: Sizes,
    output_size: Sizes | None = None,
    output_ratio: Ratio | None = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Returns what fractional_max_pool2d returns, and the places of the maxima."""
    return _fractional_max_pool(2, input, kernel_size, output_size, output_ratio, _random_samples)


@overridable
def fractional_max_pool2d(
    input: Tensor,
    kernel_size: Sizes,
    output_size: Sizes | None = None,
    output_ratio: Ratio | None = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Any:
    """Returns the maxima over windows of images that lie at random (Graham 2014).

    Args:
        input: (N, C, H, W) or (C, H, W).
        kernel_size: height and width of the window.
        output_size: height and width of the output.
        output_ratio: the output's size over the input's, in its place; numbers in (0, 1).
        return_indices: whether to return the places of the maxima in their flattened images as
            well.
        _random_samples: (N or more, C, 2) numbers in [0, 1) that say where the windows lie; drawn
            if None.

    Raises:
        ValueError: if neither output_size nor output_ratio is given.
        RuntimeError: if so many windows do not fit.

    Example:
        >>> x = torch.arange(16.0).reshape(1, 4, 4)
        >>> tuple(torch.nn.functional.fractional_max_pool2d(x, 2, output_size=3).shape)
        (1, 3, 3)
    """
    values, indices = _fractional_max_pool(
        2, input, kernel_size, output_size, output_ratio, _random_samples
    )
    return (values, indices) if return_indices else values


@overridable
def fractional_max_pool3d_with_indices(
    input: Tensor,
    kernel_size: Sizes,
    output_size: Sizes | None = None,
    output_ratio: Ratio | None = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Returns what fractional_max_pool3d returns, and the places of the maxima."""
    return _fractional_max_pool(3, input, kernel_size, output_size, output_ratio, _random_samples)


@overridable
def fractional_max_pool3d(
    input: Tensor,
    kernel_size: Sizes,
    output_size: Sizes | None = None,
    output_ratio: Ratio | None = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Any:
    """Returns the maxima over windows of volumes that lie at random (Graham 2014).

    Args:
        input: (N, C, D, H, W) or (C, D, H, W).
        kernel_size: depth, height and width of the window.
        output_size: depth, height and width of the output.
        output_ratio: the output's size over the input's, in its place; numbers in (0, 1).
        return_indices: whether to return the places of the maxima in their flattened volumes as
            well.
        _random_samples: (N, C, 3) numbers in [0, 1) that say where the windows lie; drawn if
            None.

    Raises:
        ValueError: if neither output_size nor output_ratio is given.
        RuntimeError: if so many windows do not fit.

    Example:
        >>> x = torch.arange(64.0).reshape(1, 4, 4, 4)
        >>> tuple(torch.nn.functional.fractional_max_pool3d(x, 2, output_size=3).shape)
        (1, 3, 3, 3)
    """
    values, indices = _fractional_max_pool(
        3, input, kernel_size, output_size, output_ratio, _random_samples
    )
    return (values, indices) if return_indices else values


def _unpooled_size(
    name: str,
    input: Tensor,
    kernel_size: tuple[int, ...],
    stride: tuple[int, ...],
    padding: tuple[int, ...],
    output_size: Sequence[int] | None,
) -> list[int]:
    """The size of what was pooled, as asked for or the one that fits without remainder."""
    dims = len(kernel_size)
    sizes = zip(input.shape[-dims:], kernel_size, stride, padding, strict=True)
    default = [(size - 1) * step + kernel - 2 * pad for size, kernel, step, pad in sizes]
    if output_size is None:
        return default
    wanted = list(output_size)
    if len(wanted) == dims + 2:
        wanted = wanted[2:]
    if len(wanted) != dims:
        raise ValueError(
            f"{name}: output_size should be a sequence containing {dims} or {dims + 2} elements, "
            f"but it has a length of '{len(wanted)}'"
        )
    for d, (size, middle, step) in enumerate(zip(wanted, default, stride, strict=True)):
        if not middle - step < size < middle + step:
            raise ValueError(
                f'{name}: invalid output_size "{tuple(wanted)}" (dim {d} must be between '
                f"{middle - step} and {middle + step})"
            )
    return wanted


def _max_unpool(
    dims: int,
    input: Tensor,
    indices: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None,
    padding: Sizes,
    output_size: Sequence[int] | None,
) -> Tensor:
    name = f"max_unpool{dims}d"
    batch, places = _batched(dims, name, input), _batched(dims, name, indices)
    kernel = _numbers(kernel_size, dims, name)
    steps = kernel if stride is None else _numbers(stride, dims, name)
    size = _unpooled_size(name, input, kernel, steps, _numbers(padding, dims, name), output_size)
    if 0 in size:  # there is no place that an index could mean
        return input.new_empty((*input.shape[:-dims], *size))
    result = _C._max_unpool(batch, places, size)
    return result if batch is input else result.squeeze(0)


@overridable
def max_unpool1d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """Returns sequences of zeros with the maxima that max_pool1d found at their places.

    Args:
        input: maxima, (N, C, L) or (C, L).
        indices: their places, as max_pool1d returns them; of the same shape.
        kernel_size: the window that was pooled.
        stride: step between windows; kernel_size if None.
        padding: what was added at the sides.
        output_size: size of the output, where several are possible.

    Raises:
        ValueError: if output_size is not possible.
        RuntimeError: if an index lies outside of the output.

    Example:
        >>> x = torch.tensor([[1.0, 3.0, 2.0, 0.0]])
        >>> y, places = torch.nn.functional.max_pool1d(x, 2, return_indices=True)
        >>> torch.nn.functional.max_unpool1d(y, places, 2).tolist()
        [[0.0, 3.0, 2.0, 0.0]]
    """
    return _max_unpool(1, input, indices, kernel_size, stride, padding, output_size)


@overridable
def max_unpool2d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """Returns images of zeros with the maxima that max_pool2d found at their places.

    Args:
        input: maxima, (N, C, H, W) or (C, H, W).
        indices: their places, as max_pool2d returns them; of the same shape.
        kernel_size: the window that was pooled.
        stride: step between windows; kernel_size if None.
        padding: what was added at the sides.
        output_size: size of the output, where several are possible.

    Raises:
        ValueError: if output_size is not possible.
        RuntimeError: if an index lies outside of the output.

    Example:
        >>> x = torch.tensor([[[1.0, 2.0], [4.0, 3.0]]])
        >>> y, places = torch.nn.functional.max_pool2d(x, 2, return_indices=True)
        >>> torch.nn.functional.max_unpool2d(y, places, 2).tolist()
        [[[0.0, 0.0], [4.0, 0.0]]]
    """
    return _max_unpool(2, input, indices, kernel_size, stride, padding, output_size)


@overridable
def max_unpool3d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """Returns volumes of zeros with the maxima that max_pool3d found at their places.

    Args:
        input: maxima, (N, C, D, H, W) or (C, D, H, W).
        indices: their places, as max_pool3d returns them; of the same shape.
        kernel_size: the window that was pooled.
        stride: step between windows; kernel_size if None.
        padding: what was added at the sides.
        output_size: size of the output, where several are possible.

    Raises:
        ValueError: if output_size is not possible.
        RuntimeError: if an index lies outside of the output.

    Example:
        >>> x = torch.arange(8.0).reshape(1, 2, 2, 2)
        >>> y, places = torch.nn.functional.max_pool3d(x, 2, return_indices=True)
        >>> torch.nn.functional.max_unpool3d(y, places, 2)[0, 1].tolist()
        [[0.0, 0.0], [0.0, 7.0]]
    """
    return _max_unpool(3, input, indices, kernel_size, stride, padding, output_size)
