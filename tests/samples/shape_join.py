"""Samples of joining tensors and of bringing them to shapes that fit."""

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.linalg

from samples import Sample, normal, samples


@samples("cat", ref=np.concatenate)
def cat() -> Iterator[Any]:
    yield [normal(2, 3), normal(1, 3), normal(4, 3)], 0
    yield [normal(2, 3), normal(2, 0)], -1
    yield ([normal(3)],)


@samples("stack", ref=np.stack)
def stack() -> Iterator[Any]:
    yield [normal(2, 3), normal(2, 3)], 0
    yield [normal(2, 3), normal(2, 3)], -1
    yield ([normal(), normal()],)


def two_matrices() -> Iterator[Any]:
    yield ([normal(2, 3), normal(2, 3)],)
    yield ([normal(3), normal(3)],)


samples("hstack", ref=np.hstack)(two_matrices)
samples("vstack", ref=np.vstack)(two_matrices)
samples("dstack", ref=np.dstack)(two_matrices)
samples("column_stack", ref=np.column_stack)(two_matrices)


for _name in ("atleast_1d", "atleast_2d", "atleast_3d"):
    _ref = getattr(np, _name)

    @samples(_name, ref=_ref)
    def atleast() -> Iterator[Any]:
        yield normal()
        yield normal(3)
        yield normal(2, 3)

    @samples(_name + ".list", ref=lambda x, f=_ref: [f(v) for v in x])
    def atleast_list() -> Iterator[Any]:
        yield ([normal(), normal(3)],)


@samples("broadcast_tensors", ref=lambda *tensors: np.broadcast_arrays(*tensors))
def broadcast_tensors() -> Iterator[Any]:
    yield normal(3, 1), normal(4)


@samples("meshgrid", ref=lambda *x, indexing="ij": np.meshgrid(*x, indexing=indexing))
def meshgrid() -> Iterator[Any]:
    yield Sample(normal(3), normal(4), indexing="ij")
    yield Sample(normal(3), normal(4), normal(2), indexing="xy")


@samples("block_diag", ref=scipy.linalg.block_diag)
def block_diag() -> Iterator[Any]:
    yield normal(2, 3), normal(), normal(2)
    yield normal(1, 2), normal(0, 2), normal(2, 1)
    yield (normal(3, 3),)


@samples(
    "cartesian_prod", ref=lambda *x: x[0] if len(x) == 1 else np.array([*itertools.product(*x)])
)
def cartesian_prod() -> Iterator[Any]:
    yield normal(2), normal(3)
    yield normal(2), normal(1), normal(3)
    yield (normal(3),)


def combinations_ref(x: np.ndarray, r: int = 2, with_replacement: bool = False) -> np.ndarray:
    if r == 0:
        return np.zeros(0)
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    return np.array([*choose(x, r)]).reshape(-1, r)


@samples("combinations", ref=combinations_ref)
def combinations() -> Iterator[Any]:
    yield normal(4)
    yield normal(5), 3
    yield normal(3), 2, True
    yield normal(2), 3
    yield normal(2), 3, True
    yield normal(3), 1
    yield normal(0), 2
