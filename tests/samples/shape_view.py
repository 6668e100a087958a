"""Samples of the ops that look at a tensor in another layout."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from samples import Sample, normal, samples


@samples("view", "reshape", ref=lambda x, shape: x.reshape(shape))
def shapes() -> Iterator[Any]:
    yield normal(2, 6), (3, 4)
    yield normal(2, 6), (-1, 2, 3)
    yield normal(2, 3, 1), (6,)
    yield np.array(1.5), (1, 1)
    yield np.zeros((0, 3)), (3, 0, 2)


@samples("view.dtype", ref=None, grad=False)
def reinterpreted() -> Iterator[Any]:
    import rushlight as rl

    yield normal(2, 3), rl.int64
    yield normal(2, 3), rl.float32


@samples("view_as", "reshape_as", ref=lambda x, other: x.reshape(other.shape))
def like_another() -> Iterator[Any]:
    yield normal(2, 6), np.zeros((4, 3), np.int64)


def flat(x: np.ndarray, start_dim: int = 0, end_dim: int = -1) -> np.ndarray:
    start, end = (d % max(x.ndim, 1) for d in (start_dim, end_dim))
    return x.reshape((*x.shape[:start], -1, *x.shape[end + 1 :]))


@samples("flatten", ref=flat)
def flattened() -> Iterator[Any]:
    yield normal(2, 3, 4)
    yield normal(2, 3, 4), 1
    yield normal(2, 3, 4, 2), 1, 2
    yield Sample((normal(2, 3, 4),), {"start_dim": -2})
    yield np.array(2.0)


@samples("ravel", ref=np.ravel)
def raveled() -> Iterator[Any]:
    yield normal(2, 3)


@samples(
    "unflatten",
    ref=lambda x, dim, sizes: x.reshape(x.shape[:dim] + tuple(sizes) + x.shape[dim:][1:]),
)
def unflattened() -> Iterator[Any]:
    yield normal(2, 12, 3), 1, (3, 4)
    yield normal(6), 0, (2, -1)


@samples("permute", ref=np.transpose)
def permuted() -> Iterator[Any]:
    yield normal(2, 3, 4), (2, 0, 1)
    yield normal(2, 3), (-1, 0)
    yield np.array(2.0), ()


@samples("transpose", "swapaxes", ref=np.swapaxes)
def swapped() -> Iterator[Any]:
    yield normal(2, 3, 4), 0, 2
    yield normal(2, 3, 4), -1, 1


@samples("t", ref=np.transpose)
def matrices() -> Iterator[Any]:
    yield normal(2, 3)
    yield normal(3)


@samples("adjoint", ref=lambda x: x.swapaxes(-1, -2))
def batches() -> Iterator[Any]:
    yield normal(2, 3)
    yield normal(4, 2, 3)


@samples("movedim", ref=np.moveaxis)
def moved() -> Iterator[Any]:
    yield normal(2, 3, 4), (0, 1), (2, 0)
    yield normal(2, 3, 4), (-1,), (0,)


@samples("movedim.int", ref=np.moveaxis)
def moved_one() -> Iterator[Any]:
    yield normal(2, 3, 4), 0, -1
    yield normal(2, 3, 4), 2, 1


@samples("broadcast_to", ref=np.broadcast_to)
def broadcast() -> Iterator[Any]:
    yield normal(3, 1), (3, 4)
    yield normal(3), (2, 3)


@samples(
    "expand",
    ref=lambda x, size: np.broadcast_to(
        x,
        [
            o if s < 0 else s
            for s, o in zip(size, (0,) * (len(size) - x.ndim) + x.shape, strict=True)
        ],
    ),
)
def expanded() -> Iterator[Any]:
    yield normal(3, 1), (-1, 4)
    yield normal(3), (2, 2, 3)
    yield np.array(1.0), (2,)


@samples("expand_as", ref=lambda x, other: np.broadcast_to(x, other.shape))
def expanded_like() -> Iterator[Any]:
    yield normal(3, 1), np.zeros((2, 3, 4), np.int64)


@samples("squeeze", ref=np.squeeze)
def squeezed() -> Iterator[Any]:
    yield normal(1, 3, 1)
    yield normal(2, 3)


def without(x: np.ndarray, dim: int | tuple[int, ...]) -> np.ndarray:
    dims = dim if isinstance(dim, tuple) else (dim,)
    return np.squeeze(x, tuple(d for d in dims if x.shape[d] == 1))


@samples("squeeze.dim", ref=without)
def squeezed_one() -> Iterator[Any]:
    yield normal(1, 3, 1), 0
    yield normal(1, 3, 1), 1


@samples("squeeze.dims", ref=without)
def squeezed_some() -> Iterator[Any]:
    yield normal(1, 3, 1), (0, 1)
    yield normal(1, 3, 1), (0, -1)


@samples("unsqueeze", ref=np.expand_dims)
def unsqueezed() -> Iterator[Any]:
    yield normal(2, 3), 0
    yield normal(2, 3), -1
    yield np.array(1.0), 0


@samples("select", ref=lambda x, dim, index: np.take(x, index, dim))
def selected() -> Iterator[Any]:
    yield normal(3, 4), 0, 1
    yield normal(3, 4), -1, -2


def narrowed_array(x: np.ndarray, dim: int, start: int, length: int) -> np.ndarray:
    start %= x.shape[dim] + 1
    return np.take(x, range(start, start + length), dim)


@samples("narrow", ref=narrowed_array)
def narrowed() -> Iterator[Any]:
    yield normal(4, 5), 1, 2, 2
    yield normal(4, 5), 0, 4, 0


@samples("diagonal", ref=np.diagonal)
def diagonals() -> Iterator[Any]:
    yield normal(3, 4)
    yield normal(3, 4), 1
    yield normal(3, 4), -2
    yield normal(2, 3, 4), 0, -2, -1
    yield normal(3, 4), 9


@samples(
    "unfold",
    ref=lambda x, dim, size, step: np.moveaxis(
        np.lib.stride_tricks.sliding_window_view(x, size, dim), dim, 0
    )[::step].swapaxes(0, dim if x.ndim > 1 else 0),
)
def unfolded() -> Iterator[Any]:
    yield normal(7), 0, 3, 2
    yield normal(7), 0, 3, 1
    yield normal(2, 5), 1, 2, 1


@samples(
    "as_strided",
    ref=lambda x, size, stride, offset=0: np.lib.stride_tricks.as_strided(
        x.reshape(-1)[offset:], size, [8 * s for s in stride]
    ),
)
def strided() -> Iterator[Any]:
    yield normal(12), (3, 2), (4, 1), 2
    yield normal(12), (3, 4), (2, 1)


@samples("detach", ref=lambda x: x, grad=False)
def detached() -> Iterator[Any]:
    yield normal(2, 3)


samples("squeeze_", ref=np.squeeze, grad=False)(squeezed)
samples("squeeze_.dim", ref=without, grad=False)(squeezed_one)
samples("unsqueeze_", ref=np.expand_dims, grad=False)(unsqueezed)
samples("transpose_", ref=np.swapaxes, grad=False)(swapped)
samples("t_", ref=np.transpose, grad=False)(matrices)
