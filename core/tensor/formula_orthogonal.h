// Owns the orthogonal polynomials of formulas: Chebyshev's four kinds, Hermite's two, Laguerre's
// and Legendre's, by degree n, of which the fraction is dropped, and what their derivatives are
// made of. A negative degree gives 0.
//
// Plain C++ like formula_math.h, which it follows. Everything computes in double.
#pragma once

namespace rushlight::RUSHLIGHT_ISA_NAMESPACE {

namespace detail {

// Recurrences are followed so far; polynomials that are still finite then are NaN.
inline constexpr double kLastDegree = 1e6;

inline bool is_odd(double n) { return abs(fmod(n, 2.0)) == 1; }

// r(k + 1) = (slope x + shift) r(k) - back r(k - 1) as `step` gives it, from r(0) = 1 and r(1).
template <class Step>
inline double by_recurrence(double first, double n, Step step) {
  if (n > kLastDegree) n = kLastDegree + 1;
  double before = 1, value = first;
  for (double k = 1; k < n && isfinite(value); k += 1) {
    double next = step(k, value, before);
    before = value;
    value = next;
  }
  return n > kLastDegree && isfinite(value) ? kNaN : value;
}

// Chebyshev's polynomials share the recurrence 2 x r(k) - r(k - 1). For larger n they are quotients
// of the functions of (n + rise) times an angle, with x its cosine or hyperbolic cosine.
template <class Circular, class Hyperbolic>
inline double chebyshev(double x, double first, double n, Circular circular,
                        Hyperbolic hyperbolic) {
  if (n < 0) return 0;
  if (n == 0) return 1;
  if (n > 8 && abs(x) < 1) return circular(acos(x));
  if (n > 64 && x > 1) return hyperbolic(acosh(x));
  return by_recurrence(first, n,
                       [x](double, double value, double before) { return 2 * x * value - before; });
}

// The third kind, which has cosines of half angles, and the fourth, which has sines: each is the
// other one at -x but for the sign.
__attribute__((noinline)) inline double half_angle_chebyshev(double x, double n, bool cosines) {
  n = trunc(n);
  double sign = x < 0 && is_odd(n) ? -1 : 1;
  if (x < -1 && n > 64) return sign * half_angle_chebyshev(-x, n, !cosines);
  if (abs(x) == 1 && n >= 0) return sign * ((x > 0) == cosines ? 1 : 2 * n + 1);
  return chebyshev(
      x, cosines ? 2 * x - 1 : 2 * x + 1, n,
      [=](double angle) {
        return cosines ? cos((n + 0.5) * angle) / cos(0.5 * angle)
                       : sin((n + 0.5) * angle) / sin(0.5 * angle);
      },
      [=](double angle) {
        double far = exp(-(2 * n + 1) * angle), near = exp(-angle);
        return exp(n * angle) *
               (cosines ? (1 + far) / (1 + near) : expm1(-(2 * n + 1) * angle) / expm1(-angle));
      });
}

}  // namespace detail

__attribute__((noinline)) inline double chebyshev_polynomial_t(double x, double n) {
  n = trunc(n);
  if (x < -1 && n > 64) return (detail::is_odd(n) ? -1 : 1) * chebyshev_polynomial_t(-x, n);
  if (abs(x) == 1 && n >= 0) return x < 0 && detail::is_odd(n) ? -1 : 1;
  return detail::chebyshev(
      x, x, n, [n](double angle) { return cos(n * angle); },
      [n](double angle) { return cosh(n * angle); });
}
__attribute__((noinline)) inline double chebyshev_polynomial_u(double x, double n) {
  n = trunc(n);
  if (x < -1 && n > 64) return (detail::is_odd(n) ? -1 : 1) * chebyshev_polynomial_u(-x, n);
  if (abs(x) == 1 && n >= 0) return (x < 0 && detail::is_odd(n) ? -1 : 1) * (n + 1);
  return detail::chebyshev(
      x, 2 * x, n, [n](double angle) { return sin((n + 1) * angle) / sin(angle); },
      [n](double angle) {
        return exp(n * angle) * (expm1(-2 * (n + 1) * angle) / expm1(-2 * angle));
      });
}
inline double chebyshev_polynomial_v(double x, double n) {
  return detail::half_angle_chebyshev(x, n, true);
}
inline double chebyshev_polynomial_w(double x, double n) {
  return detail::half_angle_chebyshev(x, n, false);
}

inline double shifted_chebyshev_polynomial_t(double x, double n) {
  return chebyshev_polynomial_t(2 * x - 1, n);
}
inline double shifted_chebyshev_polynomial_u(double x, double n) {
  return chebyshev_polynomial_u(2 * x - 1, n);
}
inline double shifted_chebyshev_polynomial_v(double x, double n) {
  return chebyshev_polynomial_v(2 * x - 1, n);
}
inline double shifted_chebyshev_polynomial_w(double x, double n) {
  return chebyshev_polynomial_w(2 * x - 1, n);
}

// Abramowitz and Stegun 22.7.
__attribute__((noinline)) inline double hermite_polynomial_h(double x, double n) {
  n = trunc(n);
  if (n < 1) return n < 0 ? 0 : 1;
  return detail::by_recurrence(2 * x, n, [x](double k, double value, double before) {
    return 2 * (x * value - k * before);
  });
}
__attribute__((noinline)) inline double hermite_polynomial_he(double x, double n) {
  n = trunc(n);
  if (n < 1) return n < 0 ? 0 : 1;
  return detail::by_recurrence(
      x, n, [x](double k, double value, double before) { return x * value - k * before; });
}
__attribute__((noinline)) inline double laguerre_polynomial_l(double x, double n) {
  n = trunc(n);
  if (n < 1) return n < 0 ? 0 : 1;
  if (x == 0) return 1;
  return detail::by_recurrence(1 - x, n, [x](double k, double value, double before) {
    return ((2 * k + 1 - x) * value - k * before) / (k + 1);
  });
}
__attribute__((noinline)) inline double legendre_polynomial_p(double x, double n) {
  n = trunc(n);
  if (n < 1) return n < 0 ? 0 : 1;
  if (abs(x) == 1) return x < 0 && detail::is_odd(n) ? -1 : 1;
  return detail::by_recurrence(x, n, [x](double k, double value, double before) {
    return ((2 * k + 1) * x * value - k * before) / (k + 1);
  });
}

// The families that are closed under differentiation (Abramowitz and Stegun 22.7): Gegenbauer's
// polynomials of an order, 2 order times the order above of the degree below, and Laguerre's,
// minus that.
__attribute__((noinline)) inline double gegenbauer_polynomial(double x, double n, double order) {
  n = trunc(n);
  if (n < 1) return n < 0 ? 0 : 1;
  return detail::by_recurrence(2 * order * x, n, [=](double k, double value, double before) {
    return (2 * (k + order) * x * value - (k + 2 * order - 1) * before) / (k + 1);
  });
}
__attribute__((noinline)) inline double laguerre_polynomial(double x, double n, double order) {
  n = trunc(n);
  if (n < 1) return n < 0 ? 0 : 1;
  return detail::by_recurrence(1 + order - x, n, [=](double k, double value, double before) {
    return ((2 * k + 1 + order - x) * value - (k + order) * before) / (k + 1);
  });
}
inline float gegenbauer_polynomial(float x, float n, float order) {
  return float(gegenbauer_polynomial(double(x), double(n), double(order)));
}
inline float laguerre_polynomial(float x, float n, float order) {
  return float(laguerre_polynomial(double(x), double(n), double(order)));
}

#define RUSHLIGHT_IN_DOUBLE(name) \
  inline float name(float x, float n) { return float(name(double(x), double(n))); }
RUSHLIGHT_IN_DOUBLE(chebyshev_polynomial_t)
RUSHLIGHT_IN_DOUBLE(chebyshev_polynomial_u)
RUSHLIGHT_IN_DOUBLE(chebyshev_polynomial_v)
RUSHLIGHT_IN_DOUBLE(chebyshev_polynomial_w)
RUSHLIGHT_IN_DOUBLE(shifted_chebyshev_polynomial_t)
RUSHLIGHT_IN_DOUBLE(shifted_chebyshev_polynomial_u)
RUSHLIGHT_IN_DOUBLE(shifted_chebyshev_polynomial_v)
RUSHLIGHT_IN_DOUBLE(shifted_chebyshev_polynomial_w)
RUSHLIGHT_IN_DOUBLE(hermite_polynomial_h)
RUSHLIGHT_IN_DOUBLE(hermite_polynomial_he)
RUSHLIGHT_IN_DOUBLE(laguerre_polynomial_l)
RUSHLIGHT_IN_DOUBLE(legendre_polynomial_p)
#undef RUSHLIGHT_IN_DOUBLE

}  // namespace rushlight::RUSHLIGHT_ISA_NAMESPACE
