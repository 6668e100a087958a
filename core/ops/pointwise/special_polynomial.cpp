// Owns the orthogonal polynomials. n is their degree, of which the fraction is dropped; there is no
// derivative with respect to it. Derivatives are polynomials of the two private families below.
#include "core/ops/op.h"

#ifdef RUSHLIGHT_ISA
#include "core/tensor/formula_special.h"
#endif

namespace rushlight {

POINTWISE(gegenbauer_polynomial_value, (T input, T n, S order),
          gegenbauer_polynomial(input, n, order))
OP(_gegenbauer_polynomial, "(Tensor input, Tensor n, float order) -> Tensor", {
  .home    = "core",
  .doc     = "Gegenbauer's polynomial, the one of Chebyshev's second kind when order is 1.",
  .dtypes  = real,
  .forward = formula<gegenbauer_polynomial_value>,
  .saves   = saves<"input", "n">,
  .grads   = grads(d<"input">([](const Tensor& g, const Tensor& input, const Tensor& n,
                                 double order) {
                     return g * (2 * order) *
                            call<"_gegenbauer_polynomial", Tensor>(input, trunc(n) - 1, order + 1);
                   }),
                   no_grad<"n">),
})

POINTWISE(laguerre_polynomial_value, (T input, T n, S order),
          laguerre_polynomial(input, n, order))
OP(_laguerre_polynomial, "(Tensor input, Tensor n, float order) -> Tensor", {
  .home    = "core",
  .doc     = "Laguerre's polynomial of an order, the plain one when that is 0.",
  .dtypes  = real,
  .forward = formula<laguerre_polynomial_value>,
  .saves   = saves<"input", "n">,
  .grads   = grads(d<"input">([](const Tensor& g, const Tensor& input, const Tensor& n,
                                 double order) {
                     return -g *
                            call<"_laguerre_polynomial", Tensor>(input, trunc(n) - 1, order + 1);
                   }),
                   no_grad<"n">),
})

POINTWISE(chebyshev_polynomial_t_value, (T input, T n), chebyshev_polynomial_t(input, n))
OP(chebyshev_polynomial_t, "(Tensor input, Tensor n) -> Tensor", {
  .home    = "special",
  .doc     = R"(Chebyshev's polynomial of the first kind: cos(n * acos(input)).

Example:
    >>> torch.special.chebyshev_polynomial_t(torch.tensor([0.5, 1.0]), 2)
    tensor([-0.5000,  1.0000]))",
  .dtypes  = real,
  .forward = formula<chebyshev_polynomial_t_value>,
  .saves   = saves<"input", "n">,
  .grads   = grads(d<"input">([](const Tensor& g, const Tensor& input, const Tensor& n) {
                     return g * trunc(n) *
                            call<"chebyshev_polynomial_u", Tensor>(input, n - 1);
                   }),
                   no_grad<"n">),
})

POINTWISE(chebyshev_polynomial_u_value, (T input, T n), chebyshev_polynomial_u(input, n))
OP(chebyshev_polynomial_u, "(Tensor input, Tensor n) -> Tensor", {
  .home    = "special",
  .doc     = "Chebyshev's polynomial of the second kind: sin((n + 1) a) / sin(a), input = cos(a).",
  .dtypes  = real,
  .forward = formula<chebyshev_polynomial_u_value>,
  .saves   = saves<"input", "n">,
  .grads   = grads(d<"input">([](const Tensor& g, const Tensor& input, const Tensor& n) {
                     return g * 2 *
                            call<"_gegenbauer_polynomial", Tensor>(input, trunc(n) - 1, 2.0);
                   }),
                   no_grad<"n">),
})

