// Owns the transforms from random bits to other distributions than the uniform one.
//
// Plain C++ without library calls, whose results differ between processors: the same bits give
// the same numbers everywhere, the loops vectorize, and the same text compiles for a GPU. Products
// must not be contracted into fused multiply-adds.
#pragma once

#include "core/device/philox.h"

namespace rushlight {

namespace detail {

// Coefficients of minimax polynomials in powers of a square.
template <class T>
struct NormalMath;
template <>
struct NormalMath<float> {
  using Bits = int32_t;
  static constexpr int kMantissa = 23;
  static constexpr Bits kSqrtHalf = 0x3f3504f3;  // the bits of sqrt(1/2)
  static constexpr float kLog[] = {0.66666685f, 0.39988781f, 0.29579949f};
  static constexpr float kSin[] = {-0.16666665f, 0.0083327483f, -0.00019587890f};
  static constexpr float kCos[] = {0.041666665f, -0.0013888303f, 0.000024547942f};
};
template <>
struct NormalMath<double> {
  using Bits = int64_t;
  static constexpr int kMantissa = 52;
  static constexpr Bits kSqrtHalf = 0x3fe6a09e667f3bcd;
  static constexpr double kLog[] = {0.66666666666666696862, 0.39999999999899494490,
                                    0.28571428625975484946, 0.22222211134795077031,
                                    0.18182889125261882073, 0.15331721600551690549,
                                    0.14616449685088905054};
  static constexpr double kSin[] = {-0.16666666666666664624,    0.0083333333333309484855,
                                    -0.00019841269836758574323, 2.7557316102552440095e-6,
                                    -2.5051131845003620553e-8,  1.5918129294866380937e-10};
  static constexpr double kCos[] = {0.041666666666666665389,    -0.0013888888888887397237,
                                    0.000024801587298765687927, -2.7557317271729792867e-7,
                                    2.0876146268403195477e-9,   -1.1382632425521575557e-11};
};

template <class T, int n>
[[gnu::always_inline]] constexpr T polynomial(const T (&coefficients)[n], T x) {
  T sum = coefficients[n - 1];
#pragma GCC unroll 16
  for (int i = n - 2; i >= 0; --i) sum = sum * x + coefficients[i];
  return sum;
}

}  // namespace detail

// log(1 + m) for m near 0, with s = m / (2 + m): 2 * (s + s^3/3 + s^5/5 + ...).
template <class T>
[[gnu::always_inline]] inline T log_near_one(T m) {
  T s = m / (m + T(2)), z = s * s;
  return s + s + s * z * detail::polynomial(detail::NormalMath<T>::kLog, z);
}

// log(x) for normal x > 0, with x = (1 + m) * 2^e: e * log(2) + log(1 + m).
template <class T>
[[gnu::always_inline]] inline T log_of(T x) {
  using Math = detail::NormalMath<T>;
  using Bits = typename Math::Bits;
  Bits bits = __builtin_bit_cast(Bits, x);
  Bits exponent = (bits - Math::kSqrtHalf) >> Math::kMantissa;
  T m = __builtin_bit_cast(T, bits - (exponent << Math::kMantissa)) - T(1);
  return T(int32_t(exponent)) * T(0.69314718055994530942) + log_near_one(m);
}

// exp(x) = 2^n * exp(r) with n = round(x / log(2)) and the Taylor series for exp(r). Adding kRound
// leaves n in the low bits of the sum; log(2) in two parts makes the first product exact; the power
// is applied in two halves, so that it may overflow or become subnormal.
[[gnu::always_inline]] inline double exp_of(double x) {
  constexpr double kRound = 0x1.8p52;
  constexpr uint64_t kBias = 1023;
  constexpr double kTerms[] = {1.0,
                               1.0,
                               1.0 / 2,
                               1.0 / 6,
                               1.0 / 24,
                               1.0 / 120,
                               1.0 / 720,
                               1.0 / 5040,
                               1.0 / 40320,
                               1.0 / 362880,
                               1.0 / 3628800,
                               1.0 / 39916800,
                               1.0 / 479001600,
                               1.0 / 6227020800};
  x = x < -800 ? -800 : x;  // keeps NaN, and n in range
  x = x > 800 ? 800 : x;
  double shifted = x * 0x1.71547652b82fep+0 + kRound, n = shifted - kRound;
  double r = (x - n * 0x1.62e42fee00000p-1) - n * 0x1.a39ef35793c76p-33;
  double y = detail::polynomial(kTerms, r);
  uint64_t power =
      __builtin_bit_cast(uint64_t, shifted) - __builtin_bit_cast(uint64_t, kRound) + 2 * kBias;
  uint64_t half = power / 2;
  return y * __builtin_bit_cast(double, half << 52) *
         __builtin_bit_cast(double, (power - half) << 52);
}

// Uniform in (0, 1]: never 0, so that its logarithm is finite.
[[gnu::always_inline]] inline float positive_unit(uint32_t bits) {
  return (float(int32_t(bits >> 1)) + 0.5f) * 0x1p-31f;
}
// The upper 52 bits become the fraction of a number in [1, 2).
[[gnu::always_inline]] inline double positive_unit(uint64_t bits) {
  return __builtin_bit_cast(double, bits >> 12 | 0x3ff0000000000000) - (1 - 0x1p-53);
}

// x, or the end of the range that it left. Keeps NaN.
[[gnu::always_inline]] inline double limited(double x, double least, double most) {
  return x < least ? least : x > most ? most : x;
}

// -log(u) / rate.
[[gnu::always_inline]] inline double exponential_number(uint64_t bits, double rate) {
  return -log_of(positive_unit(bits)) / rate;
}

// How often one tries until the first success, when each fails with probability exp(-rate):
// an exponential number rounded up.
[[gnu::always_inline]] inline double geometric_number(uint64_t bits, double rate) {
  return __builtin_ceil(exponential_number(bits, rate));
}

template <class T>
struct NormalPair {
  T first, second;
};

// The point at `radius` in the direction of quarter turn `quadrant` plus the angle y, which is at
// most an eighth of a turn.
template <class T>
[[gnu::always_inline]] inline NormalPair<T> on_circle(T radius, uint32_t quadrant, T y) {
  using Math = detail::NormalMath<T>;
  T z = y * y;
  T sine = y + y * z * detail::polynomial(Math::kSin, z);
  T cosine = T(1) - T(0.5) * z + z * z * detail::polynomial(Math::kCos, z);
  T across = quadrant & 1 ? sine : cosine, up = quadrant & 1 ? cosine : sine;
  return {radius * ((quadrant + 1) & 2 ? -across : across), radius * (quadrant & 2 ? -up : up)};
}

namespace detail {
// All bits but the two that name the quadrant, as a number in [-1/2, 1/2).
[[gnu::always_inline]] inline double part_of_quarter(uint64_t turn) {
  uint64_t fraction = (turn & 0x3fffffffffffffff) >> 10 | 0x3ff0000000000000;
  return __builtin_bit_cast(double, fraction) - 1.5;
}
}  // namespace detail

// Two independent standard normal numbers from two words.
// Box and Muller, "A note on the generation of random normal deviates", 1958.
[[gnu::always_inline]] inline NormalPair<float> normal_pair(uint32_t a, uint32_t b) {
  constexpr float kQuarterTurn = 1.5707963267948966f;
  float radius = __builtin_sqrtf(-2.0f * log_of(positive_unit(a)));
  uint32_t turn = b + (1u << 29);
  float part = float(int32_t(turn & 0x3fffffff) - (1 << 29)) * 0x1p-30f;
  return on_circle(radius, turn >> 30, part * kQuarterTurn);
}
[[gnu::always_inline]] inline NormalPair<double> normal_pair(uint64_t a, uint64_t b) {
  constexpr double kQuarterTurn = 1.5707963267948966;
  double radius = __builtin_sqrt(-2.0 * log_of(positive_unit(a)));
  uint64_t turn = b + (uint64_t(1) << 61);
  return on_circle(radius, uint32_t(turn >> 62), detail::part_of_quarter(turn) * kQuarterTurn);
}

// median + sigma * tan(angle) of an angle that is uniform over the circle and never quite upright.
[[gnu::always_inline]] inline double cauchy_number(uint64_t turn, double median, double sigma) {
  constexpr double kQuarterTurn = 1.5707963267948966;
  double part = detail::part_of_quarter(turn) + 0x1p-53;
  NormalPair<double> point = on_circle(1.0, uint32_t(turn >> 62), part * kQuarterTurn);
  return median + sigma * (point.second / point.first);
}

}  // namespace rushlight
