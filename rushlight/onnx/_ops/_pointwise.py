"""Arithmetic, comparisons and elementary functions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import rushlight as rl
from rushlight.onnx._builder import Builder, Value
from rushlight.onnx._ops._table import TABLE, converts

__all__ = ["floating", "promoted"]


def _dummy(value: Any) -> Any:
    """What stands for an operand where dtypes are decided."""
    if not isinstance(value, Value):
        return value
    return rl.empty((1,) * len(value.shape or ()), dtype=value.dtype, device="meta")


def promoted(g: Builder, a: Any, b: Any) -> tuple[Value, Value]:
    """Two operands in the dtype that they have together."""
    dtype = rl.result_type(_dummy(a), _dummy(b))
    return tuple(g.cast(v, dtype) if isinstance(v, Value) else g.constant(v, dtype) for v in (a, b))  # pyright: ignore[reportReturnType]


def floating(g: Builder, value: Value) -> Value:
    """A value as floating point, as functions like exp take integers."""
    return value if value.dtype.is_floating_point else g.cast(value, rl.get_default_dtype())


# Functions of one tensor


def _unary(kind: str, converts_ints: bool = True) -> Callable[..., Any]:
    def convert(g: Builder, input: Value) -> Value:
        return g.op(kind, floating(g, input) if converts_ints else input)

    return convert


_FLOAT_UNARY = {
    "acos": "Acos", "acosh": "Acosh", "asin": "Asin", "asinh": "Asinh", "atan": "Atan",
    "atanh": "Atanh", "cos": "Cos", "cosh": "Cosh", "erf": "Erf", "exp": "Exp", "log": "Log",
    "reciprocal": "Reciprocal", "sigmoid": "Sigmoid", "sin": "Sin", "sinh": "Sinh", "sqrt": "Sqrt",
    "tan": "Tan", "tanh": "Tanh",
}  # fmt: skip
_ANY_UNARY = {"abs": "Abs", "neg": "Neg", "negative": "Neg", "absolute": "Abs"}
_ALIASES = {"arccos": "acos", "arccosh": "acosh", "arcsin": "asin", "arcsinh": "asinh"}
_ALIASES |= {"arctan": "atan", "arctanh": "atanh", "expit": "sigmoid"}

TABLE.update({name: _unary(kind) for name, kind in _FLOAT_UNARY.items()})
TABLE.update({name: _unary(kind, converts_ints=False) for name, kind in _ANY_UNARY.items()})
TABLE.update({name: TABLE[meant] for name, meant in _ALIASES.items()})


def _rounding(kind: str) -> Callable[..., Any]:
    def convert(g: Builder, input: Value) -> Value:
        return g.op(kind, input) if input.dtype.is_floating_point else input

    return convert


TABLE.update({name: _rounding(name.capitalize()) for name in ("ceil", "floor")})


@converts("round")
def round_(g: Builder, input: Value, *, decimals: int = 0) -> Value:
    if not input.dtype.is_floating_point:
        return input
    if not decimals:
        return g.op("Round", input)
    scale = g.number(10.0**decimals, input)
    return g.op("Div", g.op("Round", g.op("Mul", input, scale)), scale)


@converts("trunc", "fix")
def trunc(g: Builder, input: Value) -> Value:
    return g.op("Mul", g.op("Floor", g.op("Abs", input)), g.op("Sign", input))


@converts("frac")
def frac(g: Builder, input: Value) -> Value:
    return g.op("Sub", input, trunc(g, input))


@converts("sign", "sgn")
def sign(g: Builder, input: Value) -> Value:
    return g.op("Sign", input)


@converts("square")
def square(g: Builder, input: Value) -> Value:
    return g.op("Mul", input, input)


@converts("rsqrt")
def rsqrt(g: Builder, input: Value) -> Value:
    return g.op("Reciprocal", g.op("Sqrt", floating(g, input)))


def _scaled(kind: str, factor: float, after: bool) -> Callable[..., Any]:
    def convert(g: Builder, input: Value) -> Value:
        x = floating(g, input)
        if after:
            return g.op("Mul", g.op(kind, x), g.number(factor, x))
        return g.op(kind, g.op("Mul", x, g.number(factor, x)))

    return convert


TABLE["log2"] = _scaled("Log", 1 / math.log(2), after=True)
TABLE["log10"] = _scaled("Log", 1 / math.log(10), after=True)
TABLE["exp2"] = _scaled("Exp", math.log(2), after=False)


@converts("log1p")
def log1p(g: Builder, input: Value) -> Value:
    x = floating(g, input)
    return g.op("Log", g.op("Add", x, g.number(1, x)))


@converts("expm1")
def expm1(g: Builder, input: Value) -> Value:
    x = floating(g, input)
    return g.op("Sub", g.op("Exp", x), g.number(1, x))


@converts("erfc")
def erfc(g: Builder, input: Value) -> Value:
    x = floating(g, input)
    return g.op("Sub", g.number(1, x), g.op("Erf", x))


@converts("deg2rad")
def deg2rad(g: Builder, input: Value) -> Value:
    x = floating(g, input)
    return g.op("Mul", x, g.number(math.pi / 180, x))


@converts("rad2deg")
def rad2deg(g: Builder, input: Value) -> Value:
    x = floating(g, input)
    return g.op("Mul", x, g.number(180 / math.pi, x))


@converts("logit")
def logit(g: Builder, input: Value, eps: float | None = None) -> Value:
    x = input if eps is None else clamp(g, input, eps, 1 - eps)
    return g.op("Log", g.op("Div", x, g.op("Sub", g.number(1, x), x)))


@converts("isnan")
def isnan(g: Builder, input: Value) -> Value:
    return g.op("IsNaN", floating(g, input), dtype=rl.bool)


@converts("isinf")
def isinf(g: Builder, input: Value) -> Value:
    return g.op("IsInf", floating(g, input), dtype=rl.bool)


@converts("isfinite")
def isfinite(g: Builder, input: Value) -> Value:
    return g.op("Not", g.op("Or", isnan(g, input), isinf(g, input)))


@converts("nan_to_num")
def nan_to_num(
    g: Builder, input: Value, nan: float = 0.0, posinf: Any = None, neginf: Any = None
) -> Value:
    if not input.dtype.is_floating_point:
        return input
    largest = rl.finfo(input.dtype).max
    for is_meant, number in (
        (isnan(g, input), nan or 0.0),
        (
            g.op("IsInf", input, detect_negative=0, dtype=rl.bool),
            largest if posinf is None else posinf,
        ),
        (
            g.op("IsInf", input, detect_positive=0, dtype=rl.bool),
            -largest if neginf is None else neginf,
        ),
    ):
        input = g.op("Where", is_meant, g.number(number, input), input, dtype=input.dtype)
    return input


@converts(
    "clone", "contiguous", "detach", "positive", "_to", "resolve_conj", "resolve_neg", "alias"
)
def identity(g: Builder, input: Value, *args: Any, **kwargs: Any) -> Value:
    return input


@converts("_cast", "type_as")
def cast(g: Builder, input: Value, dtype: Any = None, **options: Any) -> Value:
    return input if dtype is None else g.cast(input, getattr(dtype, "dtype", dtype))


# Arithmetic


def _binary(kind: str, for_bool: str | None = None) -> Callable[..., Any]:
    def convert(g: Builder, input: Any, other: Any) -> Value:
        a, b = promoted(g, input, other)
        return g.op(for_bool if for_bool and a.dtype is rl.bool else kind, a, b)

    return convert


_add, _sub, _mul = _binary("Add", "Or"), _binary("Sub"), _binary("Mul", "And")
TABLE.update({"mul": _mul, "multiply": _mul})


@converts("add")
def add(g: Builder, input: Any, other: Any, *, alpha: Any = 1) -> Value:
    return _add(g, input, other if alpha == 1 else _mul(g, other, alpha))


@converts("sub", "subtract")
def sub(g: Builder, input: Any, other: Any, *, alpha: Any = 1) -> Value:
    return _sub(g, input, other if alpha == 1 else _mul(g, other, alpha))


@converts("rsub")
def rsub(g: Builder, input: Any, other: Any, *, alpha: Any = 1) -> Value:
    return sub(g, other, input, alpha=alpha)


@converts("div", "divide", "true_divide", "truediv")
def div(g: Builder, input: Any, other: Any, *, rounding_mode: str | None = None) -> Value:
    a, b = promoted(g, input, other)
    if rounding_mode == "floor":
        return floor_divide(g, a, b)
    if rounding_mode == "trunc":
        return trunc(g, g.op("Div", a, b)) if a.dtype.is_floating_point else g.op("Div", a, b)
    return g.op("Div", floating(g, a), floating(g, b))


@converts("floor_divide", "floordiv")
def floor_divide(g: Builder, input: Any, other: Any) -> Value:
    a, b = promoted(g, input, other)
    if a.dtype.is_floating_point:
        return g.op("Floor", g.op("Div", a, b))
    rest = g.op("Mod", a, b)  # has the sign of b, so that the division has no rest
    return g.op("Div", g.op("Sub", a, rest), b)


@converts("remainder", "mod")
def remainder(g: Builder, input: Any, other: Any) -> Value:
    a, b = promoted(g, input, other)
    if not a.dtype.is_floating_point:
        return g.op("Mod", a, b)
    return g.op("Sub", a, g.op("Mul", g.op("Floor", g.op("Div", a, b)), b))


@converts("fmod")
def fmod(g: Builder, input: Any, other: Any) -> Value:
    return g.op("Mod", *promoted(g, input, other), fmod=1)


@converts("pow", "float_power")
def pow_(g: Builder, input: Any, exponent: Any) -> Value:
    if isinstance(input, Value) and input.dtype.is_floating_point and exponent == 2:
        return g.op("Mul", input, input)
    a, b = promoted(g, input, exponent)
    return g.op("Pow", a, b)


@converts("atan2", "arctan2")
def atan2(g: Builder, input: Any, other: Any) -> Value:
    y, x = promoted(g, input, other)
    y, x = floating(g, y), floating(g, x)
    zero, pi = g.number(0, x), g.number(math.pi, x)
    below = g.op("Less", y, zero, dtype=rl.bool)
    turn = g.op("Where", below, g.op("Neg", pi), pi, dtype=x.dtype)
    angle = g.op("Atan", g.op("Div", y, x))
    turned = g.op(
        "Where",
        g.op("Less", x, zero, dtype=rl.bool),
        g.op("Add", angle, turn),
        angle,
        dtype=x.dtype,
    )
    origin = g.op("And", _equal(g, y, zero), _equal(g, x, zero))
    return g.op("Where", origin, zero, turned, dtype=x.dtype)


@converts("hypot")
def hypot(g: Builder, input: Value, other: Value) -> Value:
    return g.op("Sqrt", g.op("Add", square(g, input), square(g, other)))


@converts("logaddexp")
def logaddexp(g: Builder, input: Value, other: Value) -> Value:
    high = g.op("Max", input, other)
    low = g.op("Neg", g.op("Abs", g.op("Sub", input, other)))
    return g.op("Add", high, log1p(g, g.op("Exp", low)))


@converts("lerp")
def lerp(g: Builder, input: Value, end: Value, weight: Any) -> Value:
    return g.op("Add", input, g.op("Mul", g.number(weight, input), g.op("Sub", end, input)))


@converts("addcmul")
def addcmul(g: Builder, input: Value, tensor1: Value, tensor2: Value, *, value: Any = 1) -> Value:
    return add(g, input, g.op("Mul", tensor1, tensor2), alpha=value)


@converts("addcdiv")
def addcdiv(g: Builder, input: Value, tensor1: Value, tensor2: Value, *, value: Any = 1) -> Value:
    return add(g, input, g.op("Div", tensor1, tensor2), alpha=value)


@converts("xlogy")
def xlogy(g: Builder, input: Any, other: Any) -> Value:
    x, y = promoted(g, input, other)
    zero = g.number(0, x)
    return g.op("Where", _equal(g, x, zero), zero, g.op("Mul", x, g.op("Log", y)), dtype=x.dtype)


@converts("maximum", "fmax")
def maximum(g: Builder, input: Any, other: Any) -> Value:
    return g.op("Max", *promoted(g, input, other))


@converts("minimum", "fmin")
def minimum(g: Builder, input: Any, other: Any) -> Value:
    return g.op("Min", *promoted(g, input, other))


@converts("clamp", "clip")
def clamp(g: Builder, input: Value, min: Any = None, max: Any = None) -> Value:
    dtype = input.dtype
    for bound in (min, max):
        if bound is not None:
            dtype = promoted(g, input, bound)[0].dtype
            input = g.cast(input, dtype)
    if min is not None:
        input = g.op("Max", input, g.number(min, input))
    return input if max is None else g.op("Min", input, g.number(max, input))


@converts("clamp_min")
def clamp_min(g: Builder, input: Value, min: Any) -> Value:
    return clamp(g, input, min)


@converts("clamp_max")
def clamp_max(g: Builder, input: Value, max: Any) -> Value:
    return clamp(g, input, None, max)


@converts("fill")
def fill(g: Builder, input: Value, value: Any) -> Value:
    return g.op("Expand", g.number(value, input), g.shape(input))


@converts("zero")
def zero(g: Builder, input: Value) -> Value:
    return fill(g, input, 0)


@converts("copy")
def copy(g: Builder, input: Value, src: Value, non_blocking: bool = False) -> Value:
    same = src.shape == input.shape
    return src if same else g.op("Expand", g.cast(src, input.dtype), g.shape(input))


# Comparisons and logic


def _equal(g: Builder, a: Value, b: Value) -> Value:
    return g.op("Equal", a, b, dtype=rl.bool)


def _comparison(kind: str, negated: bool = False) -> Callable[..., Any]:
    def convert(g: Builder, input: Any, other: Any) -> Value:
        a, b = promoted(g, input, other)
        if a.dtype is rl.bool and kind != "Equal":  # only numbers have an order
            a, b = g.cast(a, rl.int32), g.cast(b, rl.int32)
        result = g.op(kind, a, b, dtype=rl.bool)
        return g.op("Not", result) if negated else result

    return convert


for _names, _kind, _negated in (
    (("eq",), "Equal", False),
    (("ne", "not_equal"), "Equal", True),
    (("lt", "less"), "Less", False),
    (("le", "less_equal"), "LessOrEqual", False),
    (("gt", "greater"), "Greater", False),
    (("ge", "greater_equal"), "GreaterOrEqual", False),
):
    TABLE.update(dict.fromkeys(_names, _comparison(_kind, _negated)))


def _logical(kind: str, bits: str | None = None) -> Callable[..., Any]:
    """And, Or or Xor of truth values; of the bits of integers, where the op does that."""

    def convert(g: Builder, input: Any, other: Any) -> Value:
        a, b = promoted(g, input, other)
        if bits and a.dtype is not rl.bool:
            return g.op(bits, a, b)
        return g.op(kind, g.cast(a, rl.bool), g.cast(b, rl.bool))

    return convert


for _kind in ("And", "Or", "Xor"):
    TABLE[f"logical_{_kind.lower()}"] = _logical(_kind)
    TABLE[f"bitwise_{_kind.lower()}"] = TABLE[_kind.lower()] = _logical(_kind, f"Bitwise{_kind}")


@converts("logical_not", "bitwise_not")
def not_(g: Builder, input: Value) -> Value:
    if input.dtype is not rl.bool and "bitwise" in str(g.node.target):
        return g.op("BitwiseNot", input)
    return g.op("Not", g.cast(input, rl.bool))


@converts("isclose")
def isclose(
    g: Builder,
    input: Value,
    other: Value,
    rtol: float = 1e-5,
    atol: float = 1e-8,
    equal_nan: bool = False,
) -> Value:
    if equal_nan:
        g.refuse("equal_nan=True has no ONNX form")
    far = g.op("Abs", g.op("Sub", input, other))
    bound = g.op("Mul", g.op("Abs", other), g.number(rtol, input))
    bound = g.op("Add", bound, g.number(atol, input))
    return g.op("LessOrEqual", far, bound, dtype=rl.bool)


@converts("where")
def where(g: Builder, condition: Value, input: Any = None, other: Any = None) -> Value:
    if input is None:
        g.refuse("where with one argument has results of unknown sizes")
    a, b = promoted(g, input, other)
    return g.op("Where", g.cast(condition, rl.bool), a, b, dtype=a.dtype)


@converts("masked_fill")
def masked_fill(g: Builder, input: Value, mask: Value, value: Any) -> Value:
    return g.op("Where", mask, g.number(value, input), input, dtype=input.dtype)