OP(_half_angle_chebyshev_slope, "(Tensor input, Tensor n, float sign) -> Tensor", {
  .home    = "core",
  .doc     = R"(The derivative of Chebyshev's polynomial of the third kind, which is the difference
of two of the second kind, for sign = -1; of the fourth, which is their sum, for 1.)",
  .dtypes  = real,
  .forward = [](const Tensor& input, const Tensor& n, double sign) {
    return (call<"_gegenbauer_polynomial", Tensor>(input, trunc(n) - 1, 2.0) +
            call<"_gegenbauer_polynomial", Tensor>(input, trunc(n) - 2, 2.0) * sign) * 2;
  },
})

POINTWISE(chebyshev_polynomial_v_value, (T input, T n), chebyshev_polynomial_v(input, n))
OP(chebyshev_polynomial_v, "(Tensor input, Tensor n) -> Tensor", {
  .home    = "special",
  .doc     = "The polynomial of the third kind: cos((n + 1/2) a) / cos(a / 2), input = cos(a).",
  .dtypes  = real,
  .forward = formula<chebyshev_polynomial_v_value>,
  .saves   = saves<"input", "n">,
  .grads   = grads(d<"input">([](const Tensor& g, const Tensor& input, const Tensor& n) {
                     return g * call<"_half_angle_chebyshev_slope", Tensor>(input, n, -1.0);
                   }),
                   no_grad<"n">),
})

POINTWISE(chebyshev_polynomial_w_value, (T input, T n), chebyshev_polynomial_w(input, n))
OP(chebyshev_polynomial_w, "(Tensor input, Tensor n) -> Tensor", {
  .home    = "special",
  .doc     = "The polynomial of the fourth kind: sin((n + 1/2) a) / sin(a / 2), input = cos(a).",
  .dtypes  = real,
  .forward = formula<chebyshev_polynomial_w_value>,
  .saves   = saves<"input", "n">,
  .grads   = grads(d<"input">([](const Tensor& g, const Tensor& input, const Tensor& n) {
                     return g * call<"_half_angle_chebyshev_slope", Tensor>(input, n, 1.0);
                   }),
                   no_grad<"n">),
})

POINTWISE(shifted_chebyshev_polynomial_t_value, (T input, T n),
          shifted_chebyshev_polynomial_t(input, n))
OP(shifted_chebyshev_polynomial_t, "(Tensor input, Tensor n) -> Tensor", {
  .home    = "special",
  .doc     = "chebyshev_polynomial_t(2 * input - 1, n).",
  .dtypes  = real,
  .forward = formula<shifted_chebyshev_polynomial_t_value>,
  .saves   = saves<"input", "n">,
  .grads   = grads(d<"input">([](const Tensor& g, const Tensor& input, const Tensor& n) {
                     return g * trunc(n) * 2 *
                            call<"shifted_chebyshev_polynomial_u", Tensor>(input, n - 1);
                   }),
                   no_grad<"n">),
})

POINTWISE(shifted_chebyshev_polynomial_u_value, (T input, T n),
          shifted_chebyshev_polynomial_u(input, n))
OP(shifted_chebyshev_polynomial_u, "(Tensor input, Tensor n) -> Tensor", {
  .home    = "special",
  .doc     = "chebyshev_polynomial_u(2 * input - 1, n).",
  .dtypes  = real,
  .forward = formula<shifted_chebyshev_polynomial_u_value>,
  .saves   = saves<"input", "n">,
  .grads   = grads(d<"input">([](const Tensor& g, const Tensor& input, const Tensor& n) {
                     Tensor x = input * 2 - 1;
                     return g * 4 *
                            call<"_gegenbauer_polynomial", Tensor>(x, trunc(n) - 1, 2.0);
                   }),
                   no_grad<"n">),
})

POINTWISE(shifted_chebyshev_polynomial_v_value, (T input, T n),
          shifted_chebyshev_polynomial_v(input, n))
