"""Functions element by element.

Owns what the standard asks for beyond PyTorch's functions of the same name: that either operand may
be a number, and the values at infinities, NaN and signed zeros.
"""

from __future__ import annotations

from collections.abc import Callable

import rushlight as rl
from rushlight import Tensor
from rushlight.array_api._data_types import Number, as_arrays


def _unary(name: str, doc: str, function: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    def apply(x: Tensor, /) -> Tensor:
        return function(x)

    apply.__name__ = apply.__qualname__ = name
    apply.__doc__ = f"Returns {doc}"
    return apply


def _binary(
    name: str, doc: str, function: Callable[[Tensor, Tensor], Tensor]
) -> Callable[[Tensor | Number, Tensor | Number], Tensor]:
    def apply(x1: Tensor | Number, x2: Tensor | Number, /) -> Tensor:
        return function(*as_arrays(x1, x2))

    apply.__name__ = apply.__qualname__ = name
    apply.__doc__ = f"Returns {doc} One of both may be a Python number."
    return apply


# One array

abs = _unary("abs", "the magnitude of each element.", rl.abs)
acos = _unary("acos", "the inverse cosine of each element.", rl.acos)
acosh = _unary("acosh", "the inverse hyperbolic cosine of each element.", rl.acosh)
asin = _unary("asin", "the inverse sine of each element.", rl.asin)
asinh = _unary("asinh", "the inverse hyperbolic sine of each element.", rl.asinh)
atan = _unary("atan", "the inverse tangent of each element.", rl.atan)
atanh = _unary("atanh", "the inverse hyperbolic tangent of each element.", rl.atanh)
bitwise_invert = _unary("bitwise_invert", "each element with every bit turned.", rl.bitwise_not)
ceil = _unary("ceil", "the smallest integer that is at least each element.", rl.ceil)
conj = _unary("conj", "the complex conjugate of each element.", rl.conj_physical)
cos = _unary("cos", "the cosine of each element.", rl.cos)
cosh = _unary("cosh", "the hyperbolic cosine of each element.", rl.cosh)
exp = _unary("exp", "the exponential of each element.", rl.exp)
expm1 = _unary("expm1", "exp(x) - 1, accurate close to zero.", rl.expm1)
floor = _unary("floor", "the largest integer that is at most each element.", rl.floor)
imag = _unary("imag", "the imaginary part of each element.", rl.imag)
isfinite = _unary("isfinite", "whether each element is neither infinite nor NaN.", rl.isfinite)
isinf = _unary("isinf", "whether each element is infinite.", rl.isinf)
isnan = _unary("isnan", "whether each element is NaN.", rl.isnan)
log = _unary("log", "the natural logarithm of each element.", rl.log)
log1p = _unary("log1p", "log(1 + x), accurate close to zero.", rl.log1p)
log2 = _unary("log2", "the logarithm to base 2 of each element.", rl.log2)
log10 = _unary("log10", "the logarithm to base 10 of each element.", rl.log10)
logical_not = _unary("logical_not", "whether each element is false.", rl.logical_not)
negative = _unary("negative", "the negative of each element.", rl.neg)
positive = _unary("positive", "the elements as they are.", rl.positive)
real = _unary("real", "the real part of each element.", rl.real)
reciprocal = _unary("reciprocal", "one over each element.", rl.reciprocal)
signbit = _unary("signbit", "whether the sign of each element is negative.", rl.signbit)
sin = _unary("sin", "the sine of each element.", rl.sin)
sinh = _unary("sinh", "the hyperbolic sine of each element.", rl.sinh)
sqrt = _unary("sqrt", "the square root of each element.", rl.sqrt)
square = _unary("square", "the square of each element.", rl.square)
tan = _unary("tan", "the tangent of each element.", rl.tan)
tanh = _unary("tanh", "the hyperbolic tangent of each element.", rl.tanh)
trunc = _unary("trunc", "each element rounded towards zero.", rl.trunc)


def round(x: Tensor, /) -> Tensor:
    """Returns the nearest integer to each element, or to both its parts; halves go to even ones.

    Example:
        >>> xp.round(xp.asarray([0.5, 1.5, -2.6]))
        tensor([ 0.,  2., -3.])
    """
    if x.dtype.is_complex:
        return rl.complex(rl.round(rl.real(x)), rl.round(rl.imag(x)))
    return rl.round(x)


def sign(x: Tensor, /) -> Tensor:
    """Returns -1, 0 or 1 for real elements, x / abs(x) for complex ones; NaN for NaN.

    Example:
        >>> xp.sign(xp.asarray([-2.0, 0.0, float("nan")]))
        tensor([-1.,  0., nan])
    """
    if x.dtype.is_floating_point:
        return rl.where(rl.isnan(x), x, rl.sign(x))
    return rl.sgn(x)


# Two arrays


def _floor_divide(x1: Tensor, x2: Tensor) -> Tensor:
    quotient = rl.floor_divide(x1, x2)
    if not x1.dtype.is_floating_point:
        return quotient
    # With one infinity the standard rounds the quotient, infinite or zero. Python's // fits its %:
    # NaN for an infinite dividend, -1 for an infinite divisor of the other sign.
    return rl.where(rl.isinf(x1) ^ rl.isinf(x2), x1 / x2, quotient)


def _remainder(x1: Tensor, x2: Tensor) -> Tensor:
    rest = rl.remainder(x1, x2)
    if not x1.dtype.is_floating_point:
        return rest
    # Zeros have the sign of the divisor.
    return rl.where(rest == 0, rl.copysign(rest, x2), rest)


add = _binary("add", "the sum of two elements.", rl.add)
atan2 = _binary("atan2", "the angle of the point (x2, x1).", rl.atan2)
bitwise_and = _binary("bitwise_and", "the bits that are set in both elements.", rl.bitwise_and)
bitwise_left_shift = _binary(
    "bitwise_left_shift", "the bits of x1 moved up by x2 places.", rl.bitwise_left_shift
)
bitwise_or = _binary("bitwise_or", "the bits that are set in either element.", rl.bitwise_or)
bitwise_right_shift = _binary(
    "bitwise_right_shift", "the bits of x1 moved down by x2 places.", rl.bitwise_right_shift
)
bitwise_xor = _binary("bitwise_xor", "the bits that differ.", rl.bitwise_xor)
copysign = _binary("copysign", "the magnitude of x1 with the sign of x2.", rl.copysign)
divide = _binary("divide", "x1 / x2.", rl.true_divide)
equal = _binary("equal", "whether two elements are equal.", rl.eq)
floor_divide = _binary("floor_divide", "x1 / x2, rounded down.", _floor_divide)
greater = _binary("greater", "whether x1 > x2.", rl.gt)
greater_equal = _binary("greater_equal", "whether x1 >= x2.", rl.ge)
hypot = _binary("hypot", "sqrt(x1 ** 2 + x2 ** 2) without overflow.", rl.hypot)
less = _binary("less", "whether x1 < x2.", rl.lt)
less_equal = _binary("less_equal", "whether x1 <= x2.", rl.le)
logaddexp = _binary("logaddexp", "log(exp(x1) + exp(x2)) without overflow.", rl.logaddexp)
logical_and = _binary("logical_and", "whether both elements are true.", rl.logical_and)
logical_or = _binary("logical_or", "whether one element is true.", rl.logical_or)
logical_xor = _binary("logical_xor", "whether exactly one element is true.", rl.logical_xor)
maximum = _binary("maximum", "the larger of two elements, NaN if one of them is.", rl.maximum)
minimum = _binary("minimum", "the smaller of two elements, NaN if one of them is.", rl.minimum)
multiply = _binary("multiply", "the product of two elements.", rl.mul)
nextafter = _binary("nextafter", "the number next to x1 towards x2.", rl.nextafter)
not_equal = _binary("not_equal", "whether two elements differ.", rl.ne)
remainder = _binary("remainder", "the rest of x1 / x2 with the sign of x2.", _remainder)
subtract = _binary("subtract", "x1 - x2.", rl.sub)


def pow(x1: Tensor | Number, x2: Tensor | Number, /) -> Tensor:
    """Returns x1 to the power of x2. One of both may be a Python number.

    Example:
        >>> xp.pow(xp.asarray([1.0, 2.0, 3.0]), 2)
        tensor([1., 4., 9.])
    """
    if isinstance(x1, Tensor) and isinstance(x2, Number):
        return rl.pow(x1, x2)  # which has kernels for small numbers
    return rl.pow(*as_arrays(x1, x2))


def clip(
    x: Tensor, /, min: Tensor | float | None = None, max: Tensor | float | None = None
) -> Tensor:
    """Returns each element brought into [min, max]; each bound is a number, an array or absent.

    Example:
        >>> xp.clip(xp.asarray([-2.0, 0.5, 3.0]), 0, 1)
        tensor([0.0000, 0.5000, 1.0000])
    """
    low, high = _bound(min, x), _bound(max, x)
    return rl.clone(x) if low is None and high is None else rl.clamp(x, low, high)


def _bound(bound: Tensor | float | None, x: Tensor) -> Tensor | float | None:
    """A bound that the dtype of x can hold; None if no number of it is beyond."""
    if isinstance(bound, Tensor):
        return bound.to(x.dtype)
    if bound is None or x.dtype.is_floating_point:
        return bound
    limits = rl.iinfo(x.dtype)
    if not limits.min <= bound <= limits.max:
        return None
    # As numbers, 0 and 2 ** 63 would have dtypes that do not promote with each other.
    return x.new_full((), bound) if x.dtype is rl.uint64 else bound
