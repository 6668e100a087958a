// Owns log, log2, log10, log1p, asinh, acosh and atanh of floats and doubles for loops
// (own_math.h), within 0.99 ulp.
#include "core/tensor/own_math.h"

#if RUSHLIGHT_HAS_OWN_MATH
namespace rushlight::RUSHLIGHT_ISA_NAMESPACE {
namespace {

// x is 2^n (1 + f) with sqrt(1/2) <= 1 + f < sqrt(2). For floats kRest gives (log(1 + f) - f) / f^2
// as a polynomial, and for doubles (log(1 + f) - 2 s) / s^3 as one in s^2 with s = f / (2 + f)
// (Remez).
template <class T>
struct Logarithm;
template <>
struct Logarithm<float> {
  static constexpr int kDigits = 23;
  static constexpr float kLeast = 0x1.6a09e6p-1f, kWhole = 0x1p23f;
  static constexpr float kRest[] = {-0x1.38b62p-4f,  0x1.055b92p-3f,  -0x1.0d8534p-3f,
                                    0x1.22da18p-3f,  -0x1.547246p-3f, 0x1.99a008p-3f,
                                    -0x1.000226p-2f, 0x1.555554p-2f,  -0.5f};
};
template <>
struct Logarithm<double> {
  static constexpr int kDigits = 52;
  static constexpr double kLeast = 0x1.6a09e667f3bcdp-1, kWhole = 0x1p52, kBias = 1023;
  static constexpr double kRest[] = {
      0x1.2f0450e6d8fe8p-3, 0x1.39a1db4309278p-3, 0x1.74663d63afa4p-3, 0x1.c71c52126a4aap-3,
      0x1.24924941e325ap-2, 0x1.999999997ff05p-2, 0x1.5555555555592p-1};
};

// The logarithm in a base is kUnit log(x), and that of 2 is kTwo, each with its rest.
template <class T>
struct Natural {
  static constexpr T kUnit = 1, kUnitRest = 0;
  static constexpr T kTwo = choose<T>(0x1.62e43p-1f, 0x1.62e42fefa39efp-1);
  static constexpr T kTwoRest = choose<T>(-0x1.05c61p-29f, 0x1.abc9e3b39803fp-56);
};
template <class T>
struct Binary {
  static constexpr T kUnit = choose<T>(0x1.715476p+0f, 0x1.71547652b82fep+0);
  static constexpr T kUnitRest = choose<T>(0x1.4ae0cp-26f, 0x1.777d0ffda0d24p-56);
  static constexpr T kTwo = 1, kTwoRest = 0;
};
template <class T>
struct Decimal {
  static constexpr T kUnit = choose<T>(0x1.bcb7b2p-2f, 0x1.bcb7b1526e50ep-2);
  static constexpr T kUnitRest = choose<T>(-0x1.5b235ep-27f, 0x1.95355baaafad3p-57);
  static constexpr T kTwo = choose<T>(0x1.344136p-2f, 0x1.34413509f79ffp-2);
  static constexpr T kTwoRest = choose<T>(-0x1.ec10cp-27f, -0x1.9dc1da994fd21p-59);
};

// x * factor + more
template <class T, T factor>
[[gnu::always_inline]] inline Vector<T> scaled_add(Vector<T> x, Vector<T> more) {
  if constexpr (factor == 0) return more;
  else if constexpr (factor == 1) return x + more;
  else return multiply_add(x, broadcast(factor), more);
}

// unit (log(1 + f) - f) + small
template <float unit>
[[gnu::always_inline]] inline Vector<float> log_rest(Vector<float> f, Vector<float> small) {
  return multiply_add(f, f * polynomial<float, unit>(f, Logarithm<float>::kRest), small);
}
template <double unit>
[[gnu::always_inline]] inline Vector<double> log_rest(Vector<double> f, Vector<double> small) {
  const Vector<double> half = f * 0.5 * f, s = f / (2 + f), square = s * s;
  const Vector<double> rest = polynomial(square, Logarithm<double>::kRest);
  return scaled_add<double, unit>(multiply_add(s, multiply_add(square, rest, half), -half), small);
}
// log(2^n (1 + f + low)), low being small beside f.
template <class T, class Base>
[[gnu::always_inline]] inline Vector<T> log_of_parts(Vector<T> n, Vector<T> f, Vector<T> low) {
  const Vector<T> small = scaled_add<T, Base::kUnitRest>(f, scaled_add<T, Base::kTwoRest>(n, low));
  const Vector<T> rest = log_rest<Base::kUnit>(f, small);
  return scaled_add<T, Base::kTwo>(n, scaled_add<T, Base::kUnit>(f, rest));
}

// x = 2^n fraction, and scale = 2^-n.
template <class T>
struct Parts {
  Vector<T> n, fraction, scale;
};
// Of normal positive numbers; the scale of those below kScalable.
template <class T>
[[gnu::always_inline]] inline Parts<T> split(Vector<T> x) {
  using L = Logarithm<T>;
  using Bits = VectorBits<T>;
  constexpr bool is_float = sizeof(T) == sizeof(float);
  static constexpr Int<T> kLeast = __builtin_bit_cast(Int<T>, L::kLeast);
  static constexpr Int<T> kOne = __builtin_bit_cast(Int<T>, T(1));
  static constexpr Int<T> kFraction = (Int<T>(1) << L::kDigits) - 1;
  static constexpr Int<T> kWhole = __builtin_bit_cast(Int<T>, L::kWhole);
  // Doubles keep the bias of the exponent, since AVX2 has no signed shifts of their size.
  static constexpr Int<T> kKept = is_float ? 0 : kOne;
  static constexpr Int<T> kShift = kKept - kLeast, kNegate = kKept + kOne;
  const Bits shifted = (Bits)x + load_constant(kShift);
  const Bits digits = shifted & load_constant(kFraction);
  const auto fraction = (Vector<T>)(digits + load_constant(kLeast));
  const auto scale = (Vector<T>)(load_constant(kNegate) - (shifted ^ digits));
  if constexpr (is_float) {
    const auto exponent = (Vector<int32_t>)shifted >> L::kDigits;
    return {__builtin_convertvector(exponent, Vector<T>), fraction, scale};
  } else {
    const Bits exponent = shifted >> L::kDigits | load_constant(kWhole);
    return {(Vector<T>)exponent - (L::kWhole + L::kBias), fraction, scale};
  }
}

template <class T>
constexpr T kLeastNormal = choose<T>(0x1p-126f, 0x1p-1022);
template <class T>
constexpr T kScalable = choose<T>(0x1p126f, 0x1p1022);
template <class T>
constexpr T kAboveMinusOne = choose<T>(-0x1.fffffep-1f, -0x1.fffffffffffffp-1);
template <class T>
constexpr T kInfinite = T(__builtin_inf());

template <class T, template <class> class Base>
[[gnu::noinline]] Vector<T> log_of_any(Vector<T> x) {
  using L = Logarithm<T>;
  const Vector<T> zero{};
  const auto is_small = x < kLeastNormal<T>;
  const Parts<T> parts = split<T>(is_small ? x * L::kWhole : x);
  const Vector<T> n = parts.n - (is_small ? zero + T(L::kDigits) : zero);
  const Vector<T> y = log_of_parts<T, Base<T>>(n, parts.fraction - 1, zero);
  const Vector<T> at_most_zero = x == 0 ? zero - kInfinite<T> : zero + T(__builtin_nan(""));
  const Vector<T> below_infinity = x > 0 ? y : at_most_zero;
  return x < kInfinite<T> ? below_infinity : x;
}
template <class T, template <class> class Base>
[[gnu::always_inline]] inline Vector<T> log_in(Vector<T> x) {
  if (!all_between(x, kLeastNormal<T>, kInfinite<T>)) [[unlikely]]
    return log_of_any<T, Base>(x);
  const Parts<T> parts = split<T>(x);
  return log_of_parts<T, Base<T>>(parts.n, parts.fraction - 1, Vector<T>{});
}

// log(1 + x + rest): 1 + x is 2^n (1 + f + low), where f is x itself for n = 0.
template <class T>
[[gnu::always_inline]] inline Vector<T> log1p_of_sum(Vector<T> x, Vector<T> rest) {
  const Parts<T> parts = split<T>(1 + x);
  const Vector<T> scale = parts.scale, shift = scale - 1;
  const Vector<T> f = multiply_add(x, scale, shift);
  const Vector<T> low = multiply_add(rest, scale, multiply_add(x, scale, shift - f));
  return log_of_parts<T, Natural<T>>(parts.n, f, multiply_add(-low, f, low));
}
template <class T>
[[gnu::always_inline]] inline Vector<T> log1p_inside(Vector<T> x) {
  const Vector<T> y = log1p_of_sum<T>(x, Vector<T>{});
  return (Vector<T>)((VectorBits<T>)y | sign_of<T>(x));
}
template <class T>
[[gnu::noinline]] Vector<T> log1p_of_any(Vector<T> x) {
  const auto inside = (x > -1) & (x < kScalable<T>);
  return inside ? log1p_inside<T>(x) : log_of_any<T, Natural>(1 + x);
}
template <class T>
[[gnu::always_inline]] inline Vector<T> log1p(Vector<T> x) {
  if (!all_between(x, kAboveMinusOne<T>, kScalable<T>)) [[unlikely]]
    return log1p_of_any<T>(x);
  return log1p_inside<T>(x);
}

// Exact where |a| >= |b|.
template <class T>
[[gnu::always_inline]] inline Sum<T> sum_of_ordered(Vector<T> a, Vector<T> b) {
  const Vector<T> high = a + b;
  return {high, a - high + b};
}
template <class T>
[[gnu::always_inline]] inline Sum<T> square(Vector<T> x) {
  const Vector<T> high = x * x;
  return {high, multiply_add(x, x, -high)};
}
template <class T>
[[gnu::always_inline]] inline Sum<T> root(const Sum<T>& x) {
  const Vector<T> high = square_root<T>(x.high);
  const Vector<T> rest = multiply_add(-high, high, x.high) + x.low;
  return {high, high > 0 ? rest / (high + high) : Vector<T>{}};
}
// above / below, not rounded to one number.
template <class T>
[[gnu::always_inline]] inline Sum<T> unrounded_quotient(const Sum<T>& above, const Sum<T>& below) {
  const Vector<T> inverse = 1 / below.high, high = above.high * inverse;
  const Vector<T> rest = multiply_add(-high, below.high, above.high);
  return {high, (rest + multiply_add(-high, below.low, above.low)) * inverse};
}

// From here on 1 beside the square of a number changes nothing.
template <class T>
constexpr T kWide = choose<T>(0x1p20f, 0x1p40);

template <class T>
[[gnu::always_inline]] inline Vector<T> log_of_double(Vector<T> x) {
  const Parts<T> parts = split<T>(x);
  return log_of_parts<T, Natural<T>>(parts.n + 1, parts.fraction - 1, Vector<T>{});
}

// log(x + sqrt(1 + x^2)) of x >= 0, as log(1 + x + x^2 / (1 + sqrt(1 + x^2))).
template <class T>
[[gnu::always_inline]] inline Vector<T> asinh_inside(Vector<T> x) {
  const Sum<T> squared = square<T>(x);
  const Vector<T> one = broadcast(T(1));
  const auto is_small = x < 1;
  Sum<T> under = sum_of_ordered<T>(is_small ? one : squared.high, is_small ? squared.high : one);
  under.low += squared.low;
  const Sum<T> hypotenuse = root<T>(under);
  Sum<T> below = sum_of_ordered<T>(hypotenuse.high, one);
  below.low += hypotenuse.low;
  const Sum<T> q = unrounded_quotient<T>(squared, below);
  const Sum<T> sum = sum_of_ordered<T>(x, q.high);
  return log1p_of_sum<T>(sum.high, sum.low + q.low);
}
template <class T>
[[gnu::noinline]] Vector<T> asinh_of_any(Vector<T> x) {
  const Vector<T> y = x < kWide<T> ? asinh_inside<T>(x) : log_of_double<T>(x);
  return x < kInfinite<T> ? y : x;
}
template <class T>
[[gnu::always_inline]] inline Vector<T> asinh(Vector<T> x) {
  const VectorBits<T> sign = sign_of<T>(x);
  const auto magnitude = (Vector<T>)((VectorBits<T>)x ^ sign);
  const Vector<T> y =
      all_below(magnitude, kWide<T>) ? asinh_inside<T>(magnitude) : asinh_of_any<T>(magnitude);
  return (Vector<T>)((VectorBits<T>)y ^ sign);
}

// log(x + sqrt(x^2 - 1)) of x >= 1, as log(1 + t + sqrt(2 t + t^2)) with t = x - 1.
template <class T>
[[gnu::always_inline]] inline Vector<T> acosh_inside(Vector<T> x) {
  const Vector<T> t = x - 1, twice = t + t;
  const Sum<T> squared = square<T>(t);
  const auto is_small = t < 2;
  Sum<T> under =
      sum_of_ordered<T>(is_small ? twice : squared.high, is_small ? squared.high : twice);
  under.low += squared.low;
  const Sum<T> leg = root<T>(under);
  const Sum<T> sum = sum_of_ordered<T>(leg.high, t);
  return log1p_of_sum<T>(sum.high, sum.low + leg.low);
}
template <class T>
[[gnu::noinline]] Vector<T> acosh_of_any(Vector<T> x) {
  const Vector<T> y = x < kWide<T> ? acosh_inside<T>(x) : log_of_double<T>(x);
  const Vector<T> finite = x < kInfinite<T> ? y : x;
  return x < 1 ? broadcast(T(__builtin_nan(""))) : finite;
}
template <class T>
[[gnu::always_inline]] inline Vector<T> acosh(Vector<T> x) {
  if (!all_between(x, T(1), kWide<T>)) [[unlikely]]
    return acosh_of_any<T>(x);
  return acosh_inside<T>(x);
}

// log(1 + 2 x / (1 - x)) / 2 of 0 <= x < 1
template <class T>
[[gnu::always_inline]] inline Vector<T> atanh_inside(Vector<T> x) {
  const Sum<T> below = sum_of_ordered<T>(broadcast(T(1)), -x);
  const Sum<T> q = unrounded_quotient<T>({x + x, Vector<T>{}}, below);
  return log1p_of_sum<T>(q.high, q.low) * T(0.5);
}
template <class T>
[[gnu::noinline]] Vector<T> atanh_of_any(Vector<T> x) {
  const Vector<T> y = atanh_inside<T>(x < 1 ? x : Vector<T>{});
  const Vector<T> outside = broadcast(T(__builtin_nan("")));
  const Vector<T> from_one = x == 1 ? broadcast(kInfinite<T>) : outside;
  return x < 1 ? y : from_one;
}
template <class T>
[[gnu::always_inline]] inline Vector<T> atanh(Vector<T> x) {
  const VectorBits<T> sign = sign_of<T>(x);
  const auto magnitude = (Vector<T>)((VectorBits<T>)x ^ sign);
  const Vector<T> y =
      all_below(magnitude, T(1)) ? atanh_inside<T>(magnitude) : atanh_of_any<T>(magnitude);
  return (Vector<T>)((VectorBits<T>)y ^ sign);
}

}  // namespace
RUSHLIGHT_FORMS(log, log_in, Natural)
RUSHLIGHT_FORMS(log2, log_in, Binary)
RUSHLIGHT_FORMS(log10, log_in, Decimal)
RUSHLIGHT_FORMS(log1p, log1p)
RUSHLIGHT_FORMS(asinh, asinh)
RUSHLIGHT_FORMS(acosh, acosh)
RUSHLIGHT_FORMS(atanh, atanh)
}  // namespace rushlight::RUSHLIGHT_ISA_NAMESPACE
#endif
