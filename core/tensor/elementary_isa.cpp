// Owns sin and cos of floats and doubles, and log of floats, for loops: compiled once per
// instruction set with vectors of fused products, each giving the vector forms that the compiler
// calls in the loops of that set, as it calls those of libmvec. Within 0.93 ulp, where libmvec's
// are within 4; the same bits in every set.
#include "core/tensor/vectors.h"

#if RUSHLIGHT_HAS_OWN_MATH
extern "C" {
float library_sinf(float) noexcept asm("sinf");
double library_sin(double) noexcept asm("sin");
float library_cosf(float) noexcept asm("cosf");
double library_cos(double) noexcept asm("cos");
}

namespace rushlight::RUSHLIGHT_ISA_NAMESPACE {
namespace {

template <class T, size_t n>
[[gnu::always_inline]] inline Vector<T> polynomial(Vector<T> x, const T (&coefficients)[n]) {
  Vector<T> sum = broadcast(coefficients[0]);
#pragma GCC unroll 16
  for (size_t i = 1; i < n; ++i) sum = multiply_add(sum, x, broadcast(coefficients[i]));
  return sum;
}

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
  const Bits sign = (Bits)x & (Bits)broadcast(T(-0.0)), magnitude = (Bits)x ^ sign;
  const Vector<T> of_magnitude = sine_of_magnitude<T, quarter>((Vector<T>)magnitude);
  const Vector<T> y = quarter ? of_magnitude : (Vector<T>)((Bits)of_magnitude ^ sign);
  if (any(magnitude >= (Bits)broadcast(Sine<T>::kMost))) [[unlikely]]
    return sine_with_large<T, quarter>(x, y);
  return y;
}

// log(x) = n ln 2 + log(1 + f) with 3/4 <= 1 + f < 3/2. kLog gives (log(1 + f) - f) / f^2 (Remez).
constexpr float kLog[] = {-0x1.7140c0p-5f, 0x1.ac90bcp-4f,  -0x1.0d8a8cp-3f,
                          0x1.28847cp-3f,  -0x1.54efdcp-3f, 0x1.9969b0p-3f,
                          -0x1.000040p-2f, 0x1.5555a4p-2f,  -0.5f};
constexpr float kLeastNormal = 0x1p-126f, kInfinite = __builtin_inff();

[[gnu::always_inline]] inline Vector<float> log_of_normal(Vector<float> x, Vector<float> more) {
  using Ints = Vector<int32_t>;
  const Ints bits = (Ints)x, exponent = (bits - 0x3f400000) >> 23;
  const Vector<float> n = __builtin_convertvector(exponent, Vector<float>) + more;
  const Vector<float> f = (Vector<float>)(bits - (exponent << 23)) - 1.0f;
  const Vector<float> small = multiply_add(n, broadcast(0x1.7f7d1cp-20f), f);
  const Vector<float> fraction = multiply_add(f * f, polynomial(f, kLog), small);
  return multiply_add(n, broadcast(0x1.62e400p-1f), fraction);
}
[[gnu::noinline]] Vector<float> log_of_any(Vector<float> x) {
  const Vector<float> zero{};
  const auto is_small = x < kLeastNormal;
  const Vector<float> lifted = is_small ? x * 0x1p23f : x;
  const Vector<float> y = log_of_normal(lifted, is_small ? zero - 23.0f : zero);
  const Vector<float> at_most_zero = x == 0.0f ? zero - kInfinite : zero + __builtin_nanf("");
  const Vector<float> below_infinity = x > 0.0f ? y : at_most_zero;
  return x < kInfinite ? below_infinity : x;
}
inline Vector<float> log_of_floats(Vector<float> x) {
  using Bits = VectorBits<float>;
  constexpr uint32_t kLeast = __builtin_bit_cast(uint32_t, kLeastNormal);
  constexpr uint32_t kCount = __builtin_bit_cast(uint32_t, kInfinite) - kLeast;
  if (any((Bits)x - kLeast >= kCount)) [[unlikely]]
    return log_of_any(x);
  return log_of_normal(x, Vector<float>{});
}

}  // namespace

// What formula.h declares: vector forms, and in one set, for all, those of single numbers and of
// the half vectors that loops over doubles and floats want.
#define RUSHLIGHT_FORMS(_)                     \
  _(sinf, FLOAT, float, sine<float, 0>)        \
  _(cosf, FLOAT, float, sine<float, 1>)        \
  _(logf, FLOAT, float, log_of_floats)         \
  _(sin, DOUBLE, double, sine<double, 0>)      \
  _(cos, DOUBLE, double, sine<double, 1>)
#define RUSHLIGHT_DEFINE(name, kind, T, ...)                                                    \
  Vector<T> name##_vector(Vector<T>) asm("_ZGV" RUSHLIGHT_##kind##_LANES "v_rushlight_" #name); \
  Vector<T> name##_vector(Vector<T> x) { return __VA_ARGS__(x); }
RUSHLIGHT_FORMS(RUSHLIGHT_DEFINE)
#undef RUSHLIGHT_DEFINE

#if RUSHLIGHT_ISA == 3
template <class T>
struct Half {
  static constexpr int kLanes = kWidth<T> / 2;
  typedef T Lanes __attribute__((vector_size(kLanes * sizeof(T))));
};
template <class T>
[[gnu::always_inline]] inline Vector<T> doubled(typename Half<T>::Lanes x) {
  Vector<T> both;
  for (int l = 0; l < kWidth<T>; ++l) both[l] = x[l % Half<T>::kLanes];
  return both;
}
#define RUSHLIGHT_HALF_FLOAT_LANES "bN4"
#define RUSHLIGHT_HALF_DOUBLE_LANES "bN2"
#define RUSHLIGHT_DEFINE(name, kind, T, ...)                                           \
  T name##_number(T) asm("rushlight_" #name);                                          \
  T name##_number(T x) { return __VA_ARGS__(broadcast(x))[0]; }                        \
  Half<T>::Lanes name##_half(Half<T>::Lanes) asm("_ZGV" RUSHLIGHT_HALF_##kind##_LANES  \
                                                 "v_rushlight_" #name);                \
  Half<T>::Lanes name##_half(Half<T>::Lanes x) {                                       \
    const Vector<T> y = __VA_ARGS__(doubled<T>(x));                                    \
    Half<T>::Lanes first;                                                              \
    __builtin_memcpy(&first, &y, sizeof first);                                        \
    return first;                                                                      \
  }
RUSHLIGHT_FORMS(RUSHLIGHT_DEFINE)
#undef RUSHLIGHT_DEFINE
#endif

}  // namespace rushlight::RUSHLIGHT_ISA_NAMESPACE
#endif
