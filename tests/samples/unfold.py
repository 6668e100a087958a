"""Samples of unfold and fold, element by element."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from samples import Sample, integers, normal, samples


def pair(value: Any) -> tuple[int, int]:
    return tuple(value) if isinstance(value, (tuple, list)) else (value, value)


def places(
    size: tuple[int, int], kernel: Any, dilation: Any, padding: Any, stride: Any
) -> np.ndarray:
    """(window, outputs, 2): where in the padded images each element of the columns lies."""
    parts = []
    for n, k, d, p, s in zip(
        size, pair(kernel), pair(dilation), pair(padding), pair(stride), strict=True
    ):
        count = (n + 2 * p - d * (k - 1) - 1) // s + 1
        parts.append(np.arange(k)[:, None] * d + np.arange(count) * s)
    rows, columns = parts
    y, x = np.broadcast_arrays(rows[:, None, :, None], columns[None, :, None, :])
    return np.stack([y, x], -1).reshape(len(rows) * len(columns), -1, 2)


def unfolded(
    x: np.ndarray, kernel: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> np.ndarray:
    at = places(x.shape[-2:], kernel, dilation, padding, stride)
    amounts = [(0, 0)] * (x.ndim - 2) + [(p, p) for p in pair(padding)]
    columns = np.pad(x, amounts)[..., at[..., 0], at[..., 1]]
    return columns.reshape(*x.shape[:-3], x.shape[-3] * len(at), at.shape[1])


def folded(
    x: np.ndarray, size: Any, kernel: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> np.ndarray:
    at = places(pair(size), kernel, dilation, padding, stride)
    (height, width), (top, left) = pair(size), pair(padding)
    columns = x.reshape(*x.shape[:-2], x.shape[-2] // len(at), *at.shape[:2])
    images = np.zeros((*columns.shape[:-2], height + 2 * top, width + 2 * left), x.dtype)
    np.add.at(images, (..., at[..., 0], at[..., 1]), columns)
    return images[..., top : top + height, left : left + width]


@samples("nn.functional.unfold", ref=unfolded)
def unfold() -> Iterator[Any]:
    yield normal(2, 3, 4, 5), 2
    yield Sample(normal(2, 3, 5), (2, 1))
    yield Sample(normal(1, 2, 7, 6), (3, 2), dilation=(2, 1), padding=(1, 2), stride=(2, 3))
    yield Sample(normal(1, 2, 6, 6), 3, 1, 1, 1)
    yield Sample(normal(1, 1, 2, 2), 3, padding=3, stride=4)
    yield Sample(normal(0, 2, 4, 4), 3)
    yield integers(-9, 9, 2, 3, 4, 5), 2


@samples("nn.functional.fold", ref=folded)
def fold() -> Iterator[Any]:
    yield normal(2, 12, 12), (4, 5), 2
    yield Sample(normal(8, 6), (3, 4), 2)
    yield Sample(normal(1, 12, 9), (7, 6), (3, 2), dilation=(2, 1), padding=(1, 2), stride=(2, 3))
    yield Sample(normal(1, 18, 36), 6, 3, 1, 1, 1)
