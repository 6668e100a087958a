// Owns the Bessel functions and Airy's. Derivatives of Bessel functions are Bessel functions again
// (Abramowitz and Stegun 9.1.28, 9.6.27); PyTorch has none for J, Y and K.
#include "core/ops/op.h"

#ifdef RUSHLIGHT_ISA
#include "core/tensor/formula_special.h"
#endif

namespace rushlight {

// ---- modified Bessel functions ------------------------------------------------------------------

POINTWISE(i0_value, (T input), i0(input))
OP(i0, "(Tensor input) -> Tensor", {
  .home    = "torch special",
  .doc     = R"(The modified Bessel function of the first kind of order 0.

Example:
    >>> torch.i0(torch.tensor([0.0, 1.0]))
    tensor([1.0000, 1.2661]))",
  .dtypes  = real,
  .aliases = "special.modified_bessel_i0",
  .forward = formula<i0_value>,
  .saves   = saves<"input">,
  .grads   = grads(d<"input">([](const Tensor& g, const Tensor& input) {
    return g * call<"i1", Tensor>(input);
  })),
})

POINTWISE(i0e_value, (T input), i0e(input))
OP(i0e, "(Tensor input) -> Tensor", {
  .home    = "special",
  .doc     = "exp(-abs(input)) * i0(input), which does not overflow.",
  .dtypes  = real,
  .forward = formula<i0e_value>,
  .saves   = saves<"input", "result">,
  .grads   = grads(d<"input">([](const Tensor& g, const Tensor& input, const Tensor& result) {
    return g * (call<"i1e", Tensor>(input) - sign(input) * result);
  })),
})

// result / input has no value at 0, where the derivative is 1/2. Nor is it computed there: its own
// gradient would be NaN.
POINTWISE(i1_value, (T input), i1(input))
OP(i1, "(Tensor input) -> Tensor", {
  .home    = "special",
  .doc     = "The modified Bessel function of the first kind of order 1.",
  .dtypes  = real,
  .aliases = "modified_bessel_i1",
  .forward = formula<i1_value>,
  .saves   = saves<"input", "result">,
  .grads   = grads(d<"input">([](const Tensor& g, const Tensor& input, const Tensor& result) {
    Tensor divisor = where(input == 0, wrapped_number(1), input);
    Tensor slope = call<"i0", Tensor>(input) - result / divisor;
    return g * where(input == 0, wrapped_number(0.5), slope);
  })),
})

POINTWISE(i1e_value, (T input), i1e(input))
OP(i1e, "(Tensor input) -> Tensor", {
  .home    = "special",
  .doc     = "exp(-abs(input)) * i1(input), which does not overflow.",
  .dtypes  = real,
  .forward = formula<i1e_value>,
  .saves   = saves<"input", "result">,
  .grads   = grads(d<"input">([](const Tensor& g, const Tensor& input, const Tensor& result) {
    Tensor divisor = where(input == 0, wrapped_number(1), input);
    Tensor slope = call<"i0e", Tensor>(input) - result * (sign(input) + reciprocal(divisor));
    return g * where(input == 0, wrapped_number(0.5), slope);
  })),
})

POINTWISE(modified_bessel_k0_value, (T input), modified_bessel_k0(input))
OP(modified_bessel_k0, "(Tensor input) -> Tensor", {
  .home    = "special",
  .doc     = "The modified Bessel function of the second kind of order 0; NaN below zero.",
  .dtypes  = real,
  .forward = formula<modified_bessel_k0_value>,
  .saves   = saves<"input">,
  .grads   = grads(d<"input">([](const Tensor& g, const Tensor& input) {
    return -g * call<"modified_bessel_k1", Tensor>(input);
  })),
})

POINTWISE(modified_bessel_k1_value, (T input), modified_bessel_k1(input))
OP(modified_bessel_k1, "(Tensor input) -> Tensor", {
  .home    = "special",
  .doc     = "The modified Bessel function of the second kind of order 1; NaN below zero.",
  .dtypes  = real,
  .forward = formula<modified_bessel_k1_value>,
  .saves   = saves<"input", "result">,
  .grads   = grads(d<"input">([](const Tensor& g, const Tensor& input, const Tensor& result) {
    return -g * (call<"modified_bessel_k0", Tensor>(input) + result / input);
  })),
})

