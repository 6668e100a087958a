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


# Ops whose results, and whose gradients, may lie otherwise than in PyTorch, by the reason.
ACCEPTED: dict[str, list[str]] = {"result": [], "gradient": [], ".grad": []}
# Modules and functions for which they may.
MODULES: list[str] = []


def is_accepted(name: str, patterns: list[str]) -> bool:
    return any(re.search(pattern, name) for pattern in patterns)
