"""Samples of views: shapes, orders of dims, windows."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided, sliding_window_view

from samples import normal, samples


def reshaping() -> Iterator[Any]:
    yield normal(3, 4), (2, 6)
    yield normal(3, 4), (2, -1, 3)
    yield normal(0, 4), (2, 0)
    yield normal(), (1, 1)


samples("reshape", ref=np.reshape)(reshaping)


@samples("view", ref=np.reshape)
def view() -> Iterator[Any]:
    yield normal(12), (2, -1, 3)
    yield normal(0), (2, 0)
    yield normal(), (1, 1)


@samples("view.dtype", ref=lambda x, dtype: x.view(np.int64), grad=False)
def view_dtype() -> Iterator[Any]:
    import rushlight as rl

    yield normal(12), rl.int64


@samples("view_as", "reshape_as", ref=lambda x, other: x.reshape(other.shape), constant=(1,))
def view_as() -> Iterator[Any]:
    yield normal(12), normal(2, 6)


@samples("flatten", ref=lambda x, start=0, end=-1: np.reshape(x, flat_shape(x, start, end)))
def flatten() -> Iterator[Any]:
    yield normal(2, 3, 4)
    yield normal(2, 3, 4), 1
    yield normal(2, 3, 4), 0, 1
    yield normal()


def flat_shape(x: np.ndarray, start: int, end: int) -> tuple[int, ...]:
    end %= max(x.ndim, 1)
    return (*x.shape[:start], -1, *x.shape[end + 1 :])


@samples("ravel", ref=np.ravel)
def ravel() -> Iterator[Any]:
    yield normal(2, 3)
    yield normal()


@samples("unflatten", ref=lambda x, dim, sizes: x.reshape(3, 2, 2))
def unflatten() -> Iterator[Any]:
    yield normal(3, 4), 1, (2, 2)
    yield normal(3, 4), -1, (2, -1)


@samples("permute", ref=np.transpose)
def permute() -> Iterator[Any]:
    yield normal(2, 3, 4), (2, 0, 1)
    yield normal(2, 3), (-1, -2)


@samples("transpose", "swapaxes", ref=np.swapaxes)
def transpose() -> Iterator[Any]:
    yield normal(2, 3, 4), 0, 2
    yield normal(2, 3, 4), -1, 1


@samples("t", ref=np.transpose)
def t() -> Iterator[Any]:
    yield normal(2, 3)
    yield normal(3)


@samples("adjoint", ref=lambda x: np.swapaxes(x, -1, -2).conj())
def adjoint() -> Iterator[Any]:
    yield normal(2, 3, 4)


@samples("movedim", ref=np.moveaxis)
def movedim() -> Iterator[Any]:
    yield normal(2, 3, 4), (0, 1), (2, 0)


@samples("movedim.int", ref=np.moveaxis)
def movedim_int() -> Iterator[Any]:
    yield normal(2, 3, 4), 0, -1


@samples(
    "expand",
    ref=lambda x, size: np.broadcast_to(
        x, [x.shape[i - len(size)] if n < 0 else n for i, n in enumerate(size)]
    ),
)
def expand() -> Iterator[Any]:
    yield normal(3, 1), (2, 3, 4)
    yield normal(3, 1), (-1, 4)
    yield normal(), (2,)


@samples("broadcast_to", ref=np.broadcast_to)
def broadcast_to() -> Iterator[Any]:
    yield normal(3, 1), (2, 3, 4)


@samples("expand_as", ref=lambda x, other: np.broadcast_to(x, other.shape), constant=(1,))
def expand_as() -> Iterator[Any]:
    yield normal(3, 1), normal(2, 3, 4)


@samples("squeeze", ref=np.squeeze)
def squeeze() -> Iterator[Any]:
    yield normal(1, 3, 1)
    yield normal()


@samples("squeeze.dim", ref=lambda x, dim: np.squeeze(x, dim) if x.shape[dim] == 1 else x)
def squeeze_dim() -> Iterator[Any]:
    yield normal(1, 3, 1), -1
    yield normal(1, 3, 1), 1


@samples("squeeze.dims", ref=lambda x, dim: x[0])
def squeeze_dims() -> Iterator[Any]:
    yield normal(1, 3, 1), (0, 1)


@samples("unsqueeze", ref=np.expand_dims)
def unsqueeze() -> Iterator[Any]:
    yield normal(2, 3), 1
    yield normal(2, 3), -1
    yield normal(), 0


@samples("select", ref=lambda x, dim, index: np.take(x, index, dim))
def select() -> Iterator[Any]:
    yield normal(3, 4), 1, 2
    yield normal(3, 4), -2, -1


@samples("narrow", ref=lambda x, dim, start, n: np.take(x, range(start, start + n), dim))
def narrow() -> Iterator[Any]:
    yield normal(3, 4), 1, 1, 2
    yield normal(3, 4), 0, 3, 0


@samples("diagonal", ref=np.diagonal)
def diagonal() -> Iterator[Any]:
    yield normal(3, 4)
    yield normal(2, 3, 4), 1, 1, 2
    yield normal(3, 3), -2
    yield normal(3, 3), 5


@samples(
    "unfold",
    ref=lambda x, dim, size, step: sliding_window_view(x, size, dim)[
        (slice(None),) * dim + (slice(None, None, step),)
    ],
)
def unfold() -> Iterator[Any]:
    yield normal(7), 0, 3, 2
    yield normal(2, 5), 1, 2, 1


@samples(
    "as_strided",
    ref=lambda x, size, stride, offset=0: as_strided(
        np.ascontiguousarray(x)[offset:], size, [8 * s for s in stride]
    ),
)
def strided() -> Iterator[Any]:
    yield normal(12), (3, 2), (4, 1)
    yield normal(12), (3, 3), (1, 2), 2


samples("detach", ref=lambda x: x, grad=False)(lambda: iter([normal(3, 4)]))
