// Owns the special functions besides Bessel's and the orthogonal polynomials: the incomplete gamma
// functions, zeta, polygamma, and those of the normal distribution. erf, lgamma and digamma are in
// pointwise_math.cpp.
#include "core/ops/op.h"

#ifdef RUSHLIGHT_ISA
#include "core/tensor/formula_special.h"
#else
#include "core/ops/no_derivative.h"
#include "core/ops/operands.h"
#endif

namespace rushlight {

// ---- the gamma function's relatives -------------------------------------------------------------

POINTWISE(igamma_value, (T input, T other), igamma(input, other))
OP(igamma, "(Tensor input, Tensor other) -> Tensor", {
  .doc     = R"(The regularized lower incomplete gamma function P(input, other).

It is the integral of t^(input - 1) exp(-t) from 0 to other over gamma(input). See DLMF 8.2.4.

Example:
    >>> torch.igamma(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 1.0]))
    tensor([0.6321, 0.2642]))",
  .dtypes  = real,
  .aliases = "special.gammainc",
  .forward = formula<igamma_value>,
  .saves   = saves<"input", "other">,
  .grads   = grads(
      d<"input">(uses<>, [](const Tensor&) { return no_derivative("input"); }),
      d<"other">([](const Tensor& g, const Tensor& input, const Tensor& other) {
        return g * exp((input - 1) * log(other) - other - call<"lgamma", Tensor>(input));
      })),
})

POINTWISE(igammac_value, (T input, T other), igammac(input, other))
OP(igammac, "(Tensor input, Tensor other) -> Tensor", {
  .doc     = "The regularized upper incomplete gamma function: 1 - igamma(input, other).",
  .dtypes  = real,
  .aliases = "special.gammaincc",
  .forward = formula<igammac_value>,
  .saves   = saves<"input", "other">,
  .grads   = grads(
      d<"input">(uses<>, [](const Tensor&) { return no_derivative("input"); }),
      d<"other">([](const Tensor& g, const Tensor& input, const Tensor& other) {
        return -g * exp((input - 1) * log(other) - other - call<"lgamma", Tensor>(input));
      })),
})

OP(mvlgamma, "(Tensor input, int p) -> Tensor", {
  .doc     = R"(The logarithm of the multivariate gamma function of dimension p.

It is p (p - 1) / 4 log(pi) plus the sum of lgamma(input - j / 2) for j from 0 to p - 1.

Example:
    >>> torch.mvlgamma(torch.tensor([2.0, 3.0]), 2)
    tensor([0.4516, 1.5502]))",
  .dtypes  = real_numeric,
  .variants = function | method | inplace,
  .aliases = "special.multigammaln",
  .forward = [](const Tensor& input, int64_t p) {
    CHECK(p >= 1, "p has to be greater than or equal to 1, but is ", p, ".");
    CHECK(p <= 65536, "p has to be at most 65536, but is ", p, ".");
    // The first term is of a difference, too, since mvlgamma_ overwrites the input itself.
    Tensor total = call<"lgamma", Tensor>(input - 0.0);
    for (int64_t j = 1; j < p; ++j)
      total = total + call<"lgamma", Tensor>(input - double(j) * 0.5);
    return total + double(p) * double(p - 1) * 0.28618247146235004;
  },
})

POINTWISE(zeta_value, (T input, T other), zeta(input, other))
OP(zeta, "(Tensor input, Tensor other) -> Tensor", {
  .home    = "special",
  .doc     = R"(Hurwitz's zeta function: the sum of (other + k)^-input over k = 0, 1, 2, ...

Example:
    >>> torch.special.zeta(torch.tensor([2.0, 4.0]), 1)
    tensor([1.6449, 1.0823]))",
  .dtypes  = real,
  .forward = formula<zeta_value>,
  .saves   = saves<"input", "other">,
  .grads   = grads(
      d<"input">(uses<>, [](const Tensor&) { return no_derivative("input"); }),
      d<"other">([](const Tensor& g, const Tensor& input, const Tensor& other) {
        return -g * input * call<"zeta", Tensor>(input + 1, other);
      })),
})

POINTWISE(first_polygamma_value, (T input), trigamma(input))
POINTWISE(polygamma_value, (T input, S n), polygamma(n, input))
OP(polygamma_method, "polygamma.self(Tensor input, int n) -> Tensor", {
  .doc     = "The nth derivative of digamma.",
  .dtypes  = real,
  .variants = method | inplace,
  .batch   = by_elements,
  .forward = [](const Tensor& input, int64_t n, const Tensor* into) {
    CHECK(n >= 0, "polygamma(n, x) does not support negative n, but n is ", n, ".");
    if (n == 1) return pointwise_into<first_polygamma_value>(into, input);
    return pointwise_into<polygamma_value>(into, input, double(n));
  },
  .saves   = saves<"input">,
  .grads   = grads(d<"input">([](const Tensor& g, const Tensor& input, int64_t n) {
    return g * call<"polygamma_method", Tensor>(input, n + 1);
  })),
})
OP(polygamma, "(int n, Tensor input) -> Tensor", {
  .home    = "torch special",
  .doc     = R"(The nth derivative of digamma; n = 0 is digamma itself.

Example:
    >>> torch.polygamma(1, torch.tensor([1.0, 0.5]))
    tensor([1.6449, 4.9348]))",
  .dtypes  = real,
  .forward = [](int64_t n, const Tensor& input) {
    return call<"polygamma_method", Tensor>(input, n);
  },
})

