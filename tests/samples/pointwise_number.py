"""Samples of ops on how numbers are made up."""

from collections.abc import Iterator

import numpy as np

from samples import complex_normal, integers, normal, samples

WIDE = np.array([0.0, -0.0, 1.0, -3.5, 1e-310, 5e-324, 1e300, np.inf, -np.inf, np.nan])


@samples("gcd", ref=np.gcd, grad=False)
def gcd() -> Iterator[tuple[np.ndarray, np.ndarray]]:
    yield integers(-60, 60, 3, 4), integers(-60, 60, 3, 4)
    yield np.array([0, 0, -(2**63), -(2**63), 2**62]), np.array([0, -6, -1, -(2**63), 2**61])
    yield integers(1, 60, 3, 1), integers(1, 60, 4)


@samples("lcm", ref=np.lcm, grad=False)
def lcm() -> Iterator[tuple[np.ndarray, np.ndarray]]:
    yield integers(-60, 60, 3, 4), integers(-60, 60, 3, 4)
    yield np.array([0, 0, 7]), np.array([0, -6, -(2**40)])


@samples("ldexp", ref=lambda x, n: x * 2.0**n)
def ldexp() -> Iterator[tuple[np.ndarray, np.ndarray]]:
    yield normal(3, 4), normal(3, 4)
    yield normal(3, 1), integers(-9, 9, 4)


@samples("frexp", ref=lambda x: tuple(np.frexp(x)))
def frexp() -> Iterator[np.ndarray]:
    yield normal(3, 4, scale=8.0)


@samples("float_power_", ref=lambda x, n: np.float_power(x, n))
def float_power_() -> Iterator[tuple[np.ndarray, object]]:
    yield np.exp(normal(3, 4)), normal(3, 4)
    yield normal(3, 4), 3


@samples("angle", ref=np.angle)
def angle() -> Iterator[np.ndarray]:
    yield normal(3, 4)
    yield complex_normal(3, 4)


@samples("polar", ref=lambda r, a: r * np.exp(1j * a))
def polar() -> Iterator[tuple[np.ndarray, np.ndarray]]:
    yield normal(3, 4), normal(3, 4)


@samples("isreal", ref=np.isreal, grad=False)
def isreal() -> Iterator[np.ndarray]:
    yield normal(3, 4)
    yield np.array([1 + 0j, 2j, complex(0, np.nan)])
