"""Samples of sums, means, counts and truth over dims."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from samples import Sample, booleans, integers, normal, samples

Dim = int | tuple[int, ...] | None


def over(f: Callable[..., Any]) -> Callable[..., Any]:
    """A NumPy reduction in PyTorch's arguments; an empty dim means all."""

    def ref(x: np.ndarray, dim: Dim = None, keepdim: bool = False, **options: Any) -> Any:
        axis = None if dim is None or dim == () else dim
        return f(x, axis=axis, keepdims=keepdim, **options)

    return ref


def dims() -> Iterator[Any]:
    yield normal(3, 4), 0
    yield normal(3, 4, 5), (0, -1)
    yield normal(3, 4), None
    yield normal(3, 4), ()
    yield Sample(normal(2, 3, 4), 1, keepdim=True)
    yield Sample(normal(2, 3), (0, 1), keepdim=True)


def everything() -> Iterator[Any]:
    yield normal(3, 4)
    yield np.array(1.5)


def with_nan() -> Iterator[Any]:
    yield normal(3, 4)
    yield normal(3, 4), 1, True
    yield np.array([[1.0, np.nan, 3.0], [np.nan, 5.0, 6.0]]), 0


samples("nansum", ref=over(np.nansum))(with_nan)
samples("nanmean", ref=over(np.nanmean))(with_nan)

samples(ref=over(np.sum))(dims)
samples(ref=over(np.mean))(dims)


def truth() -> Iterator[Any]:
    yield booleans(3, 4)
    yield booleans(3, 4), 0
    yield Sample(integers(0, 2, 2, 3, 4), (0, 2), keepdim=True)
    yield np.array([0.0, np.nan]), 0
    yield np.zeros((0, 3))


samples("any", ref=over(np.any), grad=False)(truth)
samples("all", ref=over(np.all), grad=False)(truth)


@samples("count_nonzero", ref=np.count_nonzero, grad=False)
def count_nonzero() -> Iterator[Any]:
    yield integers(-1, 2, 3, 4)
    yield integers(-1, 2, 3, 4), 1
    yield np.array([[0.0, -0.0, np.nan, 2.0]]), (0, 1)


samples("sum", ref=over(np.sum))(dims)
samples("mean", ref=over(np.mean))(dims)


def sum_to_size_ref(x: np.ndarray, size: Any) -> np.ndarray:
    lead = x.ndim - len(size)
    kept = tuple(d for d in range(lead, x.ndim) if size[d - lead] == 1)
    return x.sum(kept, keepdims=True).sum(tuple(range(lead)))


@samples("sum_to_size", ref=sum_to_size_ref)
def sum_to_size() -> Iterator[Any]:
    yield normal(2, 3, 4), (3, 1)
    yield normal(2, 3), (1, 1)
    yield normal(2, 3), ()
    yield normal(2, 3), (2, 3)
    yield normal(0, 3), (1, 3)
