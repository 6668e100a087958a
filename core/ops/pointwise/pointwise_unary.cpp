// Owns the ops on one tensor that take a number apart: sign, rounding, classification, units.
// Functions of mathematics are in pointwise_math.cpp.
#include <algorithm>
#include <cmath>

#include "core/ops/op.h"

namespace rushlight {

// ---- sign ---------------------------------------------------------------------------------------

POINTWISE(neg_value, (N input), -input)
OP(neg, "(Tensor input) -> Tensor", {
  .doc     = "The negative of each element: -input.",
  .dtypes  = numeric,
  .aliases = "negative",
  .sparse  = by_entries,
  .forward = formula<neg_value>,
  .grads   = grads(d<"input">([](const Tensor& g) { return neg(g); })),
})

OP(positive, "(Tensor input) -> Tensor", {
  .doc     = "The tensor itself: what the sign in +input asks for.",
  .dtypes  = numeric,
  .sparse  = by_forward,
  .forward = [](const Tensor& input) { return input; },
})

POINTWISE(abs_value, (N input), abs(input))
POINTWISE(abs_grad, (C g, C input), g * sgn(input))
OP(abs, "(Tensor input) -> Tensor", {
  .doc     = R"(The absolute value of each element; of a complex one, its real magnitude.

Example:
    >>> torch.abs(torch.tensor([-1.0, 2.0]))
    tensor([1., 2.]))",
  .dtypes  = numeric,
  .aliases = "absolute",
  .sparse  = by_values,
  .forward = formula<abs_value>,
  .saves   = saves<"input">,
  .grads   = grads(d<"input">(formula<abs_grad>)),
})

POINTWISE(sign_value, (R input), sign(input))
OP(sign, "(Tensor input) -> Tensor", {
  .doc     = "The sign of each element: -1, 0 or 1. It is 0 for NaN. For complex numbers, see sgn.",
  .dtypes  = real,
  .sparse  = by_values,
  .forward = formula<sign_value>,
  .grads   = grads(d<"input">([](const Tensor& g) { return zeros_like(g); })),
})

// z / |z| turns with z but never grows: its gradient is what of g lies across z, over |z|.
POINTWISE(sgn_value, (N input), sgn(input))
OP(sgn, "(Tensor input) -> Tensor", {
  .doc     = R"(input / abs(input), 0 where input is 0.

It is the sign of real numbers and the direction of complex ones.)",
  .sparse  = by_values,
  .forward = formula<sgn_value>,
  .saves   = saves<"input", "result">,
  .grads   = grads(d<"input">([](const Tensor& g, const Tensor& input, const Tensor& result) {
    if (!is_complex(input.dtype())) return zeros_like(g);
    Tensor across = (g - conj(g) * result * result) * 0.5 / abs(input);
    return where(input == 0, zeros_like(g), across);
  })),
})

POINTWISE(signbit_value, (R input), signbit(input))
OP(signbit, "(Tensor input) -> Tensor", {
  .doc     = "Whether the sign of each element is negative; true for -0.0.",
  .dtypes  = real,
  .sparse  = by_values,
  .forward = formula<signbit_value>,
})

POINTWISE(conj_value, (N input), conj(input))
OP(conj_physical, "(Tensor input) -> Tensor", {
  .doc     = "A copy with the sign of each imaginary part turned.",
  .sparse  = by_entries,
  .forward = formula<conj_value>,
  .grads   = grads(d<"input">([](const Tensor& g) { return conj(g); })),
})
OP(conj, "(Tensor input) -> Tensor", {
  .doc     = "The complex conjugate of each element; real tensors are returned as they are.",
  .sparse  = by_forward,
  .forward = [](const Tensor& input) {
    return is_complex(input.dtype()) ? call<"conj_physical", Tensor>(input) : input;
  },
})

POINTWISE(real_angle_value, (T input),
          select(isnan(input), input, select(input < S(0), S(3.141592653589793), S(0))))
OP(_real_angle, "(Tensor input) -> Tensor", {
  .home    = "core",
  .doc     = "angle of real numbers.",
  .dtypes  = real,
  .forward = formula<real_angle_value>,
  .grads   = grads(d<"input">([](const Tensor& g) { return zeros_like(g); })),
})
OP(angle, "(Tensor input) -> Tensor", {
  .doc     = R"(The angle of each element in the complex plane, in radians: pi below zero.

Example:
    >>> torch.angle(torch.tensor([1j, -1.0]))
    tensor([1.5708, 3.1416]))",
  .variants = function | method,
  .sparse  = by_values,
  .forward = [](const Tensor& input) {
    if (!is_complex(input.dtype())) return call<"_real_angle", Tensor>(input);
    return call<"atan2", Tensor>(call<"imag", Tensor>(input), call<"real", Tensor>(input));
  },
})