OP(shifted_chebyshev_polynomial_v, "(Tensor input, Tensor n) -> Tensor", {
  .home    = "special",
  .doc     = "chebyshev_polynomial_v(2 * input - 1, n).",
  .dtypes  = real,
  .forward = formula<shifted_chebyshev_polynomial_v_value>,
  .saves   = saves<"input", "n">,
  .grads   = grads(d<"input">([](const Tensor& g, const Tensor& input, const Tensor& n) {
                     return g * 2 *
                            call<"_half_angle_chebyshev_slope", Tensor>(input * 2 - 1, n, -1.0);
                   }),
                   no_grad<"n">),
})

POINTWISE(shifted_chebyshev_polynomial_w_value, (T input, T n),
          shifted_chebyshev_polynomial_w(input, n))
OP(shifted_chebyshev_polynomial_w, "(Tensor input, Tensor n) -> Tensor", {
  .home    = "special",
  .doc     = "chebyshev_polynomial_w(2 * input - 1, n).",
  .dtypes  = real,
  .forward = formula<shifted_chebyshev_polynomial_w_value>,
  .saves   = saves<"input", "n">,
  .grads   = grads(d<"input">([](const Tensor& g, const Tensor& input, const Tensor& n) {
                     return g * 2 *
                            call<"_half_angle_chebyshev_slope", Tensor>(input * 2 - 1, n, 1.0);
                   }),
                   no_grad<"n">),
})

POINTWISE(hermite_polynomial_h_value, (T input, T n), hermite_polynomial_h(input, n))
OP(hermite_polynomial_h, "(Tensor input, Tensor n) -> Tensor", {
  .home    = "special",
  .doc     = "Hermite's polynomial as physicists have it: its leading term is (2 * input)^n.",
  .dtypes  = real,
  .forward = formula<hermite_polynomial_h_value>,
  .saves   = saves<"input", "n">,
  .grads   = grads(d<"input">([](const Tensor& g, const Tensor& input, const Tensor& n) {
                     return g * trunc(n) * 2 * call<"hermite_polynomial_h", Tensor>(input, n - 1);
                   }),
                   no_grad<"n">),
})

POINTWISE(hermite_polynomial_he_value, (T input, T n), hermite_polynomial_he(input, n))
OP(hermite_polynomial_he, "(Tensor input, Tensor n) -> Tensor", {
  .home    = "special",
  .doc     = "Hermite's polynomial as statisticians have it: its leading term is input^n.",
  .dtypes  = real,
  .forward = formula<hermite_polynomial_he_value>,
  .saves   = saves<"input", "n">,
  .grads   = grads(d<"input">([](const Tensor& g, const Tensor& input, const Tensor& n) {
                     return g * trunc(n) * call<"hermite_polynomial_he", Tensor>(input, n - 1);
                   }),
                   no_grad<"n">),
})

POINTWISE(laguerre_polynomial_l_value, (T input, T n), laguerre_polynomial_l(input, n))
OP(laguerre_polynomial_l, "(Tensor input, Tensor n) -> Tensor", {
  .home    = "special",
  .doc     = "Laguerre's polynomial.",
  .dtypes  = real,
  .forward = formula<laguerre_polynomial_l_value>,
  .saves   = saves<"input", "n">,
  .grads   = grads(d<"input">([](const Tensor& g, const Tensor& input, const Tensor& n) {
                     return -g * call<"_laguerre_polynomial", Tensor>(input, trunc(n) - 1, 1.0);
                   }),
                   no_grad<"n">),
})

POINTWISE(legendre_polynomial_p_value, (T input, T n), legendre_polynomial_p(input, n))
OP(legendre_polynomial_p, "(Tensor input, Tensor n) -> Tensor", {
  .home    = "special",
  .doc     = "Legendre's polynomial.",
  .dtypes  = real,
  .forward = formula<legendre_polynomial_p_value>,
  .saves   = saves<"input", "n">,
  .grads   = grads(d<"input">([](const Tensor& g, const Tensor& input, const Tensor& n) {
                     return g * call<"_gegenbauer_polynomial", Tensor>(input, trunc(n) - 1, 1.5);
                   }),
                   no_grad<"n">),
})

}  // namespace rushlight
