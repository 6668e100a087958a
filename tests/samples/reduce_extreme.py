"""Samples of the largest and smallest elements and their positions."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from samples import Sample, integers, normal, samples
from samples.reduce import over


def along(value: Callable[..., Any], position: Callable[..., Any]) -> Callable[..., Any]:
    def ref(x: np.ndarray, dim: int, keepdim: bool = False) -> Any:
        return value(x, axis=dim, keepdims=keepdim), position(x, axis=dim, keepdims=keepdim)

    return ref


def everything() -> Iterator[Any]:
    yield normal(3, 4)
    yield np.array(2.0)


samples("max", ref=np.max)(everything)
samples("min", ref=np.min)(everything)


def one_dim() -> Iterator[Any]:
    yield normal(3, 4), 1
    yield normal(3, 4, 5), -2, True
    yield normal(70, 3), 0


samples("max.dim", ref=along(np.max, np.argmax))(one_dim)
samples("min.dim", ref=along(np.min, np.argmin))(one_dim)


def some_dims() -> Iterator[Any]:
    yield normal(3, 4), 1
    yield normal(3, 4, 5), (0, 2), True
    yield normal(3, 4)
    yield normal(3, 4), ()
    yield np.array([[1.0, np.nan], [3.0, 2.0]]), 0


samples("amax", ref=over(np.max), grad=True)(some_dims)
samples("amin", ref=over(np.min), grad=True)(some_dims)


@samples("aminmax", ref=lambda x, *, dim=None, keepdim=False: tuple(
    over(f)(x, dim, keepdim) for f in (np.min, np.max)))  # fmt: skip
def aminmax() -> Iterator[Any]:
    yield normal(3, 4)
    yield Sample(normal(3, 4), dim=1)
    yield Sample(normal(3, 4), dim=0, keepdim=True)


def positions() -> Iterator[Any]:
    yield normal(3, 4)
    yield normal(3, 4), 0
    yield integers(0, 3, 4, 30), 1, True
    yield np.array([1.0, np.nan, 5.0, np.nan])


samples("argmax", ref=over(np.argmax), grad=False)(positions)
samples("argmin", ref=over(np.argmin), grad=False)(positions)