// ---- rounding -----------------------------------------------------------------------------------

POINTWISE(floor_value, (R input), floor(input))
OP(floor, "(Tensor input) -> Tensor", {
  .doc     = "The largest integer that is at most each element.",
  .dtypes  = real_numeric,
  .sparse  = by_values,
  .forward = formula<floor_value>,
  .grads   = grads(d<"input">([](const Tensor& g) { return zeros_like(g); })),
})

POINTWISE(ceil_value, (R input), ceil(input))
OP(ceil, "(Tensor input) -> Tensor", {
  .doc     = "The smallest integer that is at least each element.",
  .dtypes  = real_numeric,
  .sparse  = by_values,
  .forward = formula<ceil_value>,
  .grads   = grads(d<"input">([](const Tensor& g) { return zeros_like(g); })),
})

POINTWISE(trunc_value, (R input), trunc(input))
OP(trunc, "(Tensor input) -> Tensor", {
  .doc     = "The integer part of each element: rounded towards zero.",
  .dtypes  = real_numeric,
  .aliases = "fix",
  .sparse  = by_values,
  .forward = formula<trunc_value>,
  .grads   = grads(d<"input">([](const Tensor& g) { return zeros_like(g); })),
})

POINTWISE(round_value, (R input), round(input))
OP(round, "(Tensor input) -> Tensor", {
  .home    = "torch special",
  .doc     = R"(The nearest integer to each element; halves go to the even one.

Example:
    >>> torch.round(torch.tensor([0.5, 1.5, 2.6]))
    tensor([0., 2., 3.]))",
  .dtypes  = real_numeric,
  .sparse  = by_values,
  .forward = formula<round_value>,
  .grads   = grads(d<"input">([](const Tensor& g) { return zeros_like(g); })),
})

POINTWISE(round_fraction, (T input, S unit), round(input * unit) / unit)
POINTWISE(round_tens, (T input, S unit), round(input / unit) * unit)
OP(round_decimals, "round.decimals(Tensor input, *, int decimals) -> Tensor", {
  .home    = "torch special",
  .doc     = R"(With decimals, the nearest number with so many digits after the point.

A negative number of decimals rounds to tens, hundreds and so on.)",
  .dtypes  = floating,
  .sparse  = by_values,
  .batch   = by_elements,
  .forward = [](const Tensor& input, int64_t decimals, const Tensor* into) {
    double unit = std::pow(10.0, std::min(std::abs(double(decimals)), 300.0));
    return decimals < 0 ? pointwise_into<round_tens>(into, input, unit)
                        : pointwise_into<round_fraction>(into, input, unit);
  },
  .grads   = grads(d<"input">([](const Tensor& g) { return zeros_like(g); })),
})

POINTWISE(frac_value, (T input), input - trunc(input))
OP(frac, "(Tensor input) -> Tensor", {
  .doc     = "The part of each element after the point, with its sign: input - trunc(input).",
  .dtypes  = floating,
  .sparse  = by_values,
  .forward = formula<frac_value>,
  .grads   = grads(d<"input">([](const Tensor& g) { return g; })),
})

// ---- classification -----------------------------------------------------------------------------

POINTWISE(isnan_value, (N input), isnan(input))
OP(isnan, "(Tensor input) -> Tensor", {
  .doc     = "Whether each element is NaN; a complex one is when a part of it is.",
  .variants = function | method,
  .sparse  = by_values,
  .forward = formula<isnan_value>,
})

POINTWISE(isinf_value, (N input), isinf(input))
OP(isinf, "(Tensor input) -> Tensor", {
  .doc     = "Whether each element is infinite, of either sign.",
  .variants = function | method,
  .sparse  = by_values,
  .forward = formula<isinf_value>,
})

POINTWISE(isposinf_value, (R input), isinf(input) & (input > S(0)))
OP(isposinf, "(Tensor input) -> Tensor", {
  .doc     = "Whether each element is +inf.",
  .dtypes  = real,
  .variants = function | method,
  .sparse  = by_values,
  .forward = formula<isposinf_value>,
})

POINTWISE(isneginf_value, (R input), isinf(input) & (input < S(0)))
OP(isneginf, "(Tensor input) -> Tensor", {
  .doc     = "Whether each element is -inf.",
  .dtypes  = real,
  .variants = function | method,
  .sparse  = by_values,
  .forward = formula<isneginf_value>,
})

