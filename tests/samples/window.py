"""Samples of the window functions."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from samples import samples


def cut(window: Any) -> Any:
    """A symmetric NumPy window as a periodic one: the last element of one more is left out."""

    def ref(length: int, periodic: bool = True, *args: float) -> np.ndarray:
        if length < 2:
            return np.ones(length)
        return window(length + periodic, *args)[:length]

    return ref


def lengths() -> Iterator[Any]:
    yield 8
    yield 7, False
    yield 5, True
    yield 1
    yield 0


def hamming(length: int, alpha: float = 0.54, beta: float = 0.46) -> np.ndarray:
    return alpha - beta * np.cos(2 * np.pi * np.arange(length) / (length - 1))


@samples("hamming_window", ref=cut(hamming), grad=False, tolerance=1e-6)
def hamming_window() -> Iterator[Any]:
    yield from lengths()
    yield 6, True, 0.3
    yield 6, False, 0.3, 0.5


@samples(
    "kaiser_window",
    ref=cut(lambda n, beta=12.0: np.kaiser(n, beta)),
    grad=False,
    tolerance=1e-6,
)
def kaiser_window() -> Iterator[Any]:
    yield from lengths()
    yield 6, True, 3.0
    yield 6, False, 0.0
    yield 6, False, 200.0


samples("hann_window", ref=cut(np.hanning), grad=False, tolerance=1e-6)(lengths)
samples("blackman_window", ref=cut(np.blackman), grad=False, tolerance=1e-6)(lengths)
samples("bartlett_window", ref=cut(np.bartlett), grad=False, tolerance=1e-6)(lengths)
