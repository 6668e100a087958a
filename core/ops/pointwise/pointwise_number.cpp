// Owns the ops on how numbers are made up: common divisors of integers, mantissas, exponents and
// neighbors of floats.
#include "core/ops/op.h"

#ifdef RUSHLIGHT_ISA
#include "core/tensor/formula_special.h"
#endif

namespace rushlight {

POINTWISE(gcd_value, (I input, I other), gcd(input, other))
OP(gcd, "(Tensor input, Tensor other) -> Tensor", {
  .doc     = R"(The greatest common divisor of two integers, never negative.

Example:
    >>> torch.gcd(torch.tensor([5, 10, 15]), torch.tensor([3, 4, 5]))
    tensor([1, 2, 5]))",
  .dtypes  = integral_or_bool,
  .forward = formula<gcd_value>,
})

POINTWISE(lcm_value, (I input, I other), lcm(input, other))
OP(lcm, "(Tensor input, Tensor other) -> Tensor", {
  .doc     = R"(The least common multiple of two integers, never negative; 0 if one of them is.

Example:
    >>> torch.lcm(torch.tensor([5, 10, 15]), torch.tensor([3, 4, 5]))
    tensor([15, 20, 15]))",
  .dtypes  = integral_or_bool,
  .forward = formula<lcm_value>,
})

POINTWISE(ldexp_value, (T input, T other), ldexp(input, other))
POINTWISE(mul_complex, (C input, C other), input * other)
OP(ldexp, "(Tensor|Scalar input, Tensor|Scalar other) -> Tensor", {
  .doc     = R"(input * 2^other; integers give floats.

Example:
    >>> torch.ldexp(torch.tensor([1.0]), torch.tensor([1, 2, 3]))
    tensor([2., 4., 8.]))",
  .batch   = by_elements,
  .forward = [](const Tensor& input, const Tensor& other, const Tensor* into) {
    const Tensor* operands[] = {&input, &other};
    DType dtype = result_dtype(operands);
    if (!is_complex(dtype)) return pointwise_into<ldexp_value>(into, input, other);
    Tensor exponent = to_dtype(other, is_complex(other.dtype()) ? dtype : real_dtype(dtype));
    return pointwise_into<mul_complex>(into, input, pow(wrapped_number(2.0), exponent));
  },
  .saves   = saves<"other", "result">,
  .grads   = grads(
      d<"input">([](const Tensor& g, const Tensor& other, const Tensor&) {
        return call<"ldexp", Tensor>(g, conj(other));
      }),
      d<"other">([](const Tensor& g, const Tensor&, const Tensor& result) {
        return g * conj(result) * 0.6931471805599453;
      })),
})

POINTWISE(frexp_mantissa_value, (T input), frexp_mantissa(input))
POINTWISE(frexp_exponent_value, (T input), frexp_exponent(input))
OP(_frexp_exponent, "(Tensor input) -> Tensor", {
  .home    = "core",
  .doc     = "The power of two that frexp takes out of each element, as a float.",
  .dtypes  = floating,
  .forward = formula<frexp_exponent_value>,
})

OP(_frexp_mantissa, "(Tensor input) -> Tensor", {
  .home    = "core",
  .doc     = "Each element as a number of magnitude [1/2, 1), without its power of two.",
  .dtypes  = floating,
  .forward = formula<frexp_mantissa_value>,
  .saves   = saves<"input">,
  .grads   = grads(d<"input">([](const Tensor& g, const Tensor& input) {
    return call<"ldexp", Tensor>(g, -call<"_frexp_exponent", Tensor>(input));
  })),
})
OP(frexp, "(Tensor input) -> (Tensor mantissa, Tensor exponent)", {
  .doc     = R"(Each element as mantissa * 2^exponent, the mantissa with a magnitude in [1/2, 1).

The exponent is an int32; it is 0 where input is 0, infinite or NaN, which is its own mantissa.

Example:
    >>> torch.frexp(torch.tensor([8.0, -0.75])).mantissa
    tensor([ 0.5000, -0.7500]))",
  .dtypes  = floating,
  .forward = [](const Tensor& input) -> std::tuple<Tensor, Tensor> {
    return {call<"_frexp_mantissa", Tensor>(input),
            cast(call<"_frexp_exponent", Tensor>(input), DType::int32)};
  },
})

POINTWISE(nextafter_value, (T input, T other), nextafter(input, other))
POINTWISE(nextafter_grad, (T g, T input, T other), select(input == other, S(0), g))
OP(nextafter, "(Tensor input, Tensor other) -> Tensor", {
  .doc     = R"(The number of the dtype that is next to input in the direction of other.

Example:
    >>> torch.nextafter(torch.tensor([0.0, 1.0]), torch.tensor(2.0)) - torch.tensor([0.0, 1.0])
    tensor([1.4013e-45, 1.1921e-07]))",
  .dtypes  = real,
  .variants = function | method | inplace,
  .batch   = by_elements,
  .forward = [](const Tensor& input, const Tensor& other) {
    const Tensor* operands[] = {&input, &other};
    DType dtype = result_dtype(operands);
    if (!is_half(dtype)) return pointwise<nextafter_value>(input, other);
    return next_half(to_dtype(input, dtype), to_dtype(other, dtype));
  },
  .saves   = saves<"input", "other">,
  .grads   = grads(
      d<"input">(formula<nextafter_grad>),
      d<"other">(uses<>, [](const Tensor& g) { return zeros_like(g); })),
})

}  // namespace rushlight
