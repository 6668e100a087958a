// Owns the part of the formula vocabulary that is built from elementary functions.
//
// Plain C++ without library calls and without includes: formula.h and formula.cuh define what it
// is built from (exp, log, sqrt, abs, ...) for each instruction set and for CUDA, and then include
// this text. What GCC would call rather than inline is marked so that it inlines it: a call keeps
// the loop around it from being vectorized.
#pragma once

namespace rushlight::RUSHLIGHT_ISA_NAMESPACE {

inline constexpr double kInfinity = __builtin_bit_cast(double, uint64_t(0x7ff0000000000000));
inline constexpr double kNaN = __builtin_bit_cast(double, uint64_t(0x7ff8000000000000));

// Integers that formulas compute in. uint64 differs from int64 in its order, in what it divides to,
// and where a sign is looked at; int32 and less is for loops over narrow integers.
#define RUSHLIGHT_DEFINE(name)                     \
  inline int32_t name(int32_t x) { return x; }     \
  inline int64_t name(int64_t x) { return x; }     \
  inline uint64_t name(uint64_t x) { return x; }
RUSHLIGHT_DEFINE(floor)
RUSHLIGHT_DEFINE(ceil)
RUSHLIGHT_DEFINE(trunc)
RUSHLIGHT_DEFINE(round)
RUSHLIGHT_DEFINE(conj)
#undef RUSHLIGHT_DEFINE
inline uint8_t abs(uint8_t x) { return x; }
inline int8_t abs(int8_t x) { return x < 0 ? int8_t(-x) : x; }
inline int16_t abs(int16_t x) { return x < 0 ? int16_t(-x) : x; }
inline int32_t abs(int32_t x) { return x < 0 ? int32_t(-uint32_t(x)) : x; }
inline int64_t abs(int64_t x) { return x < 0 ? int64_t(-uint64_t(x)) : x; }
inline uint64_t abs(uint64_t x) { return x; }

// first * x^n + ... + last, by Horner's rule.
template <class T>
inline T polynomial(T, T last) {
  return last;
}
template <class T, class... Rest>
inline T polynomial(T x, T first, T second, Rest... rest) {
  return polynomial(x, multiply_add(first, x, second), rest...);
}

// exp(x) = 2^n exp(r) with n = round(x / ln 2) and r = x - n ln 2. This gives exp(r) - 1 as
// r + r^2 p(r), with a minimax p (Remez) whose terms go in pairs, which need not wait for each
// other. ln 2 in two parts makes the product with n exact. Within 1.1 ulp.
inline float expm1_reduced(float x, float n) {
  float r = multiply_add(n, 0x1.bd0106p-13f, multiply_add(n, -0x1.63p-1f, x)), square = r * r;
  float p =
      polynomial(square, 0.0013814598649f, multiply_add(r, 0.00836871687966f, 0.0416683880453f),
                 multiply_add(r, 0.166665206317f, 0.499999934478f));
  return multiply_add(square, p, r);
}
[[gnu::always_inline]] inline double expm1_reduced(double x, double n) {
  double r = multiply_add(n, -0x1.a39ef35793c76p-33, multiply_add(n, -0x1.62e42fee00000p-1, x));
  double square = r * r;
  double p = polynomial(square, multiply_add(r, 0x1.ad7f6c7cd09b3p-26, 0x1.28ad72cfd2a4fp-22),
                        multiply_add(r, 0x1.71df2553be721p-19, 0x1.a0199a0c6374dp-16),
                        multiply_add(r, 0x1.a01a012a57123p-13, 0x1.6c16c1842a134p-10),
                        multiply_add(r, 0x1.1111111127be7p-7, 0x1.555555555087cp-5),
                        multiply_add(r, 0x1.55555555554fap-3, 0x1.000000000000ap-1));
  return multiply_add(square, p, r);
}
// Adding kRound leaves n in the low bits of the sum, with the bias of two exponents: the power is
// applied in two halves, so that it may overflow or become subnormal. x is bounded, which keeps NaN
// and n in range: in two steps that look at the same number, since GCC would double the tests of a
// chain, or by the bits of the sum, for which there is an instruction.
inline float exp(float x) {
  constexpr float kRound = 0x1.8p23f + 2 * 127;
  constexpr int32_t kMost = __builtin_bit_cast(int32_t, kRound + 129);  // infinite from 128 on
  x = x < -120 ? -120 : x;
  int32_t bits = __builtin_bit_cast(int32_t, multiply_add(x, 0x1.715476p+0f, kRound));
  bits = bits < kMost ? bits : kMost;
  float y = expm1_reduced(x, __builtin_bit_cast(float, bits) - kRound);
  uint32_t power = uint32_t(bits), half = power >> 1;
  float first = __builtin_bit_cast(float, half << 23);
  float second = __builtin_bit_cast(float, (power - half) << 23);
  return multiply_add(y, first, first) * second;
}
[[gnu::always_inline]] inline double exp(double x) {
  constexpr double kRound = 0x1.8p52 + 2 * 1023;
  double raised = x < -800 ? -800 : x;
  x = x > 800 ? 800 : raised;
  double shifted = multiply_add(x, 0x1.71547652b82fep+0, kRound);
  double y = expm1_reduced(x, shifted - kRound);
  uint64_t power = __builtin_bit_cast(uint64_t, shifted), half = power >> 1;
  double first = __builtin_bit_cast(double, half << 52);
  double second = __builtin_bit_cast(double, (power - half) << 52);
  return multiply_add(y, first, first) * second;
}

// exp(x) for x <= 0, with 0 for subnormal results: what softmax needs, in less time.
inline float exp_nonpositive(float x) {
  constexpr float kRound = 0x1.8p23f + 127;
  float shifted = multiply_add(x, 0x1.715476p+0f, kRound);
  float y = expm1_reduced(x, shifted - kRound);
  float power = __builtin_bit_cast(float, __builtin_bit_cast(uint32_t, shifted) << 23);
  return x < -0x1.5d589ep+6f ? 0.0f : multiply_add(y, power, power);
}
[[gnu::always_inline]] inline double exp_nonpositive(double x) {
  constexpr double kRound = 0x1.8p52 + 1023;
  double shifted = multiply_add(x, 0x1.71547652b82fep+0, kRound);
  double y = expm1_reduced(x, shifted - kRound);
  double power = __builtin_bit_cast(double, __builtin_bit_cast(uint64_t, shifted) << 52);
  return x < -0x1.6232bdd7abcd2p+9 ? 0.0 : multiply_add(y, power, power);
}

template <class T>
inline T select(bool condition, T a, T b) {
  return condition ? a : b;
}
template <class T>
inline bool isnan(T x) {
  return x != x;
}
// NaN wins, as in PyTorch and NumPy. In two steps, which are two vector instructions, and no
// branches for single numbers.
template <class T>
inline T max(T x, T y) {
  T larger = x > y ? x : y;
  return isnan(x) ? x : larger;
}
template <class T>
inline T min(T x, T y) {
  T smaller = x < y ? x : y;
  return isnan(x) ? x : smaller;
}
// NaN loses.
template <class T>
inline T fmax(T x, T y) {
  return (x > y) | isnan(y) ? x : y;
}
template <class T>
inline T fmin(T x, T y) {
  return (x < y) | isnan(y) ? x : y;
}
// Not min(max()), whose tests for NaN depend on each other, which GCC does not vectorize.
template <class T>
inline T clamp(T x, T low, T high) {
  T raised = x < low ? low : x;
  T clamped = raised > high ? high : raised;
  return isnan(low) | isnan(high) ? low + high : clamped;
}
template <class T>
inline T sign(T x) {
  T positive = x > T(0) ? T(1) : T(0);
  return x < T(0) ? T(-1) : positive;
}
inline int32_t sign(int32_t x) { return x > 1 ? 1 : x < -1 ? -1 : x; }  // vectors of bytes can
template <class T>
inline T sgn(T x) {
  return sign(x);
}
template <class T>
inline T rsqrt(T x) {
  return T(1) / sqrt(x);
}
template <class T>
[[gnu::always_inline]] inline T sigmoid(T x) {
  return T(1) / (T(1) + exp(-x));
}
template <class T>
inline T reciprocal(T x) {
  return T(1) / x;
}
// exp(-x^2 / 2) = 2^n 2^f with n + f = -x^2 / (2 ln 2), and for 2^f a minimax polynomial (Remez) of
// relative error 8e-8; 0 for subnormal results.
inline float gaussian(float x) {
  constexpr float kRound = 0x1.8p23f, kScale = -0.7213475204f;
  float square = x * x;
  float shifted = multiply_add(square, kScale, kRound), n = shifted - kRound;
  float f = multiply_add(square, kScale, -n);
  float power_of_f = polynomial(f, 0.001327647129f, 0.009675540961f, 0.05550713092f, 0.2402212024f,
                                0.693146944f, 1.000000119f);
  uint32_t bits = __builtin_bit_cast(uint32_t, shifted) << 23;  // n, without the bits of kRound
  float y = __builtin_bit_cast(float, __builtin_bit_cast(uint32_t, power_of_f) + bits);
  return square > 174.6f ? 0.0f : y;
}
inline double gaussian(double x) { return exp(x * x * -0.5); }
// The density of a normal variable, and the probability that it is below x: erfc(-x / sqrt(2)) / 2,
// which keeps its precision where erf is close to -1. For float, the gaussian times a polynomial in
// t = 1 / (1 + 0.35 |x|), a minimax fit (Remez) of relative error 3e-7.
template <class T>
inline T normal_density(T x) {
  return gaussian(x) * T(0.3989422804014327);
}
inline float normal_cdf(float x) {
  float t = 1 / multiply_add(abs(x), 0.35f, 1.0f);
  float p = polynomial(t, 0.04894243926f, -0.2021192759f, 0.2406408042f, -0.0170234032f,
                       0.1559614539f, 0.1333551109f, 0.1402703375f, -2.731539462e-5f);
  float tail = p * gaussian(x);
  return x < 0 ? tail : 1 - tail;
}
inline double normal_cdf(double x) { return erfc(x * -0.7071067811865476) * 0.5; }
// log(1 + exp(x)) without overflow.
template <class T>
inline T softplus(T x) {
  return max(x, T(0)) + log1p(exp(-abs(x)));
}
// tanh(softplus(x)) by one exp: of n = exp(x) it is n (n + 2) / (n (n + 2) + 2), which is 1 long
// before n^2 overflows.
template <class T>
[[gnu::always_inline]] inline T tanh_softplus(T x) {
  T n = exp(min(x, T(40))), product = n * (n + T(2));
  return product / (product + T(2));
}
// log(exp(x) + exp(y)). The larger one is taken out, so that nothing overflows; equal infinities
// have no difference.
template <class T>
inline T logaddexp(T x, T y) {
  T sum = max(x, y) + log1p(exp(-abs(x - y)));
  return x == y ? x + T(0.6931471805599453) : sum;
}
template <class T>
inline T xlogy(T x, T y) {
  return (x == T(0)) & !isnan(y) ? T(0) : x * log(y);
}
template <class T>
inline bool isfinite(T x) {
  return x - x == T(0);
}
inline bool isfinite(int64_t) { return true; }
inline bool isfinite(uint64_t) { return true; }
template <class T>
inline bool isinf(T x) {
  return !isfinite(x) & !isnan(x);
}
inline bool signbit(float x) { return __builtin_bit_cast(int32_t, x) < 0; }
inline bool signbit(double x) { return __builtin_bit_cast(int64_t, x) < 0; }
inline bool signbit(int32_t x) { return x < 0; }
inline bool signbit(int64_t x) { return x < 0; }
inline bool signbit(uint64_t) { return false; }
inline float conj(float x) { return x; }
inline double conj(double x) { return x; }
inline float real(float x) { return x; }
inline double real(double x) { return x; }

// Division of integers in the two roundings. Division by zero is refused before the loop runs;
// -2^63 / -1 wraps instead of trapping.
inline int64_t trunc_divide(int64_t x, int64_t y) {
  return y == -1 ? int64_t(-uint64_t(x)) : x / (y == 0 ? 1 : y);
}
inline uint64_t trunc_divide(uint64_t x, uint64_t y) { return x / (y == 0 ? 1 : y); }
// By floats, for which there are vectors: the quotient is exact but for its last bits, which do not
// reach the next integer.
inline int32_t trunc_divide(int32_t x, int32_t y) {
  return y == -1 ? int32_t(-uint32_t(x)) : int32_t(double(x) / double(y == 0 ? 1 : y));
}
template <class T>
inline T trunc_divide(T x, T y) {
  return trunc(x / y);
}
inline int64_t floor_divide(int64_t x, int64_t y) {
  int64_t q = trunc_divide(x, y);
  return q - ((q * y != x) & ((x < 0) != (y < 0)));
}
inline int32_t floor_divide(int32_t x, int32_t y) {
  int32_t q = trunc_divide(x, y);
  return q - ((q * y != x) & ((x < 0) != (y < 0)));
}
inline uint64_t floor_divide(uint64_t x, uint64_t y) { return trunc_divide(x, y); }
// x or 0, without a jump for single numbers.
inline float where_true(bool condition, float x) {
  return __builtin_bit_cast(float, __builtin_bit_cast(uint32_t, x) & -uint32_t(condition));
}
inline double where_true(bool condition, double x) {
  return __builtin_bit_cast(double, __builtin_bit_cast(uint64_t, x) & -uint64_t(condition));
}
// The remainder with the sign of the divisor; exact where floor(x / y) is not.
template <class T>
inline T remainder(T x, T y) {
  T r = fmod(x, y);
  return r + where_true((r != T(0)) & ((r < T(0)) != (y < T(0))), y);
}
inline int32_t remainder(int32_t x, int32_t y) { return x - floor_divide(x, y) * y; }
inline int32_t fmod(int32_t x, int32_t y) { return x - trunc_divide(x, y) * y; }
inline int64_t remainder(int64_t x, int64_t y) {
  return int64_t(uint64_t(x) - uint64_t(floor_divide(x, y)) * uint64_t(y));
}
inline int64_t fmod(int64_t x, int64_t y) {
  return int64_t(uint64_t(x) - uint64_t(trunc_divide(x, y)) * uint64_t(y));
}
inline uint64_t remainder(uint64_t x, uint64_t y) { return x - trunc_divide(x, y) * y; }
inline uint64_t fmod(uint64_t x, uint64_t y) { return remainder(x, y); }
template <class T>
inline T floor_divide(T x, T y) {
  // Python's rule: derived from the exact remainder, so that 1 // 0.1 is 9, not 10.
  T r = fmod(x, y);
  T q = (x - r) / y - ((r != T(0)) & ((r < T(0)) != (y < T(0))) ? T(1) : T(0));
  T rounded = floor(q);
  rounded = rounded + (q - rounded > T(0.5) ? T(1) : T(0));
  return y == T(0) ? x / y : (q == T(0) ? copysign(T(0), x / y) : rounded);
}
inline uint64_t pow(uint64_t base, uint64_t exponent) {
  uint64_t result = 1;
  for (; exponent; exponent >>= 1, base *= base)
    if (exponent & 1) result *= base;
  return result;
}
inline int64_t pow(int64_t base, int64_t exponent) {
  if (exponent < 0) return base == 1 ? 1 : base == -1 ? (exponent % 2 ? -1 : 1) : 0;
  return int64_t(pow(uint64_t(base), uint64_t(exponent)));
}

// A shift by the width of the type or more moves all bits out; by a negative number, too.
inline uint64_t left_shift(uint64_t x, uint64_t by) { return by > 63 ? 0 : x << by; }
inline int64_t left_shift(int64_t x, int64_t by) {
  return int64_t(left_shift(uint64_t(x), uint64_t(by)));
}
// What is as good as 64 bits when only 32 are kept.
inline int32_t left_shift(int32_t x, int32_t by) {
  return uint32_t(by) > 31 ? 0 : int32_t(uint32_t(x) << by);
}
inline int32_t right_shift(int32_t x, int32_t by) { return x >> (uint32_t(by) > 31 ? 31 : by); }
inline uint64_t right_shift(uint64_t x, uint64_t by) { return by > 63 ? 0 : x >> by; }
inline int64_t right_shift(int64_t x, int64_t by) { return x >> (uint64_t(by) > 63 ? 63 : by); }

namespace detail {
// There are no shifts of each byte by its own number, nor of 16 bits before AVX-512: by 1, 2, 4 and
// 8 places, as the bits of the number say.
template <class T>
inline T shift_left(T x, T by) {
  constexpr int kBits = 8 * sizeof(T);
  T once = by & 1 ? T(x << 1) : x;
  T twice = by & 2 ? T(once << 2) : once;
  T thrice = by & 4 ? T(twice << 4) : twice;
  T all = kBits > 8 && by & 8 ? T(thrice << 8) : thrice;
  return (by < 0) | (by >= kBits) ? T(0) : all;
}
template <class T>
inline T shift_right(T x, T by) {
  constexpr int kBits = 8 * sizeof(T);
  T emptied = x < 0 ? T(-1) : T(0);
  T once = by & 1 ? T(x >> 1) : x;
  T twice = by & 2 ? T(once >> 2) : once;
  T thrice = by & 4 ? T(twice >> 4) : twice;
  T all = kBits > 8 && by & 8 ? T(thrice >> 8) : thrice;
  return (by < 0) | (by >= kBits) ? emptied : all;
}
}  // namespace detail
inline uint8_t left_shift(uint8_t x, uint8_t by) { return detail::shift_left(x, by); }
inline int8_t left_shift(int8_t x, int8_t by) { return detail::shift_left(x, by); }
inline int16_t left_shift(int16_t x, int16_t by) { return detail::shift_left(x, by); }
inline uint8_t right_shift(uint8_t x, uint8_t by) { return detail::shift_right(x, by); }
inline int8_t right_shift(int8_t x, int8_t by) { return detail::shift_right(x, by); }
inline int16_t right_shift(int16_t x, int16_t by) { return detail::shift_right(x, by); }

// The derivative of lgamma: reflected to the right, moved up by eight, then by the asymptotic
// series with Bernoulli numbers (Abramowitz and Stegun 6.3.5, 6.3.7, 6.3.18). Without branches, so
// that loops are vectorized.
inline double digamma(double x) {
  constexpr double kPi = 3.141592653589793;
  bool reflects = x < 0;
  double a = reflects ? 1 - x : x;
  // 1 / a + ... + 1 / (a + 7) is above / below.
  double above = 1, below = a;
  for (int k = 1; k < 8; ++k) {
    above = above * (a + k) + below;
    below *= a + k;
  }
  bool moves = a < 8;
  double z = moves ? a + 8 : a, y = 1 / (z * z);
  double series =
      y * (1.0 / 12 -
           y * (1.0 / 120 -
                y * (1.0 / 252 -
                     y * (1.0 / 240 - y * (1.0 / 132 - y * (691.0 / 32760 - y * (1.0 / 12)))))));
  double result = log(z) - 0.5 / z - series - (moves ? above / below : 0);
  double reflected = result - kPi / tan(kPi * (x - round(x)));
  return reflects ? (x == floor(x) ? kNaN : reflected) : result;
}
// The derivative of digamma, by the same means (6.4.6, 6.4.7, 6.4.12), moved up by ten.
inline double trigamma(double x) {
  constexpr double kPi = 3.141592653589793;
  bool reflects = x < 0.5;
  double a = reflects ? 1 - x : x;
  // 1 / a^2 + ... + 1 / (a + 9)^2 is above / below^2.
  double above = 1, below = a;
  for (int k = 1; k < 10; ++k) {
    above = above * ((a + k) * (a + k)) + below * below;
    below *= a + k;
  }
  bool moves = a < 10;
  double z = moves ? a + 10 : a, y = 1 / (z * z);
  double series =
      y / z *
      (1.0 / 6 -
       y * (1.0 / 30 -
            y * (1.0 / 42 - y * (1.0 / 30 - y * (5.0 / 66 - y * (691.0 / 2730 - y * (7.0 / 6)))))));
  double result = 1 / z + y / 2 + series + (moves ? above / (below * below) : 0);
  double sine = sin(kPi * (x - round(x)));
  return reflects ? kPi * kPi / (sine * sine) - result : result;
}
inline float digamma(float x) { return float(digamma(double(x))); }
inline float trigamma(float x) { return float(trigamma(double(x))); }

#if RUSHLIGHT_ISA == 0
template <class T>
inline Complex<T> log2(Complex<T> z) {
  return log(z) * T(1.4426950408889634);
}
// Close to zero, |1 + z|^2 = 1 + x (2 + x) + y^2.
template <class T>
inline Complex<T> log1p(Complex<T> z) {
  T x = z.real(), y = z.imag();
  if (!(abs(x) < T(0.5) && abs(y) < T(0.5))) return log(T(1) + z);
  return {T(0.5) * log1p(x * (T(2) + x) + y * y), atan2(y, T(1) + x)};
}
// cos(y) = 1 - 2 sin(y / 2)^2.
template <class T>
inline Complex<T> expm1(Complex<T> z) {
  T x = z.real(), y = z.imag();
  if (!(abs(x) < T(1) && abs(y) < T(1))) return exp(z) - T(1);
  T half = sin(y * T(0.5));
  return {expm1(x) * cos(y) - T(2) * half * half, exp(x) * sin(y)};
}
// By the exponential that does not overflow.
template <class T>
inline Complex<T> sigmoid(Complex<T> z) {
  if (z.real() > T(0)) return T(1) / (T(1) + exp(-z));
  Complex<T> e = exp(z);
  return e / (T(1) + e);
}
template <class T>
inline Complex<T> exp2(Complex<T> z) {
  return exp(z * T(0.6931471805599453));
}
template <class T>
inline bool isnan(Complex<T> z) {
  return isnan(z.real()) || isnan(z.imag());
}
template <class T>
inline Complex<T> logaddexp(Complex<T> z, Complex<T> w) {
  Complex<T> larger = z.real() < w.real() ? w : z, smaller = z.real() < w.real() ? z : w;
  if (isnan(z) || isnan(w)) return z + w;
  if (smaller.real() == -T(kInfinity)) return larger;
  if (smaller.real() == T(kInfinity)) return log(exp(z) + exp(w));
  return larger + log1p(exp(smaller - larger));
}
template <class T>
inline bool isfinite(Complex<T> z) {
  return isfinite(z.real()) && isfinite(z.imag());
}
template <class T>
inline bool isinf(Complex<T> z) {
  return isinf(z.real()) || isinf(z.imag());
}
#endif

namespace detail {

template <class T>
struct IsComplex {
  static constexpr bool value = false;
};
#if RUSHLIGHT_ISA == 0
template <class T>
struct IsComplex<Complex<T>> {
  static constexpr bool value = true;
};
#endif

template <class A, class B>
inline constexpr bool kSame = false;
template <class A>
inline constexpr bool kSame<A, A> = true;

// What a formula gives: C++ makes an int of `bool & bool`.
template <class Result>
struct Given {
  using type = Result;
};
template <>
struct Given<int> {
  using type = bool;
};

}  // namespace detail
}  // namespace rushlight::RUSHLIGHT_ISA_NAMESPACE
