// Owns the functions of angles and of hyperbolas. Gradients of complex numbers: see
// pointwise_math.cpp.
#include "core/ops/op.h"

namespace rushlight {

// ---- angles -------------------------------------------------------------------------------------

POINTWISE(sin_value, (C input), sin(input))
POINTWISE(sin_grad, (C g, C input), g * conj(cos(input)))
OP(sin, "(Tensor input) -> Tensor", {
  .doc     = "The sine of each element, an angle in radians.",
  .sparse  = by_values,
  .forward = formula<sin_value>,
  .saves   = saves<"input">,
  .grads   = grads(d<"input">(formula<sin_grad>)),
})

POINTWISE(cos_value, (C input), cos(input))
POINTWISE(cos_grad, (C g, C input), -g * conj(sin(input)))
OP(cos, "(Tensor input) -> Tensor", {
  .doc     = "The cosine of each element, an angle in radians.",
  .forward = formula<cos_value>,
  .saves   = saves<"input">,
  .grads   = grads(d<"input">(formula<cos_grad>)),
})

POINTWISE(tan_value, (C input), tan(input))
POINTWISE(tan_grad, (C g, C result), g * conj(S(1) + result * result))
OP(tan, "(Tensor input) -> Tensor", {
  .doc     = "The tangent of each element, an angle in radians.",
  .autocast = autocast::on_cuda(autocast::single),
  .sparse  = by_values,
  .forward = formula<tan_value>,
  .saves   = saves<"result">,
  .grads   = grads(d<"input">(formula<tan_grad>)),
})

POINTWISE(asin_value, (C input), asin(input))
POINTWISE(asin_grad, (C g, C input), g / conj(sqrt(S(1) - input * input)))
OP(asin, "(Tensor input) -> Tensor", {
  .doc     = "The angle in [-pi/2, pi/2] with this sine; NaN outside [-1, 1].",
  .aliases = "arcsin",
  .autocast = autocast::on_cuda(autocast::single),
  .sparse  = by_values,
  .forward = formula<asin_value>,
  .saves   = saves<"input">,
  .grads   = grads(d<"input">(formula<asin_grad>)),
})

POINTWISE(acos_value, (C input), acos(input))
POINTWISE(acos_grad, (C g, C input), -g / conj(sqrt(S(1) - input * input)))
OP(acos, "(Tensor input) -> Tensor", {
  .doc     = "The angle in [0, pi] with this cosine; NaN outside [-1, 1].",
  .aliases = "arccos",
  .autocast = autocast::on_cuda(autocast::single),
  .forward = formula<acos_value>,
  .saves   = saves<"input">,
  .grads   = grads(d<"input">(formula<acos_grad>)),
})

POINTWISE(atan_value, (C input), atan(input))
POINTWISE(atan_grad, (C g, C input), g / conj(S(1) + input * input))
OP(atan, "(Tensor input) -> Tensor", {
  .doc     = "The angle in (-pi/2, pi/2) with this tangent.",
  .aliases = "arctan",
  .sparse  = by_values,
  .forward = formula<atan_value>,
  .saves   = saves<"input">,
  .grads   = grads(d<"input">(formula<atan_grad>)),
})

POINTWISE(atan2_value, (T input, T other), atan2(input, other))
POINTWISE(atan2_grad_input, (T g, T input, T other),
          select((input == S(0)) & (other == S(0)), S(0),
                 g * other / (input * input + other * other)))
POINTWISE(atan2_grad_other, (T g, T input, T other),
          select((input == S(0)) & (other == S(0)), S(0),
                 -g * input / (input * input + other * other)))
OP(atan2, "(Tensor input, Tensor other) -> Tensor", {
  .doc     = "The angle in [-pi, pi] of the point with x = other and y = input.",
  .dtypes  = real,
  .aliases = "arctan2",
  .autocast = autocast::on_cuda(autocast::widest),
  .forward = formula<atan2_value>,
  .saves   = saves<"input", "other">,
  .grads   = grads(d<"input">(formula<atan2_grad_input>), d<"other">(formula<atan2_grad_other>)),
})

POINTWISE(hypot_value, (T input, T other), hypot(input, other))
POINTWISE(hypot_grad_input, (T g, T input, T result), g * (input / result))
POINTWISE(hypot_grad_other, (T g, T other, T result), g * (other / result))
OP(hypot, "(Tensor input, Tensor other) -> Tensor", {
  .doc     = "The length of the hypotenuse: sqrt(input^2 + other^2) without overflow.",
  .dtypes  = real,
  .forward = formula<hypot_value>,
  .saves   = saves<"input", "other", "result">,
  .grads   = grads(d<"input">(formula<hypot_grad_input>), d<"other">(formula<hypot_grad_other>)),
})

// The quotients have no value at 0, where the function is 1 and its derivative 0.
POINTWISE(sinc_value, (C input),
          select(input == S(0), S(1),
                 sin(input * S(3.141592653589793)) / (input * S(3.141592653589793))))
POINTWISE(sinc_grad, (C g, C input),
          select(input == S(0), S(0),
                 g * conj((cos(input * S(3.141592653589793)) -
                           sin(input * S(3.141592653589793)) / (input * S(3.141592653589793))) /
                          input)))
OP(sinc, "(Tensor input) -> Tensor", {
  .home    = "torch special",
  .doc     = "sin(pi * input) / (pi * input), 1 at zero.",
  .forward = formula<sinc_value>,
  .saves   = saves<"input">,
  .grads   = grads(d<"input">(formula<sinc_grad>)),
})

// ---- hyperbolas ---------------------------------------------------------------------------------

POINTWISE(sinh_value, (C input), sinh(input))
POINTWISE(sinh_grad, (C g, C input), g * conj(cosh(input)))
OP(sinh, "(Tensor input) -> Tensor", {
  .doc     = "The hyperbolic sine of each element: (exp(input) - exp(-input)) / 2.",
  .autocast = autocast::on_cuda(autocast::single),
  .sparse  = by_values,
  .forward = formula<sinh_value>,
  .saves   = saves<"input">,
  .grads   = grads(d<"input">(formula<sinh_grad>)),
})

POINTWISE(cosh_value, (C input), cosh(input))
POINTWISE(cosh_grad, (C g, C input), g * conj(sinh(input)))
OP(cosh, "(Tensor input) -> Tensor", {
  .doc     = "The hyperbolic cosine of each element: (exp(input) + exp(-input)) / 2.",
  .autocast = autocast::on_cuda(autocast::single),
  .forward = formula<cosh_value>,
  .saves   = saves<"input">,
  .grads   = grads(d<"input">(formula<cosh_grad>)),
})

POINTWISE(tanh_value, (C input), tanh(input))
POINTWISE(tanh_grad, (C g, C result), g * conj(S(1) - result * result))
OP(tanh, "(Tensor input) -> Tensor", {
  .doc     = "The hyperbolic tangent of each element: sinh(input) / cosh(input), in (-1, 1).",
  .sparse  = by_values,
  .forward = formula<tanh_value>,
  .saves   = saves<"result">,
  .grads   = grads(d<"input">(formula<tanh_grad>)),
})

POINTWISE(asinh_value, (C input), asinh(input))
POINTWISE(asinh_grad, (C g, C input), g / conj(sqrt(input * input + S(1))))
OP(asinh, "(Tensor input) -> Tensor", {
  .doc     = "The inverse of sinh.",
  .aliases = "arcsinh",
  .sparse  = by_values,
  .forward = formula<asinh_value>,
  .saves   = saves<"input">,
  .grads   = grads(d<"input">(formula<asinh_grad>)),
})

POINTWISE(acosh_value, (C input), acosh(input))
POINTWISE(acosh_grad, (C g, C input), g / conj(sqrt(input - S(1)) * sqrt(input + S(1))))
OP(acosh, "(Tensor input) -> Tensor", {
  .doc     = "The inverse of cosh, at least 0; NaN below 1.",
  .aliases = "arccosh",
  .forward = formula<acosh_value>,
  .saves   = saves<"input">,
  .grads   = grads(d<"input">(formula<acosh_grad>)),
})

POINTWISE(atanh_value, (C input), atanh(input))
POINTWISE(atanh_grad, (C g, C input), g / conj(S(1) - input * input))
OP(atanh, "(Tensor input) -> Tensor", {
  .doc     = "The inverse of tanh; NaN outside [-1, 1].",
  .aliases = "arctanh",
  .sparse  = by_values,
  .forward = formula<atanh_value>,
  .saves   = saves<"input">,
  .grads   = grads(d<"input">(formula<atanh_grad>)),
})

}  // namespace rushlight
