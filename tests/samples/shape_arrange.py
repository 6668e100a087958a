"""Samples of flips, repeats and triangles."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from samples import Sample, integers, normal, samples


@samples("flip", ref=np.flip)
def flipped() -> Iterator[Any]:
    yield normal(3, 4), (0,)
    yield normal(3, 4), (0, -1)
    yield normal(2, 3, 4), ()


def matrices() -> Iterator[Any]:
    yield normal(3, 4)


samples("fliplr", ref=np.fliplr)(matrices)
samples("flipud", ref=np.flipud)(matrices)


@samples("rot90", ref=lambda x, k=1, dims=(0, 1): np.rot90(x, k, dims))
def turned() -> Iterator[Any]:
    yield normal(3, 4)
    yield normal(3, 4), 2
    yield normal(3, 4), -1
    yield normal(2, 3, 4), 5, (1, 2)
    yield normal(3, 4), 4


@samples("roll", ref=lambda x, shifts, dims=None: np.roll(x, shifts, dims))
def rolled() -> Iterator[Any]:
    yield normal(3, 4), 5
    yield normal(3, 4), -1, 1
    yield normal(3, 4), (1, 2), (0, 1)
    yield Sample((normal(5),), {"shifts": 0, "dims": 0})


@samples("repeat", "tile", ref=lambda x, repeats: np.tile(x, repeats))
def repeated() -> Iterator[Any]:
    yield normal(2, 3), (2, 1)
    yield normal(3), (2, 3)
    yield normal(1, 1), (1, 1)
    yield normal(2, 3), (0, 2)


@samples("repeat_interleave", ref=np.repeat)
def interleaved() -> Iterator[Any]:
    yield normal(2, 3), 2
    yield normal(2, 3), 3, 0
    yield normal(2, 1), 1, -1


@samples("repeat_interleave.tensor", ref=np.repeat)
def interleaved_by_count() -> Iterator[Any]:
    yield normal(3, 2), np.array([2, 0, 1]), 0
    yield normal(3), np.array([2])


@samples("repeat_interleave.index", ref=lambda repeats: np.repeat(np.arange(len(repeats)), repeats))
def repeated_places() -> Iterator[Any]:
    yield integers(0, 4, 5)


@samples("tril", ref=np.tril)
def lower() -> Iterator[Any]:
    yield normal(3, 4)
    yield normal(2, 4, 3), 1
    yield normal(3, 4), -9


@samples("triu", ref=np.triu)
def upper() -> Iterator[Any]:
    yield normal(3, 4)
    yield normal(2, 4, 3), -1
    yield normal(3, 4), 9


def embedded(x: np.ndarray, offset: int = 0, dim1: int = -2, dim2: int = -1) -> np.ndarray:
    size = x.shape[-1] + abs(offset)
    out = np.zeros((*x.shape[:-1], size, size))
    rows = np.arange(x.shape[-1]) + max(-offset, 0)
    out[..., rows, rows + offset] = x
    return np.moveaxis(out, (-2, -1), (dim1, dim2))


@samples("diag_embed", ref=embedded)
def embeddings() -> Iterator[Any]:
    yield normal(3)
    yield normal(2, 3), 1
    yield normal(2, 3), -1, 0, 2


@samples("diag", ref=np.diag)
def diagonals() -> Iterator[Any]:
    yield normal(3)
    yield normal(3), -1
    yield normal(3, 4), 1


@samples("diagflat", ref=np.diagflat)
def flat_diagonals() -> Iterator[Any]:
    yield normal(2, 2)
    yield normal(3), 1
