"""Samples of pooling, against maxima and means of every window."""

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np

from samples import Sample, distinct, integers, normal, samples, uniform
from samples.conv import spread


def over_windows(
    x: np.ndarray, windows: list[list[np.ndarray]], reduce: Callable[..., Any]
) -> np.ndarray:
    """reduce(elements, their flat places) for each combination of places along the last dims."""
    dims = len(windows)
    shape = x.shape[-dims:]
    rows = x.reshape(-1, *shape)
    out = []
    for along in product(*windows):
        places = np.ravel_multi_index(np.ix_(*along), shape).reshape(-1)
        out.append(reduce(rows.reshape(len(rows), -1)[:, places], places))
    return np.stack(out, -1).reshape(*x.shape[:-dims], *map(len, windows))


def windows_of(
    shape: tuple[int, ...], size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool
) -> list[list[np.ndarray]]:
    """The places inside the input that each window covers, for each dim."""
    dims = len(shape)
    parts = (spread(v, dims) for v in (size, size if stride is None else stride, padding, dilation))
    windows = []
    for n, k, s, p, d in zip(shape, *parts, strict=True):
        room = n + 2 * p - d * (k - 1) - 1
        count = (-(-room // s) if ceil_mode else room // s) + 1
        if ceil_mode and (count - 1) * s >= n + p:
            count -= 1
        taps = [np.arange(k) * d + i * s - p for i in range(count)]
        windows.append([t[(t >= 0) & (t < n)] for t in taps])
    return windows


def max_pool(dims: int, indices: bool) -> Callable[..., Any]:
    def ref(
        x: np.ndarray,
        size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
    ) -> Any:
        windows = windows_of(x.shape[-dims:], size, stride, padding, dilation, ceil_mode)
        values = over_windows(x, windows, lambda v, _: v.max(1))
        places = over_windows(x, windows, lambda v, at: at[v.argmax(1)])
        return (values, places) if indices else values

    return ref


def avg_pool(dims: int) -> Callable[..., Any]:
    def ref(
        x: np.ndarray,
        size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> Any:
        windows = windows_of(x.shape[-dims:], size, stride, padding, 1, ceil_mode)
        whole = divisor_override or int(np.prod(spread(size, dims)))
        own = not count_include_pad and not divisor_override
        means = over_windows(x, windows, lambda v, at: v.sum(1) / (len(at) if own else whole))
        return np.trunc(means).astype(x.dtype) if x.dtype.kind == "i" else means

    return ref


def adaptive(dims: int, reduce: Callable[..., Any]) -> Callable[..., Any]:
    def ref(x: np.ndarray, size: Any) -> Any:
        windows = [
            [np.arange(i * n // k, -(-(i + 1) * n // k)) for i in range(k)]
            for n, k in zip(x.shape[-dims:], spread(size, dims), strict=True)
        ]
        return over_windows(x, windows, reduce)

    return ref


def sequences() -> Iterator[Any]:
    yield distinct(2, 3, 8), 2
    yield Sample(distinct(2, 3, 9), 3, stride=2, padding=1)
    yield Sample(distinct(3, 8), 3, 2, ceil_mode=True)


def images() -> Iterator[Any]:
    yield distinct(2, 3, 6, 4), 2
    yield Sample(distinct(1, 2, 7, 8), (3, 2), stride=(2, 1), padding=(1, 1))
    yield Sample(distinct(3, 6, 5), 3, 2, ceil_mode=True)


def whole_sequences() -> Iterator[Any]:
    yield integers(-(2**62), 2**62, 2, 3, 33), 3, 2, 1


def whole_images() -> Iterator[Any]:
    yield integers(-90, 90, 2, 3, 6, 40), 3, 2, 1
    yield integers(-90, 90, 1, 2, 5, 4), 2


def dilated_sequences() -> Iterator[Any]:
    yield from sequences()
    yield from whole_sequences()
    yield Sample(distinct(2, 3, 9), 3, dilation=2)


def dilated_images() -> Iterator[Any]:
    yield from images()
    yield from whole_images()
    yield Sample(distinct(1, 2, 7, 8), 2, stride=1, dilation=(3, 2))


def volumes() -> Iterator[Any]:
    yield distinct(1, 2, 4, 4, 2), 2
    yield Sample(distinct(1, 2, 3, 5, 4), (2, 3, 2), stride=(1, 2, 2), padding=(1, 1, 0))
    yield Sample(distinct(2, 4, 3, 5), 3, 2, 1, ceil_mode=True)
    yield integers(-90, 90, 1, 2, 4, 3, 20), 2


def dilated_volumes() -> Iterator[Any]:
    yield from volumes()
    yield Sample(distinct(1, 2, 4, 5, 4), 2, stride=1, dilation=(3, 2, 1))


samples("max_pool1d", ref=max_pool(1, False))(dilated_sequences)
samples("max_pool1d_with_indices", ref=max_pool(1, True))(dilated_sequences)
samples("max_pool2d", ref=max_pool(2, False))(dilated_images)
samples("max_pool2d_with_indices", ref=max_pool(2, True))(dilated_images)
samples("max_pool3d", ref=max_pool(3, False))(dilated_volumes)
samples("nn.functional.max_pool3d_with_indices", ref=max_pool(3, True))(dilated_volumes)


@samples("avg_pool1d", ref=avg_pool(1))
def avg_pool1d() -> Iterator[Any]:
    yield distinct(2, 3, 8), 2
    yield Sample(normal(2, 3, 9), 3, 2, 1, count_include_pad=False)
    yield integers(-90, 90, 2, 3, 33), 3, 2, 1


@samples("nn.functional.avg_pool2d", ref=avg_pool(2))
def avg_pool2d() -> Iterator[Any]:
    yield normal(2, 3, 6, 4), 2
    yield Sample(normal(1, 2, 7, 8), (3, 2), (2, 1), (1, 1), count_include_pad=False)
    yield Sample(normal(1, 2, 7, 8), 3, 2, 1, divisor_override=5)
    yield Sample(normal(3, 6, 5), 2, padding=1)
    yield from whole_images()
    yield Sample(integers(-90, 90, 1, 2, 7, 8), 3, 2, 1, divisor_override=-5)


@samples("nn.functional.avg_pool3d", ref=avg_pool(3))
def avg_pool3d() -> Iterator[Any]:
    yield normal(1, 2, 4, 4, 2), 2
    yield Sample(normal(2, 3, 5, 4), (2, 3, 2), (1, 2, 2), (1, 1, 0), count_include_pad=False)
    yield Sample(normal(1, 1, 4, 3, 5), 2, 2, 1, divisor_override=5)
    yield integers(-90, 90, 1, 2, 4, 3, 20), 2


def lp_pool(dims: int) -> Callable[..., Any]:
    def ref(
        x: np.ndarray, p: float, size: Any, stride: Any = None, ceil_mode: bool = False
    ) -> np.ndarray:
        windows = windows_of(x.shape[-dims:], size, stride, 0, 1, ceil_mode)
        if np.isinf(p):
            extreme = np.max if p > 0 else np.min
            return over_windows(x, windows, lambda v, _: extreme(np.abs(v), 1))
        return over_windows(x, windows, lambda v, _: (v**p).sum(1) ** (1 / p))

    return ref


@samples("nn.functional.lp_pool1d", ref=lp_pool(1))
def lp_pool1d() -> Iterator[Any]:
    yield normal(2, 3, 8), 2.0, 2
    yield Sample(uniform(3, 9, low=0.2, high=2.0), 3.0, 3, stride=2)
    yield distinct(2, 3, 8), np.inf, 2
    yield distinct(3, 9), -np.inf, 3


@samples("nn.functional.lp_pool2d", ref=lp_pool(2))
def lp_pool2d() -> Iterator[Any]:
    yield normal(2, 3, 6, 4), 2.0, 2
    yield Sample(uniform(3, 6, 5, low=0.2, high=2.0), 1.5, (3, 2), stride=(1, 2))
    yield distinct(2, 6, 4), -np.inf, 2


@samples("nn.functional.lp_pool3d", ref=lp_pool(3))
def lp_pool3d() -> Iterator[Any]:
    yield normal(1, 2, 4, 2, 4), 2.0, 2
    yield Sample(uniform(2, 3, 4, 5, low=0.2, high=2.0), 3.0, (2, 3, 2), stride=(1, 2, 2))
    yield distinct(2, 4, 2, 4), np.inf, 2


def adaptive_sequences() -> Iterator[Any]:
    yield distinct(2, 3, 8), 3
    yield distinct(3, 5), 1


def adaptive_images() -> Iterator[Any]:
    yield distinct(2, 3, 6, 5), (4, 2)
    yield distinct(3, 5, 5), 1
    yield distinct(1, 2, 3, 3), 5


def adaptive_volumes() -> Iterator[Any]:
    yield distinct(1, 2, 4, 3, 5), (3, 1, 2)
    yield distinct(2, 3, 2, 4), 1


def mean(values: np.ndarray, places: np.ndarray) -> np.ndarray:
    return values.mean(1)


def with_places(dims: int) -> Callable[..., Any]:
    return lambda x, size: (
        adaptive(dims, lambda v, _: v.max(1))(x, size),
        adaptive(dims, lambda v, at: at[v.argmax(1)])(x, size),
    )


samples("adaptive_avg_pool1d", ref=adaptive(1, mean))(adaptive_sequences)
samples("nn.functional.adaptive_avg_pool2d", ref=adaptive(2, mean))(adaptive_images)
samples("nn.functional.adaptive_max_pool1d_with_indices", ref=with_places(1))(adaptive_sequences)
samples("nn.functional.adaptive_max_pool2d_with_indices", ref=with_places(2))(adaptive_images)
samples("nn.functional.adaptive_avg_pool3d", ref=adaptive(3, mean))(adaptive_volumes)
samples("nn.functional.adaptive_max_pool3d_with_indices", ref=with_places(3))(adaptive_volumes)