// ---- the normal distribution --------------------------------------------------------------------

POINTWISE(erfcx_value, (T input), erfcx(input))
POINTWISE(erfcx_grad, (T g, T input, T result),
          g * (S(2) * input * result - S(1.1283791670955126)))
OP(erfcx, "(Tensor input) -> Tensor", {
  .home    = "special",
  .doc     = "exp(input^2) * erfc(input), where the factors alone would over- or underflow.",
  .dtypes  = real,
  .forward = formula<erfcx_value>,
  .saves   = saves<"input", "result">,
  .grads   = grads(d<"input">(formula<erfcx_grad>)),
})

POINTWISE(ndtr_value, (T input), ndtr(input))
POINTWISE(ndtr_grad, (T g, T input), g * normal_density(input))
OP(ndtr, "(Tensor input) -> Tensor", {
  .home    = "special",
  .doc     = R"(The probability that a normal variable is below each element.

It is erfc(-input / sqrt(2)) / 2.

Example:
    >>> torch.special.ndtr(torch.tensor([-1.0, 0.0]))
    tensor([0.1587, 0.5000]))",
  .dtypes  = real,
  .forward = formula<ndtr_value>,
  .saves   = saves<"input">,
  .grads   = grads(d<"input">(formula<ndtr_grad>)),
})

POINTWISE(log_ndtr_value, (T input), log_ndtr(input))
OP(log_ndtr, "(Tensor input) -> Tensor", {
  .home    = "special",
  .doc     = "The logarithm of ndtr(input), also where ndtr itself is 0 or 1.",
  .dtypes  = real,
  .forward = formula<log_ndtr_value>,
  .saves   = saves<"input">,
  .grads   = grads(d<"input">([](const Tensor& g, const Tensor& input) {
    return g * 0.7978845608028654 / call<"erfcx", Tensor>(input * -0.7071067811865476);
  })),
})

POINTWISE(ndtri_value, (T input), ndtri(input))
POINTWISE(ndtri_grad, (T g, T result), g * S(2.5066282746310002) * exp(result * result * S(0.5)))
OP(ndtri, "(Tensor input) -> Tensor", {
  .home    = "special",
  .doc     = "The inverse of ndtr; NaN outside [0, 1].",
  .dtypes  = real,
  .forward = formula<ndtri_value>,
  .saves   = saves<"result">,
  .grads   = grads(d<"input">(formula<ndtri_grad>)),
})

POINTWISE(erfinv_value, (T input), erfinv(input))
OP(erfinv, "(Tensor input) -> Tensor", {
  .home    = "torch special",
  .doc     = "The inverse of erf; NaN outside [-1, 1].",
  .dtypes  = real,
  .autocast = autocast::on_cuda(autocast::single),
  .sparse  = by_values,
  .forward = formula<erfinv_value>,
  .saves   = saves<"input">,
  .grads   = grads(d<"input">([](const Tensor& g, const Tensor& input) {
    Tensor root = call<"erfinv", Tensor>(input);
    return g * 0.886226925452758 * exp(root * root);
  })),
})

// ---- entropies ----------------------------------------------------------------------------------

POINTWISE(entr_value, (T input), entr(input))
POINTWISE(entr_grad, (T g, T input), g * (-log(input) - S(1)))
OP(entr, "(Tensor input) -> Tensor", {
  .home    = "special",
  .doc     = "-input * log(input), 0 where input is 0 and -inf below: the terms of an entropy.",
  .dtypes  = real,
  .forward = formula<entr_value>,
  .saves   = saves<"input">,
  .grads   = grads(d<"input">(formula<entr_grad>)),
})

#ifndef RUSHLIGHT_ISA
static Tensor xlog1py(const Tensor& input, const Tensor& other) {
  return call<"xlog1py", Tensor>(input, other);
}
#endif

POINTWISE(xlog1py_value, (T input, T other), xlog1py(input, other))
POINTWISE(xlog1py_grad_input, (T g, T input, T other),
          select((input == S(0)) & (other <= S(-1)), S(0), xlog1py(g, other)))
POINTWISE(xlog1py_grad_other, (T g, T input, T other), g * input / (other + S(1)))
OP(xlog1py, "(Tensor|Scalar input, Tensor|Scalar other) -> Tensor", {
  .home    = "special",
  .doc     = "input * log(1 + other), 0 where input is 0, unless other is NaN.",
  .dtypes  = real,
  .batch   = by_elements,
  .forward = [](const Tensor& input, const Tensor& other, const Tensor* into) {
    return pointwise_into<xlog1py_value>(into, rounded_next_to(other, input),
                                     rounded_next_to(input, other));
  },
  .saves   = saves<"input", "other">,
  .grads   = grads(d<"input">(formula<xlog1py_grad_input>),
                   d<"other">(formula<xlog1py_grad_other>)),
})

}  // namespace rushlight
