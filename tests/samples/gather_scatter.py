"""Samples of gather, scatter and what counts by them."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from samples import Sample, integers, normal, samples

Array = np.ndarray


@samples("gather", ref=lambda x, dim, index: np.take_along_axis(x, index, dim))
def gathered() -> Iterator[Any]:
    yield normal(3, 4), 0, integers(0, 3, 5, 4)
    yield normal(3, 4), 1, integers(0, 4, 3, 2)
    yield normal(2, 3, 4), -1, integers(0, 4, 2, 3, 4)
    yield normal(3), 0, np.zeros(0, np.int64)


@samples("take_along_dim", ref=np.take_along_axis)
def taken() -> Iterator[Any]:
    yield normal(3, 4), integers(0, 3, 2, 1), 0
    yield normal(3, 4), integers(0, 12, 5), None


def scattered(combine: Callable[[Array, Any, Any], None]) -> Callable[..., Array]:
    """Combines one element after the other, in the order of the index."""

    def ref(x: Array, dim: int, index: Array, src: Any, **_: Any) -> Array:
        out = x.copy()
        for place in np.ndindex(index.shape):
            target = list(place)
            target[dim] = index[place]
            combine(out, tuple(target), src[place] if isinstance(src, np.ndarray) else src)
        return out

    return ref


def write(out: Array, place: Any, value: Any) -> None:
    out[place] = value


def add(out: Array, place: Any, value: Any) -> None:
    out[place] += value


def by_mode(x: Array, dim: int, index: Array, src: Any, reduce: str | None = None) -> Array:
    def multiply(out: Array, place: Any, value: Any) -> None:
        out[place] *= value

    return scattered({None: write, "add": add, "multiply": multiply}[reduce])(x, dim, index, src)


def permuted() -> Iterator[Any]:
    yield normal(3, 4), 0, np.array([[2, 0, 1, 1]]), normal(1, 4)
    yield normal(3, 4), 1, np.array([[3, 0], [1, 2]]), normal(3, 3)
    yield Sample((normal(3, 4), 0, integers(0, 3, 5, 4), normal(5, 4)), {"reduce": "add"})


def values() -> Iterator[Any]:
    yield normal(3, 4), 0, np.array([[2, 0, 1, 1]]), 1.5
    yield Sample((normal(3, 4), 1, np.array([[3, 0], [1, 2]]), 2.0), {"reduce": "multiply"})


def repeated() -> Iterator[Any]:
    yield normal(3, 4), 0, integers(0, 3, 5, 4), normal(5, 4)
    yield normal(3, 4), 1, integers(0, 4, 3, 6), normal(3, 7)


samples("scatter", ref=by_mode)(permuted)
samples("scatter_", ref=by_mode, grad=False)(permuted)
samples("scatter.value", ref=by_mode, grad=False)(values)
samples("scatter_.value", ref=by_mode, grad=False)(values)
samples("scatter_add", ref=scattered(add))(repeated)
samples("scatter_add_", ref=scattered(add), grad=False)(repeated)


def reduced(
    x: Array, dim: int, index: Array, src: Array, reduce: str, include_self: bool = True
) -> Array:
    out = x.copy()
    groups: dict[tuple[int, ...], list[float]] = {}
    for place in np.ndindex(index.shape):
        target = list(place)
        target[dim] = index[place]
        groups.setdefault(tuple(target), []).append(src[place])
    how = {"sum": np.sum, "mean": np.mean, "amax": np.max, "amin": np.min, "prod": np.prod}[reduce]
    for target, group in groups.items():
        out[target] = how([out[target], *group] if include_self else group)
    return out


def reductions() -> Iterator[Any]:
    for reduce in ("sum", "mean", "amax", "amin"):
        yield normal(3, 4), 0, integers(0, 3, 5, 4), normal(5, 4), reduce
        yield Sample(
            (normal(3, 4), 1, integers(0, 4, 2, 6), normal(3, 6), reduce), {"include_self": False}
        )


samples("scatter_reduce", ref=reduced)(reductions)
samples("scatter_reduce_", ref=reduced, grad=False)(reductions)


@samples(
    "nn.functional.one_hot",
    ref=lambda x, n=-1: np.eye(n if n > 0 else x.max() + 1, dtype=np.int64)[x],
)
def labels() -> Iterator[Any]:
    yield integers(0, 4, 2, 3)
    yield integers(0, 4, 3), 6


@samples("bincount", ref=np.bincount)
def counted() -> Iterator[Any]:
    yield integers(0, 5, 20)
    yield integers(0, 5, 20), normal(20)
    yield Sample((integers(0, 3, 4),), {"minlength": 8})
