"""Samples of the ops between complex numbers and their parts."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from samples import complex_normal, normal, samples


def pairs(z: np.ndarray) -> np.ndarray:
    return np.stack([z.real, z.imag], -1)


@samples("view_as_real", ref=pairs)
def view_as_real() -> Iterator[Any]:
    yield complex_normal(3, 4)
    yield complex_normal(0, 2)


@samples("view_as_complex", ref=lambda x: x[..., 0] + 1j * x[..., 1])
def view_as_complex() -> Iterator[Any]:
    yield normal(3, 4, 2)
    yield normal(2)


@samples("real", ref=np.real)
def real() -> Iterator[Any]:
    yield complex_normal(3, 4)
    yield normal(3)


@samples("imag", ref=np.imag)
def imag() -> Iterator[Any]:
    yield complex_normal(3, 4)


@samples("complex", ref=lambda real, imag: real + 1j * imag)
def complex() -> Iterator[Any]:
    yield normal(3, 4), normal(3, 4)
    yield normal(3, 1), normal(4)