POINTWISE(isfinite_value, (N input), isfinite(input))
OP(isfinite, "(Tensor input) -> Tensor", {
  .doc     = "Whether each element is neither infinite nor NaN.",
  .variants = function | method,
  .forward = formula<isfinite_value>,
})

OP(isreal, "(Tensor input) -> Tensor", {
  .doc     = R"(Whether each element has no imaginary part.

Example:
    >>> torch.isreal(torch.tensor([1 + 0j, 2j]))
    tensor([ True, False]))",
  .variants = function | method,
  .forward = [](const Tensor& input) {
    if (is_complex(input.dtype())) return call<"imag", Tensor>(input) == 0;
    return logical_not(call<"zeros_like", Tensor>(input, std::optional(DType::bool_),
                                                 std::optional<Device>(),
                                                 std::optional<MemoryFormat>()));
  },
})

POINTWISE(logical_not_value, (B input), !input)
OP(logical_not, "(Tensor input) -> Tensor", {
  .doc     = "Whether each element is zero.",
  .forward = formula<logical_not_value>,
})

POINTWISE(bitwise_not_value, (I input), ~input)
OP(bitwise_not, "(Tensor input) -> Tensor", {
  .doc     = "Turns every bit of each element: ~input; of bool tensors, the logical not.",
  .dtypes  = integral_or_bool,
  .batch   = by_elements,
  .forward = [](const Tensor& input, const Tensor* into) {
    return is_bool(input.dtype()) ? pointwise_into<logical_not_value>(into, input)
                                  : pointwise_into<bitwise_not_value>(into, input);
  },
})

// ---- replacing and converting -------------------------------------------------------------------

POINTWISE(nan_to_num_value, (T input, S nan, S posinf, S neginf),
          select(isfinite(input), input,
                 select(isnan(input), nan, select(input > S(0), posinf, neginf))))
POINTWISE(nan_to_num_grad, (T g, T input), select(isfinite(input), g, S(0)))
OP(nan_to_num,
   "(Tensor input, float? nan=None, float? posinf=None, float? neginf=None) -> Tensor", {
  .doc     = R"(Replaces NaN, +inf and -inf.

The default is 0 for NaN, and the largest and smallest numbers of the dtype for the infinities.

Example:
    >>> torch.nan_to_num(torch.tensor([float('nan'), 1.0]), nan=5.0)
    tensor([5., 1.]))",
  .sparse  = by_values,
  .batch   = by_elements,
  .forward = [](const Tensor& input, std::optional<double> nan, std::optional<double> posinf,
                std::optional<double> neginf, const Tensor* into) {
    if (is_complex(input.dtype())) {  // its parts one by one
      Tensor parts = call<"view_as_real", Tensor>(contiguous(input));
      Tensor finite = call<"nan_to_num", Tensor>(parts, nan, posinf, neginf);
      Tensor result = call<"view_as_complex", Tensor>(finite);
      if (into) copy_into(*into, result);
      return into ? *into : result;
    }
    if (!is_floating(input.dtype())) {
      if (into) copy_into(*into, input);
      return into ? *into : clone_dense(input, MemoryFormat::preserve);
    }
    double largest = largest_finite(input.dtype());
    return pointwise_into<nan_to_num_value>(into, input, nan.value_or(0),
                                            posinf.value_or(largest), neginf.value_or(-largest));
  },
  .saves   = saves<"input">,
  .grads   = grads(d<"input">([](const Tensor& g, const Tensor& input) {
    if (!is_complex(input.dtype())) return evaluate<nan_to_num_grad>(g, input);
    Tensor parts = call<"view_as_real", Tensor>(contiguous(g));
    Tensor of = call<"view_as_real", Tensor>(contiguous(input));
    return call<"view_as_complex", Tensor>(contiguous(evaluate<nan_to_num_grad>(parts, of)));
  })),
})

POINTWISE(deg2rad_value, (T input), input * S(0.017453292519943295))
OP(deg2rad, "(Tensor input) -> Tensor", {
  .doc     = "Angles from degrees to radians: input * pi / 180.",
  .dtypes  = real,
  .sparse  = by_values,
  .forward = formula<deg2rad_value>,
  .grads   = grads(d<"input">([](const Tensor& g) { return g * 0.017453292519943295; })),
})

POINTWISE(rad2deg_value, (T input), input * S(57.29577951308232))
OP(rad2deg, "(Tensor input) -> Tensor", {
  .doc     = "Angles from radians to degrees: input * 180 / pi.",
  .dtypes  = real,
  .sparse  = by_values,
  .forward = formula<rad2deg_value>,
  .grads   = grads(d<"input">([](const Tensor& g) { return g * 57.29577951308232; })),
})

}  // namespace rushlight
