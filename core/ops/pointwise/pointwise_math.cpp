// Owns the functions of mathematics: powers, exponentials, logarithms, the error and gamma
// functions; pointwise_angle.cpp has sines and their kin. Gradients follow PyTorch's convention for
// complex numbers: the incoming gradient times the conjugate of the derivative.
#include "core/ops/op.h"
#ifndef RUSHLIGHT_ISA
#include "core/ops/operands.h"
#endif

namespace rushlight {

// ---- powers -------------------------------------------------------------------------------------

POINTWISE(square_value, (N input), input * input)
POINTWISE(square_grad, (C g, C input), g * conj(input) * S(2))
OP(square, "(Tensor input) -> Tensor", {
  .doc     = "The square of each element: input * input; int64 for bool.",
  .node    = "pow",
  .sparse  = by_values,
  .batch   = by_elements,
  .forward = [](const Tensor& input, const Tensor* into) {
    bool counts = is_bool(input.dtype());
    return pointwise_into<square_value>(into, counts ? to_dtype(input, DType::int64) : input);
  },
  .saves   = saves<"input">,
  .grads   = grads(d<"input">(formula<square_grad>)),
})

POINTWISE(sqrt_value, (C input), sqrt(input))
POINTWISE(sqrt_grad, (C g, C result), g / (conj(result) * S(2)))
OP(sqrt, "(Tensor input) -> Tensor", {
  .doc     = "The square root of each element; NaN below zero.",
  .sparse  = by_values,
  .forward = formula<sqrt_value>,
  .saves   = saves<"result">,
  .grads   = grads(d<"input">(formula<sqrt_grad>)),
})

POINTWISE(rsqrt_value, (C input), rsqrt(input))
POINTWISE(rsqrt_grad, (C g, C result), g * conj(result * result * result) * S(-0.5))
OP(rsqrt, "(Tensor input) -> Tensor", {
  .doc     = "One over the square root of each element.",
  .autocast = autocast::on_cuda(autocast::single),
  .forward = formula<rsqrt_value>,
  .saves   = saves<"result">,
  .grads   = grads(d<"input">(formula<rsqrt_grad>)),
})

POINTWISE(reciprocal_value, (C input), reciprocal(input))
POINTWISE(reciprocal_grad, (C g, C result), -g * conj(result * result))
OP(reciprocal, "(Tensor input) -> Tensor", {
  .doc     = "One over each element.",
  .autocast = autocast::on_cuda(autocast::single),
  .forward = formula<reciprocal_value>,
  .saves   = saves<"result">,
  .grads   = grads(d<"input">(formula<reciprocal_grad>)),
})

POINTWISE(pow_value, (N input, N exponent), pow(input, exponent))
POINTWISE(zeroth_power_value, (N input), select(input == input, S(1), S(1)))
POINTWISE(first_power_value, (N input), input)
POINTWISE(cube_value, (N input), input * input * input)
POINTWISE(reciprocal_square_value, (C input), S(1) / (input * input))
// The zeroth power is 1 at zero too. Elsewhere the product is zero by itself, and has its slope.
POINTWISE(pow_grad_input, (C g, C input, C exponent),
          select((exponent == S(0)) & (input == S(0)), S(0),
                 g * conj(exponent * pow(input, exponent - S(1)))))
// The limit at a zero base, where the logarithm has no value.
POINTWISE(pow_grad_exponent, (T g, T input, T exponent, T result),
          select((input == S(0)) & (exponent >= S(0)), S(0), g * result * log(input)))
OP(pow, "(Tensor|Scalar input, Tensor|Scalar exponent) -> Tensor", {
  .doc     = R"(input to the power of exponent.

Small exponents that are Python numbers, such as 2 or 0.5, have kernels of their own.

Example:
    >>> torch.pow(torch.tensor([1.0, 2.0, 3.0]), 2)
    tensor([1., 4., 9.]))",
  .autocast = autocast::on_cuda(autocast::single),
  .sparse  = sparse_pow,
  .batch   = by_elements,
  .forward = [](const Tensor& input, const Tensor& exponent, const Tensor* into) {
    const Tensor* operands[] = {&input, &exponent};
    DType common = result_dtype(operands);
    if (!exponent.impl()->wrapped_number) return pointwise_into<pow_value>(into, input, exponent);
    Tensor base = to_dtype(input, common);
    std::complex<double> power = item(exponent).to<std::complex<double>>();
    CHECK(!is_integral(common) || power.real() >= 0, "Integers to negative integer powers are not "
          "allowed. Use a float base, as in input.float().");
    if (power == 0.0) return pointwise_into<zeroth_power_value>(into, base);
    if (power == 1.0) return pointwise_into<first_power_value>(into, base);
    if (power == 2.0) return pointwise_into<square_value>(into, base);
    if (power == 3.0) return pointwise_into<cube_value>(into, base);
    if (power == 0.5) return pointwise_into<sqrt_value>(into, base);
    if (power == -0.5) return pointwise_into<rsqrt_value>(into, base);
    if (power == -1.0) return pointwise_into<reciprocal_value>(into, base);
    if (power == -2.0) return pointwise_into<reciprocal_square_value>(into, base);
    return pointwise_into<pow_value>(into, base, exponent);
  },
  .saves   = saves<"input", "exponent", "result">,
  .grads   = grads(
      d<"input">(uses<"input", "exponent">,
                 [](const Tensor& g, const Tensor& input, const Tensor& exponent) {
        if (!exponent.impl()->wrapped_number) return evaluate<pow_grad_input>(g, input, exponent);
        Scalar power = item(exponent);
        std::complex<double> p = power.to<std::complex<double>>();
        if (p == 0.0) return zeros_like(g);
        if (p == 2.0) return evaluate<square_grad>(g, input);
        Tensor lower = power.is_complex() ? pow(input, p - 1.0) : pow(input, p.real() - 1.0);
        return g * conj(lower * power);
      }),
      d<"exponent">([](const Tensor& g, const Tensor& input, const Tensor& exponent,
                       const Tensor& result) {
        if (is_complex(result.dtype())) return g * conj(result * log(cast(input, result.dtype())));
        return evaluate<pow_grad_exponent>(g, input, exponent, result);
      })),
})

