"""Tensors in other memory orders than row-major, and which orders may differ from PyTorch's."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from samples import Sample


def permuted(tensor: Any, order: list[int]) -> Any:
    """The same values in dense memory whose outermost dim is order[0]."""
    return tensor.permute(order).contiguous().permute([order.index(d) for d in range(len(order))])


def channels_last(tensor: Any) -> Any:
    """Images and volumes with their channels innermost; other tensors as they are."""
    dims = list(range(tensor.dim()))
    return permuted(tensor, [0, *dims[2:], 1]) if len(dims) in (4, 5) else tensor


def reversed_dims(tensor: Any) -> Any:
    """The first dim innermost."""
    return permuted(tensor, list(range(tensor.dim()))[::-1]) if tensor.dim() > 1 else tensor


def rotated_dims(tensor: Any) -> Any:
    """Dim 1 outermost, then dim 2, then the first one."""
    return permuted(tensor, [1, 2, 0, *range(3, tensor.dim())]) if tensor.dim() > 2 else tensor


# What each layout makes of the k-th tensor of a call.
LAYOUTS: dict[str, Callable[[Any, int], Any]] = {
    "channels_last": lambda tensor, k: channels_last(tensor),
    "reversed": lambda tensor, k: reversed_dims(tensor),
    "rotated": lambda tensor, k: rotated_dims(tensor),
    "channels_last, then row-major": lambda tensor, k: tensor if k else channels_last(tensor),
    "row-major, then channels_last": lambda tensor, k: channels_last(tensor) if k else tensor,
}


def order_of(tensor: Any) -> tuple[int, ...] | None:
    """The strides of dims that have more than one element; None for tensors without any."""
    if tensor.numel() == 0:
        return None
    return tuple(
        stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True) if size > 1
    )


def with_images(sample: Sample) -> Iterator[Sample]:
    """The call itself, and with leading dims that make images of its tensors of most dims."""
    yield sample
    most = max((array.ndim for array in sample.arrays()), default=0)
    if 0 < most < 4:
        lead = (2, 3, 4)[: 4 - most]

        def lifted(array: np.ndarray) -> np.ndarray:
            if array.ndim != most:
                return array
            return np.broadcast_to(array, lead + array.shape).copy()

        yield sample.map(lifted)


# What may lie otherwise than in PyTorch, by reasons: ops with results that may, and ops with
# gradients that are neither in PyTorch's order nor in that of a tensor of theirs.
_FACTORS = [
    # LAPACK works by columns, and FFT libraries pass over the dim that suits them first.
    r"^(linalg\.|fft\.|qr$|triangular_solve$)",
    # Values between others are interpolated here in another order of dims.
    "quantile$",
    # Views of what was computed with its dims in another order; copies in PyTorch, or the reverse.
    r"^(affine_grid_generator|conv_tbc|unravel_index|nn\.functional\.scaled_dot_product_attention)$",
    # Made of elementwise ops in PyTorch, which keep the order of the input.
    r"^nn\.functional\.rms_norm$",
    # Parts of complex numbers are put side by side row by row.
    "^(complex|polar)$",
]
RESULTS = [
    *_FACTORS,
    # The sum of a product and what is added lies as the first of them.
    "^(addmm|addbmm|baddbmm)$",
    # Elementwise here, so that they keep the order of the input.
    r"^(angle|cross|isin|matrix_power|mvlgamma|renorm|nn\.functional\.logsigmoid)$",
    # These have no channels_last_3d in PyTorch; nor has circular padding channels_last.
    r"^nn\.functional\.(adaptive_(avg|max)_pool3d\S*|avg_pool3d|lp_pool3d|conv(_transpose)?3d\S*|pad)$",
    # Complex numbers are convolved by their parts, which are row-major.
    r"^nn\.functional\.conv2d$",
    # Of operands in different orders the one decides that comes first in the formula.
    r"^nn\.functional\.(binary_cross_entropy_with_logits|soft_margin_loss)$",
    # No copy where pixels only move in their view; copies that keep the order of the input.
    "^(pixel_shuffle|channel_shuffle|roll|index_reduce)$",
]
GRADIENTS = [
    *_FACTORS,
    # Products, also within factors and distances, are row-major.
    r"^(addmm|addbmm|cholesky|inner|matmul|matrix|mm$|cov$|corrcoef|orgqr|ormqr|pinverse|stft)",
    r"^nn\.functional\.(linear|group_norm)$",
    # Written into zeros, which are row-major.
    "^(index_put|index_reduce|masked_select|take|unsafe_)",
    # The formula of the gradient begins with operands that broadcast.
    r"^(norm|pairwise_distance|prod|nn\.functional\.(triplet|multilabel_soft)_margin_loss)$",
    # The gradient of a weight lies as images do, and those of images as the weight.
    r"^nn\.functional\.conv(2d|3d|_transpose3d)",
    "^(pixel_shuffle|roll)$",
]
# Modules and functions with results that may.
MODULES = [
    "scaled_dot_product_attention",
    r"(Avg|LP|Adaptive\w+|avg_|max_)p?P?ool3d|CircularPad|Conv(Transpose)?3d",
    "CrossMapLRN2d",
]


def is_accepted(name: str, patterns: list[str]) -> bool:
    """Whether one of the patterns is found in a name."""
    return any(re.search(pattern, name) for pattern in patterns)
