// Owns what formulas ask about the digits of numbers: common divisors, mantissas and exponents,
// neighbors.
//
// Plain C++ like formula_math.h, which it follows.
#pragma once

namespace rushlight::RUSHLIGHT_ISA_NAMESPACE {

namespace detail {

inline uint32_t magnitude(int32_t x) { return x < 0 ? -uint32_t(x) : uint32_t(x); }
inline uint64_t magnitude(int64_t x) { return x < 0 ? -uint64_t(x) : uint64_t(x); }
inline uint64_t magnitude(uint64_t x) { return x; }
template <class Bits>
inline Bits common_divisor(Bits a, Bits b) {
  while (b != 0) {
    Bits rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

// 2^n for whole n in [-1022, 1023].
inline double power_of_two(double n) {
  return __builtin_bit_cast(double, uint64_t(int64_t(n) + 1023) << 52);
}

}  // namespace detail

template <class T>
inline T gcd(T x, T y) {
  return T(detail::common_divisor(detail::magnitude(x), detail::magnitude(y)));
}
// Without a sign; wraps around where it does not fit.
template <class T>
inline T lcm(T x, T y) {
  uint64_t divisor = uint64_t(gcd(x, y));
  return divisor == 0 ? T(0)
                      : T(detail::magnitude(T(detail::magnitude(x) / divisor * uint64_t(y))));
}

// x * 2^n, in three steps that only over- or underflow when the result does.
inline double ldexp(double x, double n) {
  double whole = trunc(n);
  whole = whole < -3000 ? -3000 : whole;
  whole = whole > 3000 ? 3000 : whole;
  double third = trunc(whole / 3), step = detail::power_of_two(third);
  double scaled = x * step * step * detail::power_of_two(whole - 2 * third);
  return n == trunc(n) ? scaled : x * exp2(n);
}
inline float ldexp(float x, float n) { return float(ldexp(double(x), double(n))); }

// The exponent of x as a multiple of a number in [1/2, 1); 0 for 0, infinities and NaN.
inline double frexp_exponent(double x) {
  double scaled = x * 0x1p64;  // no longer subnormal
  bool small = abs(x) < 0x1p-960;
  uint64_t bits = __builtin_bit_cast(uint64_t, small ? scaled : x);
  double exponent = double(int64_t(bits >> 52 & 2047)) - (small ? 1022 + 64 : 1022);
  return x == 0 || !isfinite(x) ? 0 : exponent;
}
inline float frexp_exponent(float x) { return float(frexp_exponent(double(x))); }
template <class T>
inline T frexp_mantissa(T x) {
  return ldexp(x, -frexp_exponent(x));
}

namespace detail {

// The bits of a magnitude count its numbers, from 0.
template <class Bits, class T>
inline T neighbor(T x, T y) {
  Bits bits = __builtin_bit_cast(Bits, x), toward = __builtin_bit_cast(Bits, y);
  constexpr Bits kSign = Bits(1) << (8 * sizeof(Bits) - 1);
  Bits grown = bits + Bits((x < y) == (x > 0) ? 1 : -1);
  Bits moved = x == 0 ? (toward & kSign) | Bits(1) : grown;
  T next = __builtin_bit_cast(T, x == y ? toward : moved);
  return isnan(x) | isnan(y) ? x + y : next;
}

}  // namespace detail

// The number next to x in the direction of y.
inline float nextafter(float x, float y) { return detail::neighbor<uint32_t>(x, y); }
inline double nextafter(double x, double y) { return detail::neighbor<uint64_t>(x, y); }

}  // namespace rushlight::RUSHLIGHT_ISA_NAMESPACE
