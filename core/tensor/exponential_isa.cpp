// Owns expm1, sinh and cosh of floats and doubles and tanh of doubles for loops (own_math.h),
// within 0.91 ulp. exp stands in formula_math.h; libmvec's tanh of floats takes half as long.
#include "core/tensor/own_math.h"

#if RUSHLIGHT_HAS_OWN_MATH
namespace rushlight::RUSHLIGHT_ISA_NAMESPACE {
namespace {

// ln 2 is kFirst + kSecond, and products of n with kFirst are exact. kSinh gives
// (sinh(r) - r) / r^3 and kCosh gives (cosh(r) - 1 - r^2 / 2) / r^4, as polynomials in r^2 for
// |r| <= ln(2) / 2 (Remez). From kLeast to kMost powers of 2 are normal, and so are their
// reciprocals; from kInfinite on all is infinite.
template <class T>
struct Exponential;
template <>
struct Exponential<float> {
  static constexpr int kDigits = 23, kBias = 127;
  static constexpr float kRound = 0x1.8p23f, kLog2E = 0x1.715476p+0f;
  static constexpr float kFirst = 0x1.63p-1f, kSecond = -0x1.bd0106p-13f;
  static constexpr float kSinh[] = {0x1.a16ff4p-13f, 0x1.1110b2p-7f, 0x1.555556p-3f};
  static constexpr float kCosh[] = {0x1.6d4eecp-10f, 0x1.5554e6p-5f};
  static constexpr float kLeast = -86, kMost = 86, kInfinite = 89.5f;
};
template <>
struct Exponential<double> {
  static constexpr int kDigits = 52, kBias = 1023;
  static constexpr double kRound = 0x1.8p52, kLog2E = 0x1.71547652b82fep+0;
  static constexpr double kFirst = 0x1.62e42feep-1, kSecond = 0x1.a39ef35793c76p-33;
  static constexpr double kSinh[] = {0x1.af5ec005ce04ap-26, 0x1.71ddf853095e2p-19,
                                     0x1.a01a01afe562cp-13, 0x1.111111110f6aep-7,
                                     0x1.5555555555559p-3};
  static constexpr double kCosh[] = {0x1.1f8b7b5139108p-29, 0x1.27e4cc4e3415cp-22,
                                     0x1.a01a01ad63c7ap-16, 0x1.6c16c16c1504cp-10,
                                     0x1.5555555555558p-5};
  static constexpr double kLeast = -707, kMost = 707, kInfinite = 710.6;
};

// x = n ln 2 + r, where r is near + low: power is 2^(n - halvings), even is cosh(r) - 1, and odd is
// sinh(r) - near.
template <class T>
struct Parts {
  Vector<T> power, near, even, odd;
};
template <class T, int halvings>
[[gnu::always_inline]] inline Parts<T> split(Vector<T> x) {
  using E = Exponential<T>;
  constexpr T kRound = E::kRound + E::kBias - halvings;  // leaves the power's exponent below
  const Vector<T> shifted = multiply_add(x, broadcast(E::kLog2E), broadcast(kRound));
  const Vector<T> n = shifted - kRound, low = n * -E::kSecond;
  const Vector<T> near = multiply_add(n, broadcast(-E::kFirst), x), r = near + low;
  const Vector<T> square = r * r, fourth = square * square * polynomial(square, E::kCosh);
  const Vector<T> cross = multiply_add(low, broadcast(T(0.5)), near);  // r^2 = near^2 + 2 low cross
  return {(Vector<T>)((VectorBits<T>)shifted << E::kDigits), near,
          multiply_add(near, near * T(0.5), multiply_add(low, cross, fourth)),
          multiply_add(r * square, polynomial(square, E::kSinh), low)};
}

// first + second + even (cosh(r) - 1) + odd sinh(r)
template <class T>
[[gnu::always_inline]] inline Sum<T> combine(const Parts<T>& parts, Vector<T> first,
                                             Vector<T> second, Vector<T> even, Vector<T> odd) {
  const Vector<T> constant = first + second, low = first - constant + second;
  const Vector<T> high = multiply_add(odd, parts.near, constant);
  const Vector<T> lost = multiply_add(odd, parts.near, constant - high) + low;
  return {high, multiply_add(odd, parts.odd, multiply_add(even, parts.even, lost))};
}

// exp(x) / 2^halvings for x so large that expm1(x), or sinh(x) and cosh(x), are the same number.
template <class T, int halvings>
[[gnu::always_inline]] inline Vector<T> exp_of_large(Vector<T> x) {
  constexpr T kInfinite = Exponential<T>::kInfinite;
  const Parts<T> parts = split<T, halvings + 2>(x > kInfinite ? broadcast(kInfinite) : x);
  const Vector<T> power = parts.power;
  const Sum<T> quarter = combine<T>(parts, power, Vector<T>{}, power, power);
  return (quarter.high + quarter.low) * 4;
}

template <class T>
[[gnu::always_inline]] inline Vector<T> expm1_inside(Vector<T> x) {
  const Parts<T> parts = split<T, 0>(x);
  const Vector<T> power = parts.power;
  const Sum<T> sum = combine<T>(parts, power, broadcast(T(-1)), power, power);
  const Vector<T> y = sum.high + sum.low;
  return (Vector<T>)((VectorBits<T>)y | sign_of<T>(x));
}
template <class T>
[[gnu::noinline]] Vector<T> expm1_of_any(Vector<T> x) {
  using E = Exponential<T>;
  const Vector<T> y = x < E::kMost ? expm1_inside<T>(x) : exp_of_large<T, 0>(x);
  return x < E::kLeast ? broadcast(T(-1)) : y;
}
template <class T>
[[gnu::always_inline]] inline Vector<T> expm1(Vector<T> x) {
  if (!all_between(x, Exponential<T>::kLeast, Exponential<T>::kMost)) [[unlikely]]
    return expm1_of_any<T>(x);
  return expm1_inside<T>(x);
}

// sinh(n ln 2 + r) = sinh(n ln 2) cosh(r) + cosh(n ln 2) sinh(r), and cosh alike.
template <class T, bool even>
[[gnu::always_inline]] inline Vector<T> sinh_inside(Vector<T> x) {
  using E = Exponential<T>;
  static constexpr Int<T> kQuarter = Int<T>(E::kBias - 1) * 2 << E::kDigits;
  const Parts<T> parts = split<T, 1>(x);
  const Vector<T> power = parts.power;
  const auto inverse = (Vector<T>)(load_constant(kQuarter) - (VectorBits<T>)power);
  const Vector<T> sine = power - inverse, cosine = power + inverse;
  const Sum<T> sum = even ? combine<T>(parts, power, inverse, cosine, sine)
                          : combine<T>(parts, power, -inverse, sine, cosine);
  return sum.high + sum.low;
}
template <class T, bool even>
[[gnu::noinline]] Vector<T> sinh_of_any(Vector<T> x) {
  return x < Exponential<T>::kMost ? sinh_inside<T, even>(x) : exp_of_large<T, 1>(x);
}
template <class T, bool even>
[[gnu::always_inline]] inline Vector<T> sinh_or_cosh(Vector<T> x) {
  const VectorBits<T> sign = sign_of<T>(x);
  const auto magnitude = (Vector<T>)((VectorBits<T>)x ^ sign);
  const Vector<T> y = all_below(magnitude, Exponential<T>::kMost) ? sinh_inside<T, even>(magnitude)
                                                                  : sinh_of_any<T, even>(magnitude);
  return even ? y : (Vector<T>)((VectorBits<T>)y ^ sign);
}

// (exp(2 x) - 1) / (exp(2 x) + 1), which is 1 from 20 on.
[[gnu::always_inline]] inline Vector<double> tanh(Vector<double> x) {
  using T = double;
  using Bits = VectorBits<T>;
  const Bits sign = sign_of<T>(x);
  const auto magnitude = (Vector<T>)((Bits)x ^ sign);
  const Vector<T> bounded = magnitude > 20 ? broadcast(T(20)) : magnitude;
  const Parts<T> parts = split<T, 0>(bounded + bounded);
  const Vector<T> power = parts.power, one = broadcast(T(1));
  const Sum<T> above = combine<T>(parts, power, -one, power, power);
  const Sum<T> below = combine<T>(parts, power, one, power, power);
  return (Vector<T>)((Bits)quotient<T>(above, below) ^ sign);
}

}  // namespace
RUSHLIGHT_FORMS(expm1, expm1)
RUSHLIGHT_FORMS(sinh, sinh_or_cosh, false)
RUSHLIGHT_FORMS(cosh, sinh_or_cosh, true)
RUSHLIGHT_FORM(tanh, DOUBLE, double, tanh)
}  // namespace rushlight::RUSHLIGHT_ISA_NAMESPACE
#endif
