"""Samples of ops on two or three tensors, element by element, with broadcasting."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.special

from samples import Sample, away_from, booleans, complex_normal, integers, normal, samples, uniform


def pairs() -> Iterator[Any]:
    yield normal(3, 4), normal(3, 4)
    yield normal(3, 1), normal(4)
    yield normal(2, 3), normal()


def positive_pairs() -> Iterator[Any]:
    yield uniform(3, 4, low=0.5, high=3.0), uniform(3, 4, low=0.5, high=3.0)
    yield uniform(3, 1, low=0.5, high=3.0), uniform(4, low=0.5, high=3.0)


def apart() -> Iterator[Any]:
    """Pairs that differ everywhere, so that maximum and its kin are smooth."""
    x = normal(3, 4)
    yield x, x + away_from(0.0)


@samples("add", ref=lambda x, y, alpha=1: x + alpha * y)
def add() -> Iterator[Any]:
    yield from pairs()
    yield Sample(normal(3), normal(3), alpha=2.5)
    yield normal(3), 1.5


@samples("add.scaled", ref=lambda x, alpha, y: x + alpha * y)
def add_scaled() -> Iterator[Any]:
    yield normal(3, 4), 2, normal(4)


@samples("sub.scaled", ref=lambda x, alpha, y: x - alpha * y)
def sub_scaled() -> Iterator[Any]:
    yield normal(3, 4), -2, normal(4)


@samples("sub", ref=lambda x, y, alpha=1: x - alpha * y)
def sub() -> Iterator[Any]:
    yield from pairs()
    yield Sample(normal(3), normal(3), alpha=-2.0)


@samples("rsub", ref=lambda x, y, alpha=1: y - alpha * x)
def rsub() -> Iterator[Any]:
    yield from pairs()


samples("mul", ref=np.multiply)(pairs)
samples("div", ref=np.divide)(positive_pairs)
samples("atan2", ref=np.arctan2)(positive_pairs)
samples("hypot", ref=np.hypot)(positive_pairs)
samples("pow", ref=np.power)(positive_pairs)
samples("float_power", ref=np.float_power)(positive_pairs)
samples("xlogy", ref=scipy.special.xlogy)(positive_pairs)


def logaddexp_ref(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    if x.dtype.kind != "c":
        return np.logaddexp(x, y)
    shift = np.where(np.isfinite(x.real), np.maximum(x.real, y.real), 0)
    return np.log(np.exp(x - shift) + np.exp(y - shift)) + shift


@samples("logaddexp", ref=logaddexp_ref)
def logaddexp() -> Iterator[Any]:
    yield from pairs()
    yield complex_normal(3, 4), complex_normal(4)
    yield np.array([800 + 1j, -800, 3, -np.inf]), np.array([801 + 1.5j, -801, 3, 2])


samples("logaddexp2", ref=np.logaddexp2)(pairs)


samples("maximum", ref=np.maximum)(apart)
samples("minimum", ref=np.minimum)(apart)
samples("fmax", ref=np.fmax)(apart)
samples("fmin", ref=np.fmin)(apart)
samples("max.binary", ref=np.maximum)(apart)
samples("min.binary", ref=np.minimum)(apart)
samples("copysign", ref=np.copysign)(apart)
samples("nextafter", ref=np.nextafter)(apart)


@samples("floor_divide", ref=np.floor_divide)
def floor_divide() -> Iterator[Any]:
    yield from divisible()
    yield integers(-9, 9, 3, 4), integers(1, 5, 4)


@samples(
    "div.rounding_mode",
    ref=lambda x, y, rounding_mode: {None: lambda q: q, "floor": np.floor, "trunc": np.trunc}[
        rounding_mode
    ](x / y),
)
def div_rounding_mode() -> Iterator[Any]:
    for mode in (None, "floor", "trunc"):
        yield from (Sample(x, y, rounding_mode=mode) for x, y in divisible())
    yield Sample(integers(-9, 9, 3, 4), integers(1, 5, 4), rounding_mode="floor")
    yield Sample(integers(-9, 9, 3, 4), integers(1, 5, 4), rounding_mode="trunc")


def divisible() -> Iterator[Any]:
    y = np.array([0.7, 1.3, -2.1, 3.3])
    yield (integers(-4, 5, 3, 4) + 0.4) * y, y


samples("remainder", ref=np.remainder)(divisible)
samples("fmod", ref=np.fmod)(divisible)


@samples("heaviside", ref=np.heaviside, constant=(0,))
def heaviside() -> Iterator[Any]:
    yield np.array([-1.0, 0.0, 2.0]), np.array([0.5, 0.5, 0.5])


@samples("lerp", ref=lambda x, y, w: x + w * (y - x))
def lerp() -> Iterator[Any]:
    yield normal(3, 4), normal(3, 4), uniform(3, 4)
    yield normal(3, 4), normal(4), 0.3
    yield normal(3, 4), normal(3, 4), 0.7
    yield integers(-5, 5, 3, 4), integers(-5, 5, 3, 4), uniform(3, 4)


@samples("addcmul", ref=lambda x, a, b, value=1: x + value * a * b)
def addcmul() -> Iterator[Any]:
    yield normal(3, 4), normal(3, 4), normal(4)
    yield Sample(normal(3), normal(3), normal(3), value=0.5)
    yield booleans(3), normal(3), integers(-5, 5, 3)


@samples("addcdiv", ref=lambda x, a, b, value=1: x + value * a / b)
def addcdiv() -> Iterator[Any]:
    yield Sample(normal(3), normal(3), uniform(3, low=0.5, high=2.0), value=0.5)
    yield integers(-5, 5, 3), integers(-5, 5, 3), integers(1, 5, 3)
    yield integers(-5, 5, 3), normal(3), integers(1, 5, 3)


@samples("where", ref=np.where)
def where() -> Iterator[Any]:
    yield booleans(3, 4), normal(3, 4), normal(4)
    yield booleans(3, 1), normal(4), 2.0


@samples("where.self", ref=lambda x, c, y: np.where(c, x, y))
def where_self() -> Iterator[Any]:
    yield normal(3, 4), booleans(3, 4), normal(4)


@samples("masked_fill", ref=lambda x, m, v: np.where(m, v, x))
def masked_fill() -> Iterator[Any]:
    yield normal(3, 4), booleans(3, 4), 2.0
    yield normal(3, 4), booleans(4), -1.5


@samples("clamp", ref=lambda x, min=None, max=None: np.clip(x, min, max))
def clamp() -> Iterator[Any]:
    yield Sample(away_from(-1.0, 1.0), min=-1.0, max=1.0)
    yield Sample(away_from(0.5), min=0.5)
    yield Sample(away_from(0.5), max=0.5)


@samples("clamp_min", ref=np.maximum)
def clamp_min() -> Iterator[Any]:
    yield away_from(0.5), 0.5


@samples("clamp_max", ref=np.minimum)
def clamp_max() -> Iterator[Any]:
    yield away_from(0.5), 0.5


for _name in ("logical_and", "logical_or", "logical_xor"):

    @samples(_name, ref=getattr(np, _name), grad=False)
    def logical() -> Iterator[Any]:
        yield booleans(3, 4), booleans(4)
        yield np.array([0.0, 1.0, 2.0]), np.array([0.0, 0.0, 3.0])
        yield np.array([0, 1, 1j, 2j]), np.array([1j, 0, 0, 1.0])


for _name, _ref in {
    "bitwise_and": np.bitwise_and,
    "bitwise_or": np.bitwise_or,
    "bitwise_xor": np.bitwise_xor,
}.items():

    @samples(_name, ref=_ref, grad=False)
    def bitwise() -> Iterator[Any]:
        yield integers(-9, 9, 3, 4), integers(-9, 9, 4)
        yield booleans(3, 4), booleans(4)


for _name, _ref in {
    "bitwise_left_shift": np.left_shift,
    "bitwise_right_shift": np.right_shift,
}.items():

    @samples(_name, ref=_ref, grad=False)
    def shifts() -> Iterator[Any]:
        yield integers(-9, 9, 3, 4), integers(0, 5, 4)


@samples("addcmul.scaled", ref=lambda x, value, a, b: x + value * a * b)
def addcmul_scaled() -> Iterator[Any]:
    yield normal(3, 4), 2, normal(3, 1), normal(4)


@samples("addcdiv.scaled", ref=lambda x, value, a, b: x + value * a / b)
def addcdiv_scaled() -> Iterator[Any]:
    yield normal(3, 4), -2.0, normal(3, 1), uniform(4, low=0.5, high=3.0)
