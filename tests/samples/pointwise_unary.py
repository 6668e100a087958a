"""Samples of ops on one tensor, element by element."""

from collections.abc import Iterator

import numpy as np
import scipy.special

from samples import Sample, away_from, integers, normal, samples, uniform

SMOOTH = {
    "neg": np.negative,
    "exp": np.exp,
    "exp2": np.exp2,
    "expm1": np.expm1,
    "sin": np.sin,
    "cos": np.cos,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "asinh": np.arcsinh,
    "atan": np.arctan,
    "erf": scipy.special.erf,
    "erfc": scipy.special.erfc,
    "sigmoid": scipy.special.expit,
    "square": np.square,
    "conj": np.conj,
    "conj_physical": np.conj,
    "positive": np.positive,
    "deg2rad": np.deg2rad,
    "rad2deg": np.rad2deg,
    "sinc": np.sinc,
}
POSITIVE = {
    "log": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "log1p": np.log1p,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "reciprocal": lambda x: 1 / x,
    "lgamma": scipy.special.gammaln,
    "digamma": scipy.special.digamma,
}
INSIDE_ONE = {
    "asin": np.arcsin,
    "acos": np.arccos,
    "atanh": np.arctanh,
    "tan": np.tan,
    "erfinv": scipy.special.erfinv,
}
STEPS = {
    "sign": np.sign,
    "sgn": np.sign,
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "round": np.round,
    "frac": lambda x: x - np.trunc(x),
    "abs": np.abs,
}
TESTS = {
    "isnan": np.isnan,
    "isinf": np.isinf,
    "isposinf": np.isposinf,
    "isneginf": np.isneginf,
    "isfinite": np.isfinite,
    "signbit": np.signbit,
}


for _name, _ref in SMOOTH.items():

    @samples(_name, ref=_ref)
    def smooth() -> Iterator[np.ndarray]:
        yield normal(3, 4)
        yield normal(2, 1, 3, scale=3.0)


for _name, _ref in POSITIVE.items():

    @samples(_name, ref=_ref)
    def positive() -> Iterator[np.ndarray]:
        yield uniform(3, 4, low=0.3, high=4.0)


for _name, _ref in INSIDE_ONE.items():

    @samples(_name, ref=_ref)
    def inside_one() -> Iterator[np.ndarray]:
        yield uniform(3, 4, low=-0.8, high=0.8)


@samples("acosh", ref=np.arccosh)
def acosh() -> Iterator[np.ndarray]:
    yield uniform(3, 4, low=1.3, high=4.0)


for _name, _ref in STEPS.items():

    @samples(_name, ref=_ref)
    def steps() -> Iterator[np.ndarray]:
        yield away_from(*range(-9, 10), *(i + 0.5 for i in range(-9, 10)), distance=0.05)


for _name, _ref in TESTS.items():

    @samples(_name, ref=_ref, grad=False)
    def tests() -> Iterator[np.ndarray]:
        yield np.array([0.0, -0.0, 1.5, -2.0, np.nan, np.inf, -np.inf])


@samples("round.decimals", ref=lambda x, decimals: np.round(x, decimals))
def round_decimals() -> Iterator[Sample]:
    yield Sample(np.array([1.2345, -2.3456, 0.111]), decimals=2)


@samples("logical_not", ref=np.logical_not, grad=False)
def logical_not() -> Iterator[np.ndarray]:
    yield np.array([0.0, 1.0, -2.0])
    yield np.array([0, 1, 1j, -0.5j, np.nan * 1j])


@samples("bitwise_not", ref=np.bitwise_not, grad=False)
def bitwise_not() -> Iterator[np.ndarray]:
    yield integers(-5, 5, 3, 4)


@samples(
    "logit",
    ref=lambda x, eps=None: scipy.special.logit(x if eps is None else np.clip(x, eps, 1 - eps)),
)
def logit() -> Iterator[object]:
    yield uniform(3, 4, low=0.1, high=0.9)
    yield Sample(uniform(3, 4, low=0.2, high=0.8), eps=0.1)


@samples("nan_to_num", ref=lambda x, nan=None: np.nan_to_num(x, nan=nan or 0.0))
def nan_to_num() -> Iterator[object]:
    yield Sample(normal(3, 4), nan=None)
    yield Sample(normal(3, 4), nan=3.0)
    yield normal(3, 4)