POINTWISE(scaled_modified_bessel_k0_value, (T input), scaled_modified_bessel_k0(input))
OP(scaled_modified_bessel_k0, "(Tensor input) -> Tensor", {
  .home    = "special",
  .doc     = "exp(input) * modified_bessel_k0(input), which does not underflow.",
  .dtypes  = real,
  .forward = formula<scaled_modified_bessel_k0_value>,
  .saves   = saves<"input", "result">,
  .grads   = grads(d<"input">([](const Tensor& g, const Tensor& input, const Tensor& result) {
    return g * (result - call<"scaled_modified_bessel_k1", Tensor>(input));
  })),
})

POINTWISE(scaled_modified_bessel_k1_value, (T input), scaled_modified_bessel_k1(input))
OP(scaled_modified_bessel_k1, "(Tensor input) -> Tensor", {
  .home    = "special",
  .doc     = "exp(input) * modified_bessel_k1(input), which does not underflow.",
  .dtypes  = real,
  .forward = formula<scaled_modified_bessel_k1_value>,
  .saves   = saves<"input", "result">,
  .grads   = grads(d<"input">([](const Tensor& g, const Tensor& input, const Tensor& result) {
    Tensor order0 = call<"scaled_modified_bessel_k0", Tensor>(input);
    return g * (result - order0 - result / input);
  })),
})

// ---- Bessel functions ---------------------------------------------------------------------------

POINTWISE(bessel_j0_value, (T input), bessel_j0(input))
OP(bessel_j0, "(Tensor input) -> Tensor", {
  .home    = "special",
  .doc     = R"(The Bessel function of the first kind of order 0.

Example:
    >>> torch.special.bessel_j0(torch.tensor([0.0, 1.0]))
    tensor([1.0000, 0.7652]))",
  .dtypes  = real,
  .forward = formula<bessel_j0_value>,
  .saves   = saves<"input">,
  .grads   = grads(d<"input">([](const Tensor& g, const Tensor& input) {
    return -g * call<"bessel_j1", Tensor>(input);
  })),
})

POINTWISE(bessel_j1_value, (T input), bessel_j1(input))
OP(bessel_j1, "(Tensor input) -> Tensor", {
  .home    = "special",
  .doc     = "The Bessel function of the first kind of order 1.",
  .dtypes  = real,
  .forward = formula<bessel_j1_value>,
  .saves   = saves<"input", "result">,
  .grads   = grads(d<"input">([](const Tensor& g, const Tensor& input, const Tensor& result) {
    Tensor slope = call<"bessel_j0", Tensor>(input) - result / input;
    return g * where(input == 0, wrapped_number(0.5), slope);
  })),
})

POINTWISE(bessel_y0_value, (T input), bessel_y0(input))
OP(bessel_y0, "(Tensor input) -> Tensor", {
  .home    = "special",
  .doc     = "The Bessel function of the second kind of order 0; NaN below zero.",
  .dtypes  = real,
  .forward = formula<bessel_y0_value>,
  .saves   = saves<"input">,
  .grads   = grads(d<"input">([](const Tensor& g, const Tensor& input) {
    return -g * call<"bessel_y1", Tensor>(input);
  })),
})

POINTWISE(bessel_y1_value, (T input), bessel_y1(input))
OP(bessel_y1, "(Tensor input) -> Tensor", {
  .home    = "special",
  .doc     = "The Bessel function of the second kind of order 1; NaN below zero.",
  .dtypes  = real,
  .forward = formula<bessel_y1_value>,
  .saves   = saves<"input", "result">,
  .grads   = grads(d<"input">([](const Tensor& g, const Tensor& input, const Tensor& result) {
    return g * (call<"bessel_y0", Tensor>(input) - result / input);
  })),
})

POINTWISE(spherical_bessel_j0_value, (T input), spherical_bessel_j0(input))
OP(spherical_bessel_j0, "(Tensor input) -> Tensor", {
  .home    = "special",
  .doc     = "sin(input) / input, 1 at zero: the spherical Bessel function of order 0.",
  .dtypes  = real,
  .forward = formula<spherical_bessel_j0_value>,
  .saves   = saves<"input", "result">,
  .grads   = grads(d<"input">([](const Tensor& g, const Tensor& input, const Tensor& result) {
    return g * where(input == 0, wrapped_number(0.0), (cos(input) - result) / input);
  })),
})

POINTWISE(airy_ai_value, (T input), airy_ai(input))
OP(airy_ai, "(Tensor input) -> Tensor", {
  .home    = "special",
  .doc     = "Airy's function Ai.",
  .dtypes  = real,
  .forward = formula<airy_ai_value>,
})

}  // namespace rushlight