OP(float_power, "(Tensor|Scalar input, Tensor|Scalar exponent) -> Tensor", {
  .doc     = "input to the power of exponent in double precision.",
  .forward = [](const Tensor& input, const Tensor& exponent) {
    bool any_complex = is_complex(input.dtype()) || is_complex(exponent.dtype());
    DType dtype = any_complex ? DType::complex128 : DType::float64;
    Tensor base = cast(input, dtype);
    return pow(base, exponent.impl()->wrapped_number ? exponent : cast(exponent, dtype));
  },
})

OP(float_power_, "(Tensor! input, Tensor|Scalar exponent) -> Tensor", {
  .doc     = "float_power in place, of a float64 or complex128 tensor.",
  .dtypes  = DTypeSet([](DType t) { return t == DType::float64 || t == DType::complex128; }),
  .variants = method,
  .forward = [](const Tensor& input, const Tensor& exponent) {
    Tensor result = call<"float_power", Tensor>(clone(input), exponent);
    CHECK(input.dtype() == result.dtype(), "the base given to float_power_ has dtype ",
          dtype_name(input.dtype()), " but the operation's result requires dtype ",
          dtype_name(result.dtype()), ". Use float_power.");
    return copy_(input, result);
  },
})

// ---- exponentials and logarithms ----------------------------------------------------------------

POINTWISE(exp_value, (C input), exp(input))
POINTWISE(exp_grad, (C g, C result), g * conj(result))
OP(exp, "(Tensor input) -> Tensor", {
  .doc     = R"(The exponential of each element: e to the power of input.

Example:
    >>> torch.exp(torch.tensor([0.0, 1.0]))
    tensor([1.0000, 2.7183]))",
  .autocast = autocast::on_cuda(autocast::single),
  .forward = formula<exp_value>,
  .saves   = saves<"result">,
  .grads   = grads(d<"input">(formula<exp_grad>)),
})

POINTWISE(exp2_value, (C input), exp2(input))
POINTWISE(exp2_grad, (C g, C result), g * conj(result) * S(0.6931471805599453))
OP(exp2, "(Tensor input) -> Tensor", {
  .home    = "torch special",
  .doc     = "Two to the power of each element.",
  .forward = formula<exp2_value>,
  .saves   = saves<"result">,
  .grads   = grads(d<"input">(formula<exp2_grad>)),
})

POINTWISE(expm1_value, (C input), expm1(input))
POINTWISE(expm1_grad, (C g, C result), g * (conj(result) + S(1)))
OP(expm1, "(Tensor input) -> Tensor", {
  .home    = "torch special",
  .doc     = "exp(input) - 1, accurate for elements close to zero.",
  .autocast = autocast::on_cuda(autocast::single),
  .sparse  = by_values,
  .forward = formula<expm1_value>,
  .saves   = saves<"result">,
  .grads   = grads(d<"input">(formula<expm1_grad>)),
})

