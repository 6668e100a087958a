"""Samples of flips, rolls, repeats, triangles and diagonals."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from samples import Sample, integers, normal, samples


@samples("flip", ref=np.flip)
def flip() -> Iterator[Any]:
    yield normal(3, 4), (0,)
    yield normal(2, 3, 4), (0, -1)
    yield normal(0, 2), (0, 1)


def matrix() -> Iterator[Any]:
    yield normal(3, 4)


samples("fliplr", ref=np.fliplr)(matrix)
samples("flipud", ref=np.flipud)(matrix)


@samples("rot90", ref=np.rot90)
def rot90() -> Iterator[Any]:
    yield normal(3, 4)
    yield normal(3, 4), -1
    yield normal(2, 3, 4), 2, (1, 2)


@samples("roll", ref=np.roll)
def roll() -> Iterator[Any]:
    yield normal(3, 4), 2
    yield normal(3, 4), (1, -2), (0, 1)
    yield normal(3, 4), 9, 1
    yield normal(0, 4), 1, 0


@samples("repeat", "tile", ref=np.tile)
def repeat() -> Iterator[Any]:
    yield normal(2, 3), (2, 1, 3)
    yield normal(2, 3), (0, 2)
    yield normal(), (3,)


@samples("repeat_interleave", ref=np.repeat)
def repeat_interleave() -> Iterator[Any]:
    yield normal(2, 3), 2
    yield normal(2, 3), 3, 1


@samples("repeat_interleave.tensor", ref=np.repeat)
def repeat_interleave_tensor() -> Iterator[Any]:
    yield normal(3, 2), np.array([2, 0, 3]), 0


@samples("repeat_interleave.index", ref=lambda n: np.repeat(np.arange(len(n)), n), grad=False)
def repeat_interleave_index() -> Iterator[Any]:
    yield integers(0, 4, 5)


def triangles() -> Iterator[Any]:
    yield normal(3, 4)
    yield normal(2, 4, 3), 1
    yield normal(4, 4), -2


samples("tril", ref=np.tril)(triangles)
samples("triu", ref=np.triu)(triangles)


def diag_embed_ref(x: np.ndarray, offset: int = 0, dim1: int = -2, dim2: int = -1) -> np.ndarray:
    size = x.shape[-1] + abs(offset)
    out = np.zeros((*x.shape[:-1], size, size), x.dtype)
    i = np.arange(x.shape[-1])
    out[..., i + max(-offset, 0), i + max(offset, 0)] = x
    return np.moveaxis(out, (-2, -1), (dim1, dim2))


@samples("diag_embed", ref=diag_embed_ref)
def diag_embed() -> Iterator[Any]:
    yield normal(2, 3)
    yield normal(2, 3), 1, 0, 2
    yield normal(3), -2


@samples("diag", ref=np.diag)
def diag() -> Iterator[Any]:
    yield normal(3)
    yield normal(3, 4), 1
    yield normal(3), -1


@samples("diagflat", ref=np.diagflat)
def diagflat() -> Iterator[Any]:
    yield normal(2, 2)
    yield Sample(normal(3), -1)


def pixel_shuffle_ref(x: np.ndarray, r: int) -> np.ndarray:
    *batch, c, h, w = x.shape
    out = np.zeros((*batch, c // (r * r), h * r, w * r))
    for i in range(r):
        for j in range(r):
            out[..., i::r, j::r] = x[..., i * r + j :: r * r, :, :]
    return out


@samples("pixel_shuffle", ref=pixel_shuffle_ref)
def pixel_shuffle() -> Iterator[Any]:
    yield normal(2, 8, 3, 2), 2
    yield normal(9, 2, 1), 3
    yield normal(0, 4, 2, 2), 2


def pixel_unshuffle_ref(x: np.ndarray, r: int) -> np.ndarray:
    *batch, c, h, w = x.shape
    out = np.zeros((*batch, c * r * r, h // r, w // r))
    for i in range(r):
        for j in range(r):
            out[..., i * r + j :: r * r, :, :] = x[..., i::r, j::r]
    return out


@samples("pixel_unshuffle", ref=pixel_unshuffle_ref)
def pixel_unshuffle() -> Iterator[Any]:
    yield normal(2, 2, 4, 6), 2
    yield normal(1, 3, 3), 3


@samples(
    "channel_shuffle",
    ref=lambda x, groups: np.concatenate(
        [x[:, i :: x.shape[1] // groups] for i in range(x.shape[1] // groups)], 1
    ),
)
def channel_shuffle() -> Iterator[Any]:
    yield normal(2, 6, 3, 2), 2
    yield normal(1, 4, 3), 4
