// Owns sin and cos of floats and doubles for loops (own_math.h), within 0.9 ulp.
#include "core/tensor/own_math.h"

#if RUSHLIGHT_HAS_OWN_MATH
extern "C" {
float library_sinf(float) noexcept asm("sinf");
double library_sin(double) noexcept asm("sin");
float library_cosf(float) noexcept asm("cosf");
double library_cos(double) noexcept asm("cos");
}

namespace rushlight::RUSHLIGHT_ISA_NAMESPACE {
namespace {

// pi / 2 is kFirst + kSecond + kThird. kSine gives (sin(r) - r) / r^3 and kCosine gives
// (cos(r) - 1 + r^2 / 2) / r^4, as polynomials in r^2 for |r| <= pi / 4 (Remez).
template <class T>
struct Sine;
template <>
struct Sine<float> {
  static constexpr float kRound = 0x1.8p23f, kMost = 0x1p17f, kTwoOverPi = 0x1.45f306p-1f;
  static constexpr float kFirst = 0x1.921fb6p+0f, kSecond = -0x1.777a5cp-25f;
  static constexpr float kThird = -0x1.ee59dap-50f;
  static constexpr float kSine[] = {-0x1.994eb2p-13f, 0x1.110760p-7f, -0x1.555546p-3f};
  static constexpr float kCosine[] = {0x1.99e9f8p-16f, -0x1.6c0c2ep-10f, 0x1.55554ap-5f};
};
template <>
struct Sine<double> {
  static constexpr double kRound = 0x1.8p52, kMost = 0x1p40, kTwoOverPi = 0x1.45f306dc9c883p-1;
  static constexpr double kFirst = 0x1.921fb54442d18p+0, kSecond = 0x1.1a62633145c07p-54;
  static constexpr double kThird = -0x1.f1976b7ed8fbcp-110;
  static constexpr double kSine[] = {0x1.5d932f0216956p-33, -0x1.ae5e66d3ffc42p-26,
                                     0x1.71de357873557p-19, -0x1.a01a019c126a0p-13,
                                     0x1.111111110f881p-7,  -0x1.5555555555549p-3};
  static constexpr double kCosine[] = {-0x1.8fa3ed1c714ffp-37, 0x1.1ee9d65c45f76p-29,
                                       -0x1.27e4f7e8b9051p-22, 0x1.a01a019c8161dp-16,
                                       -0x1.6c16c16c14f72p-10, 0x1.555555555554bp-5};
};

// sin(magnitude + quarter * pi / 2) for magnitudes below kMost. They are n quarter turns and
// r + low, where low is what rounding r and the product with kSecond lost (Dekker 1971).
template <class T, int quarter>
[[gnu::always_inline]] inline Vector<T> sine_of_magnitude(Vector<T> magnitude) {
  using Constants = Sine<T>;
  using Bits = VectorBits<T>;
  const Vector<T> shifted =
      multiply_add(magnitude, broadcast(Constants::kTwoOverPi), broadcast(Constants::kRound));
  const Vector<T> n = shifted - Constants::kRound;
  const Vector<T> near = multiply_add(n, broadcast(-Constants::kFirst), magnitude);
  const Vector<T> second = broadcast(Constants::kSecond), product = n * second;
  const Vector<T> r = near - product;
  const Vector<T> lost = (near - r) - product - multiply_add(n, second, -product);
  const Vector<T> low = multiply_add(n, broadcast(-Constants::kThird), lost);
  const Vector<T> square = r * r, minus_half = broadcast(T(-0.5));
  const Vector<T> sine = r + multiply_add(r * square, polynomial(square, Constants::kSine), low);
  const Vector<T> most = multiply_add(square, minus_half, broadcast(T(1)));
  const Vector<T> most_rest = multiply_add(-r, low, multiply_add(square, minus_half, 1 - most));
  const Vector<T> cosine =
      most + multiply_add(square * square, polynomial(square, Constants::kCosine), most_rest);
  const Bits turns = (Bits)shifted + quarter;
  const Vector<T> either = (turns & 1) != 0 ? cosine : sine;
  return (Vector<T>)((Bits)either ^ (turns >> 1 << (8 * sizeof(T) - 1)));
}

template <int quarter>
inline float by_library(float x) {
  return quarter ? library_cosf(x) : library_sinf(x);
}
template <int quarter>
inline double by_library(double x) {
  return quarter ? library_cos(x) : library_sin(x);
}
// The library looks at all digits of pi that a large angle needs.
template <class T, int quarter>
[[gnu::noinline]] Vector<T> sine_with_large(Vector<T> x, Vector<T> y) {
  for (int l = 0; l < kWidth<T>; ++l)
    if (!(abs(x[l]) < Sine<T>::kMost)) y[l] = by_library<quarter>(x[l]);
  return y;
}

template <class T, int quarter>
[[gnu::always_inline]] inline Vector<T> sine(Vector<T> x) {
  using Bits = VectorBits<T>;
  const Bits sign = sign_of<T>(x);
  const auto magnitude = (Vector<T>)((Bits)x ^ sign);
  const Vector<T> of_magnitude = sine_of_magnitude<T, quarter>(magnitude);
  const Vector<T> y = quarter ? of_magnitude : (Vector<T>)((Bits)of_magnitude ^ sign);
  return all_below(magnitude, Sine<T>::kMost) ? y : sine_with_large<T, quarter>(x, y);
}

}  // namespace
RUSHLIGHT_FORMS(sin, sine, 0)
RUSHLIGHT_FORMS(cos, sine, 1)
}  // namespace rushlight::RUSHLIGHT_ISA_NAMESPACE
#endif