POINTWISE(log_value, (C input), log(input))
POINTWISE(log_grad, (C g, C input), g / conj(input))
OP(log, "(Tensor input) -> Tensor", {
  .doc     = "The natural logarithm of each element; -inf at zero, NaN below.",
  .autocast = autocast::on_cuda(autocast::single),
  .forward = formula<log_value>,
  .saves   = saves<"input">,
  .grads   = grads(d<"input">(formula<log_grad>)),
})

POINTWISE(log2_value, (C input), log2(input))
POINTWISE(log2_grad, (C g, C input), g / (conj(input) * S(0.6931471805599453)))
OP(log2, "(Tensor input) -> Tensor", {
  .doc     = "The logarithm of each element to base 2.",
  .autocast = autocast::on_cuda(autocast::single),
  .forward = formula<log2_value>,
  .saves   = saves<"input">,
  .grads   = grads(d<"input">(formula<log2_grad>)),
})

POINTWISE(log10_value, (C input), log10(input))
POINTWISE(log10_grad, (C g, C input), g / (conj(input) * S(2.302585092994046)))
OP(log10, "(Tensor input) -> Tensor", {
  .doc     = "The logarithm of each element to base 10.",
  .autocast = autocast::on_cuda(autocast::single),
  .forward = formula<log10_value>,
  .saves   = saves<"input">,
  .grads   = grads(d<"input">(formula<log10_grad>)),
})

POINTWISE(log1p_value, (C input), log1p(input))
POINTWISE(log1p_grad, (C g, C input), g / (conj(input) + S(1)))
OP(log1p, "(Tensor input) -> Tensor", {
  .home    = "torch special",
  .doc     = "log(1 + input), accurate for elements close to zero.",
  .node    = "log1P",
  .autocast = autocast::on_cuda(autocast::single),
  .sparse  = by_values,
  .forward = formula<log1p_value>,
  .saves   = saves<"input">,
  .grads   = grads(d<"input">(formula<log1p_grad>)),
})

POINTWISE(xlogy_value, (T input, T other), xlogy(input, other))
POINTWISE(xlogy_grad_input, (T g, T input, T other),
          select((input == S(0)) & (other <= S(0)), S(0), xlogy(g, other)))
OP(xlogy, "(Tensor|Scalar input, Tensor|Scalar other) -> Tensor", {
  .home    = "torch special",
  .doc     = "input * log(other), 0 where input is 0, unless other is NaN.",
  .dtypes  = real,
  .batch   = by_elements,
  .forward = [](const Tensor& input, const Tensor& other, const Tensor* into) {
    return pointwise_into<xlogy_value>(into, rounded_next_to(other, input),
                                     rounded_next_to(input, other));
  },
  .saves   = saves<"input", "other">,
  .grads   = grads(d<"input">(formula<xlogy_grad_input>),
                   d<"other">([](const Tensor& g, const Tensor& input, const Tensor& other) {
                     return g * input / other;
                   })),
})

POINTWISE(logaddexp_value, (C input, C other), logaddexp(input, other))
POINTWISE(logaddexp_grad_input, (C g, C input, C other), g * conj(sigmoid(input - other)))
POINTWISE(logaddexp_grad_other, (C g, C input, C other), g * conj(sigmoid(other - input)))
OP(logaddexp, "(Tensor input, Tensor other) -> Tensor", {
  .doc     = "log(exp(input) + exp(other)) without overflow.",
  .forward = formula<logaddexp_value>,
  .saves   = saves<"input", "other">,
  .grads   = grads(d<"input">(formula<logaddexp_grad_input>),
                   d<"other">(formula<logaddexp_grad_other>)),
})

POINTWISE(logaddexp2_value, (T input, T other),
          select(input == other, input + S(1),
                 max(input, other) + log1p(exp2(-abs(input - other))) * S(1.4426950408889634)))
POINTWISE(logaddexp2_grad_input, (T g, T input, T other),
          g * sigmoid((input - other) * S(0.6931471805599453)))
POINTWISE(logaddexp2_grad_other, (T g, T input, T other),
          g * sigmoid((other - input) * S(0.6931471805599453)))
OP(logaddexp2, "(Tensor input, Tensor other) -> Tensor", {
  .doc     = "log2(2**input + 2**other) without overflow.",
  .dtypes  = real,
  .forward = formula<logaddexp2_value>,
  .saves   = saves<"input", "other">,
  .grads   = grads(d<"input">(formula<logaddexp2_grad_input>),
                   d<"other">(formula<logaddexp2_grad_other>)),
})

