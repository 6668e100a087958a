// Owns atan, atan2, asin and acos of floats and doubles for loops (own_math.h), within 0.84 ulp.
#include "core/tensor/own_math.h"

#if RUSHLIGHT_HAS_OWN_MATH
namespace rushlight::RUSHLIGHT_ISA_NAMESPACE {
namespace {

// pi / 2 is kQuarter + kQuarterRest. kAtan gives (atan(t) - t) / t^3 for |t| <= 3/5 and kAsin gives
// (asin(t) - t) / t^3 for |t| <= 1/2, as polynomials in t^2 (Remez).
template <class T>
struct Arctangent;
template <>
struct Arctangent<float> {
  static constexpr int kDigits = 23;
  static constexpr float kLeast = 0x1p-100f, kMost = 0x1p125f;
  static constexpr float kQuarter = 0x1.921fb6p+0f, kQuarterRest = -0x1.777a5cp-25f;
  static constexpr float kAtan[] = {0x1.e313ccp-6f,  -0x1.281cccp-4f, 0x1.b6b8ccp-4f,
                                    -0x1.23a3e4p-3f, 0x1.998cdep-3f,  -0x1.555538p-2f};
  static constexpr float kAsin[] = {0x1.595c58p-5f, 0x1.8c3e54p-6f, 0x1.747bb8p-5f, 0x1.330204p-4f,
                                    0x1.5555c8p-3f};
};
template <>
struct Arctangent<double> {
  static constexpr int kDigits = 52;
  static constexpr double kLeast = 0x1p-900, kMost = 0x1p1021;
  static constexpr double kQuarter = 0x1.921fb54442d18p+0, kQuarterRest = 0x1.1a62633145c07p-54;
  static constexpr double kAtan[] = {
      0x1.e4bf6cf695c42p-9, -0x1.c8e9c6fb13fbep-7, 0x1.bcf7f8e694b29p-6, -0x1.395406255ab29p-5,
      0x1.79499525ea89cp-5, -0x1.ac57c3f06c6f3p-5, 0x1.e16dd1b3a726ep-5, -0x1.110a4b0dbbbc7p-4,
      0x1.3b13218edf66bp-4, -0x1.745d0f1af5f2fp-4, 0x1.c71c7179dc3cfp-4, -0x1.24924923b905p-3,
      0x1.99999999972e9p-3, -0x1.5555555555542p-2};
  static constexpr double kAsin[] = {
      0x1.057179db3667bp-5, -0x1.09de9a00446e4p-6, 0x1.3ffbb144ac0e4p-6, 0x1.abc5835600d15p-8,
      0x1.8ec411ed4e29ap-7, 0x1.c6fd99f17bafbp-7,  0x1.1c6be38297b4p-6,  0x1.6e89f423b1f55p-6,
      0x1.f1c72c39ff1b2p-6, 0x1.6db6db4277dd9p-5,  0x1.333333336e833p-4, 0x1.555555555539p-3};
};

template <class T>
[[gnu::always_inline]] inline Vector<T> copy_sign(Vector<T> magnitude, Vector<T> sign) {
  return (Vector<T>)((VectorBits<T>)magnitude | sign_of<T>(sign));
}
// 1 / x within 6 %, from the bits of normal numbers.
template <class T>
[[gnu::always_inline]] inline Vector<T> rough_reciprocal(Vector<T> x) {
  static constexpr Int<T> kUnit = Int<T>(1) << Arctangent<T>::kDigits;
  static constexpr Int<T> kLine = 2 * __builtin_bit_cast(Int<T>, T(1)) - kUnit / 10;
  return (Vector<T>)(load_constant(kLine) - (VectorBits<T>)x);
}

// quarters pi / 2 + factor (t + rest), where factor is a power of 2 of any sign.
template <class T>
[[gnu::always_inline]] inline Vector<T> add_quarters(Vector<T> quarters, Vector<T> factor,
                                                     Vector<T> t, Vector<T> rest) {
  const Vector<T> turned = quarters * Arctangent<T>::kQuarter;
  const Vector<T> sum = multiply_add(factor, t, turned);
  const Vector<T> lost = multiply_add(factor, t, turned - sum);
  const Vector<T> low = multiply_add(quarters, broadcast(Arctangent<T>::kQuarterRest), lost);
  return sum + multiply_add(factor, rest, low);
}

// atan(t + low) - t
template <class T>
[[gnu::always_inline]] inline Vector<T> atan_rest(Vector<T> t, Vector<T> low) {
  const Vector<T> square = t * t;
  return multiply_add(t * square, polynomial(square, Arctangent<T>::kAtan), low);
}

// From 3/5 on, atan(x) is pi / 4 + atan((x - 1) / (x + 1)), and from 5/3 on pi / 2 - atan(1 / x).
template <class T>
[[gnu::always_inline]] inline Vector<T> atan(Vector<T> x) {
  const VectorBits<T> sign = sign_of<T>(x);
  const auto magnitude = (Vector<T>)((VectorBits<T>)x ^ sign);
  const auto is_middle = magnitude > T(0.6), is_large = magnitude > T(5.0 / 3);
  const Vector<T> zero{}, half = broadcast(T(0.5)), one = broadcast(T(1));
  const Vector<T> above = (is_large ? zero : magnitude) - (is_middle ? one : zero);
  const Vector<T> below = (is_middle ? magnitude : zero) + (is_large ? zero : one);
  const Vector<T> quarters = (is_middle ? half : zero) + (is_large ? half : zero);
  const Vector<T> t = above / below;
  const Vector<T> y = add_quarters<T>(quarters, one, t, atan_rest<T>(t, zero));
  return (Vector<T>)((VectorBits<T>)y ^ sign);
}

// Where the larger magnitude, high, is from kLeast to kMost. The angle from the nearer axis, whose
// tangent is at most 1, is turned to be that from the positive one.
template <class T>
[[gnu::always_inline]] inline Vector<T> atan2_inside(Vector<T> y, Vector<T> x, Vector<T>& high) {
  using Bits = VectorBits<T>;
  const Bits y_sign = sign_of<T>(y), x_sign = sign_of<T>(x);
  const auto a = (Vector<T>)((Bits)y ^ y_sign), b = (Vector<T>)((Bits)x ^ x_sign);
  const auto is_steep = a > b;
  const Vector<T> zero{}, half = broadcast(T(0.5)), one = broadcast(T(1));
  const Vector<T> low = b < a ? b : a;
  high = a > b ? a : b;
  const auto is_middle = low > high * T(0.6);
  const Vector<T> above = low - (is_middle ? high : zero), below = high + (is_middle ? low : zero);
  const Vector<T> t = above / below;
  const Vector<T> rounding = multiply_add(-t, below, above) * rough_reciprocal<T>(below);
  const Vector<T> lost = multiply_add(-rounding, t * t, rounding);  // nearly divided by 1 + t^2
  const auto steep = (Vector<T>)((Bits)one ^ (Bits)(is_steep ? broadcast(T(-0.0)) : zero));
  const auto ahead = (Vector<T>)((Bits)one | x_sign);
  const Vector<T> to_y = (is_middle ? half : zero) * steep + (is_steep ? one : zero);
  const Vector<T> quarters = multiply_add(to_y, ahead, 1 - ahead);
  const Vector<T> angle = add_quarters<T>(quarters, steep * ahead, t, atan_rest<T>(t, lost));
  return (Vector<T>)((Bits)angle ^ y_sign);
}
// In place of zeros and infinities come ones of the same direction, and large and small numbers are
// scaled.
template <class T>
[[gnu::noinline]] Vector<T> atan2_of_any(Vector<T> y, Vector<T> x) {
  using A = Arctangent<T>;
  const Vector<T> zero{}, one = broadcast(T(1)), infinite = broadcast(T(__builtin_inf()));
  const Vector<T> a = y < 0 ? -y : y, b = x < 0 ? -x : x;
  Vector<T> high = a > b ? a : b;
  const Vector<T> scale = high < A::kLeast ? 1 / broadcast(A::kLeast) : broadcast(A::kLeast);
  const auto is_inside = (high >= A::kLeast) & (high < A::kMost);
  y *= is_inside ? one : scale;
  x *= is_inside ? one : scale;
  const auto is_infinite = (high == infinite) & (y == y);
  y = is_infinite ? copy_sign<T>(a == infinite ? one : zero, y) : y;
  x = is_infinite ? copy_sign<T>(b == infinite ? one : zero, x) : x;
  x = high == 0 ? copy_sign<T>(one, x) : x;
  return atan2_inside<T>(y, x, high);
}
template <class T>
[[gnu::always_inline]] inline Vector<T> atan2(Vector<T> y, Vector<T> x) {
  using A = Arctangent<T>;
  Vector<T> high;
  const Vector<T> angle = atan2_inside<T>(y, x, high);
  return all_between(high, A::kLeast, A::kMost) ? angle : atan2_of_any<T>(y, x);
}

// asin(x) is x up to 1/2 and pi / 2 - 2 asin(sqrt((1 - x) / 2)) above.
template <class T, bool is_acos>
[[gnu::always_inline]] inline Vector<T> asin_or_acos(Vector<T> x) {
  const VectorBits<T> sign = sign_of<T>(x);
  const auto magnitude = (Vector<T>)((VectorBits<T>)x ^ sign);
  const auto is_large = magnitude > T(0.5);
  const Vector<T> zero{}, one = broadcast(T(1));
  const Vector<T> square = is_large ? multiply_add(magnitude, broadcast(T(-0.5)), broadcast(T(0.5)))
                                    : magnitude * magnitude;
  const Vector<T> root = square_root<T>(square);
  const Vector<T> lost = multiply_add(-root, root, square) * rough_reciprocal<T>(root + root);
  const Vector<T> t = is_large ? root : magnitude;
  const Vector<T> rest =
      multiply_add(t * square, polynomial(square, Arctangent<T>::kAsin), is_large ? lost : zero);
  if constexpr (is_acos) {
    const auto factor = (Vector<T>)((VectorBits<T>)(is_large ? one + one : -one) ^ sign);
    const Vector<T> of_large = x < 0 ? one + one : zero;
    return add_quarters<T>(is_large ? of_large : one, factor, t, rest);
  } else {
    const Vector<T> y =
        add_quarters<T>(is_large ? one : zero, is_large ? -one - one : one, t, rest);
    return (Vector<T>)((VectorBits<T>)y ^ sign);
  }
}
template <class T>
[[gnu::always_inline]] inline Vector<T> asin(Vector<T> x) {
  return asin_or_acos<T, false>(x);
}
template <class T>
[[gnu::always_inline]] inline Vector<T> acos(Vector<T> x) {
  return asin_or_acos<T, true>(x);
}

}  // namespace
RUSHLIGHT_FORMS(atan, atan)
RUSHLIGHT_FORMS_2(atan2, atan2)
RUSHLIGHT_FORMS(asin, asin)
RUSHLIGHT_FORMS(acos, acos)
}  // namespace rushlight::RUSHLIGHT_ISA_NAMESPACE
#endif