POINTWISE(sigmoid_value, (C input), sigmoid(input))
POINTWISE(sigmoid_grad, (C g, C result), g * conj(result * (S(1) - result)))
OP(sigmoid, "(Tensor input) -> Tensor", {
  .doc     = R"(The logistic function of each element: 1 / (1 + exp(-input)).

Example:
    >>> torch.sigmoid(torch.tensor([0.0, 2.0]))
    tensor([0.5000, 0.8808]))",
  .aliases = "special.expit",
  .forward = formula<sigmoid_value>,
  .saves   = saves<"result">,
  .grads   = grads(d<"input">(formula<sigmoid_grad>)),
})

// For eps above a half, where low is above high, low counts first.
POINTWISE(logit_value, (T input, S low, S high),
          select(input < low, log(low / (S(1) - low)),
                 log(min(input, high) / (S(1) - min(input, high)))))
POINTWISE(logit_grad, (T g, T input, S low, S high, S outside),
          select((input < low) | (input > high), outside, g / (input * (S(1) - input))))
OP(logit, "(Tensor input, float? eps=None) -> Tensor", {
  .home    = "torch special",
  .doc     = R"(The inverse of sigmoid: log(input / (1 - input)).

With eps, elements are brought into [eps, 1 - eps] first, where the result is finite.)",
  .dtypes  = real,
  .batch   = by_elements,
  .forward = [](const Tensor& input, std::optional<double> eps, const Tensor* into) {
    double low = eps.value_or(-INFINITY);
    return pointwise_into<logit_value>(into, input, low, 1 - low);
  },
  .saves   = saves<"input">,
  .grads   = grads(d<"input">([](const Tensor& g, const Tensor& input, std::optional<double> eps) {
    double low = eps.value_or(0);
    return evaluate<logit_grad>(g, input, low, 1 - low, eps ? 0.0 : NAN);
  })),
})

// ---- the error and gamma functions --------------------------------------------------------------

POINTWISE(erf_value, (T input), erf(input))
POINTWISE(erf_grad, (T g, T input), g * S(1.1283791670955126) * exp(-input * input))
OP(erf, "(Tensor input) -> Tensor", {
  .home    = "torch special",
  .doc     = R"(The error function of each element.

It is 2 / sqrt(pi) times the integral of exp(-t^2) from 0 to input.)",
  .dtypes  = real,
  .sparse  = by_values,
  .forward = formula<erf_value>,
  .saves   = saves<"input">,
  .grads   = grads(d<"input">(formula<erf_grad>)),
})

POINTWISE(erfc_value, (T input), erfc(input))
POINTWISE(erfc_grad, (T g, T input), g * S(-1.1283791670955126) * exp(-input * input))
OP(erfc, "(Tensor input) -> Tensor", {
  .home    = "torch special",
  .doc     = "1 - erf(input), accurate where erf is close to 1.",
  .dtypes  = real,
  .forward = formula<erfc_value>,
  .saves   = saves<"input">,
  .grads   = grads(d<"input">(formula<erfc_grad>)),
})

POINTWISE(lgamma_value, (T input), lgamma(input))
POINTWISE(lgamma_grad, (T g, T input), g * digamma(input))
OP(lgamma, "(Tensor input) -> Tensor", {
  .doc     = "The logarithm of the absolute value of the gamma function.",
  .dtypes  = real,
  .aliases = "special.gammaln",
  .forward = formula<lgamma_value>,
  .saves   = saves<"input">,
  .grads   = grads(d<"input">(formula<lgamma_grad>)),
})

POINTWISE(digamma_value, (T input), digamma(input))
POINTWISE(digamma_grad, (T g, T input), g * trigamma(input))
OP(digamma, "(Tensor input) -> Tensor", {
  .home    = "torch special",
  .doc     = "The derivative of lgamma.",
  .dtypes  = real,
  .aliases = "special.psi",
  .forward = formula<digamma_value>,
  .saves   = saves<"input">,
  .grads   = grads(d<"input">(formula<digamma_grad>)),
})

POINTWISE(trigamma_value, (T input), trigamma(input))
OP(_trigamma, "(Tensor input) -> Tensor", {
  .home    = "core",
  .doc     = "The derivative of digamma.",
  .dtypes  = real,
  .forward = formula<trigamma_value>,
  .saves   = saves<"input">,
  .grads   = grads(d<"input">([](const Tensor& g, const Tensor& input) {
    return g * call<"polygamma_method", Tensor>(input, int64_t(2));
  })),
})

}  // namespace rushlight
