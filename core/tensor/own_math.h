// Owns what the files with our own elementary functions share (trigonometry_isa.cpp,
// logarithm_isa.cpp, exponential_isa.cpp, arctangent_isa.cpp): how a function of vectors becomes
// the forms that formula.h declares, and polynomials.
//
// Every function gives the same bits in all instruction sets with fused products.
#pragma once

#include "core/tensor/vectors.h"

#if RUSHLIGHT_HAS_OWN_MATH

// The vector form, which the compiler calls in the loops of its set, as it calls those of libmvec;
// and in one set, for all, the forms for single numbers and for the half vectors that loops over
// doubles and floats want.
#if RUSHLIGHT_ISA == 3
#define RUSHLIGHT_FORM(name, kind, T, ...)                                                    \
  RUSHLIGHT_VECTOR_FORM(name, kind, T, __VA_ARGS__)                                           \
  T name##_number(T) asm("rushlight_" #name);                                                 \
  T name##_number(T x) { return __VA_ARGS__(broadcast(x))[0]; }                               \
  HalfVector<T> name##_half(HalfVector<T>) asm("_ZGV" RUSHLIGHT_HALF_##kind##_LANES           \
                                               "v_rushlight_" #name);                         \
  HalfVector<T> name##_half(HalfVector<T> x) { return first_half<T>(__VA_ARGS__(doubled<T>(x))); }
#define RUSHLIGHT_FORM_2(name, kind, T, ...)                                                  \
  RUSHLIGHT_VECTOR_FORM_2(name, kind, T, __VA_ARGS__)                                         \
  T name##_number(T, T) asm("rushlight_" #name);                                              \
  T name##_number(T x, T y) { return __VA_ARGS__(broadcast(x), broadcast(y))[0]; }            \
  HalfVector<T> name##_half(HalfVector<T>, HalfVector<T>) asm(                                \
      "_ZGV" RUSHLIGHT_HALF_##kind##_LANES "vv_rushlight_" #name);                            \
  HalfVector<T> name##_half(HalfVector<T> x, HalfVector<T> y) {                               \
    return first_half<T>(__VA_ARGS__(doubled<T>(x), doubled<T>(y)));                          \
  }
#define RUSHLIGHT_HALF_FLOAT_LANES "bN4"
#define RUSHLIGHT_HALF_DOUBLE_LANES "bN2"
#else
#define RUSHLIGHT_FORM RUSHLIGHT_VECTOR_FORM
#define RUSHLIGHT_FORM_2 RUSHLIGHT_VECTOR_FORM_2
#endif
#define RUSHLIGHT_VECTOR_FORM(name, kind, T, ...)                                               \
  Vector<T> name##_vector(Vector<T>) asm("_ZGV" RUSHLIGHT_##kind##_LANES "v_rushlight_" #name); \
  Vector<T> name##_vector(Vector<T> x) { return __VA_ARGS__(x); }
#define RUSHLIGHT_VECTOR_FORM_2(name, kind, T, ...)                                   \
  Vector<T> name##_vector(Vector<T>, Vector<T>) asm("_ZGV" RUSHLIGHT_##kind##_LANES   \
                                                    "vv_rushlight_" #name);           \
  Vector<T> name##_vector(Vector<T> x, Vector<T> y) { return __VA_ARGS__(x, y); }
// function<T, ...> in both types.
#define RUSHLIGHT_FORMS(name, function, ...)                                         \
  RUSHLIGHT_FORM(name##f, FLOAT, float, function<float __VA_OPT__(, ) __VA_ARGS__>)  \
  RUSHLIGHT_FORM(name, DOUBLE, double, function<double __VA_OPT__(, ) __VA_ARGS__>)
#define RUSHLIGHT_FORMS_2(name, function)                  \
  RUSHLIGHT_FORM_2(name##f, FLOAT, float, function<float>) \
  RUSHLIGHT_FORM_2(name, DOUBLE, double, function<double>)

namespace rushlight::RUSHLIGHT_ISA_NAMESPACE {

namespace detail {
template <class T>
struct HalfVectorOf {
  typedef T type __attribute__((vector_size(kWidth<T> / 2 * sizeof(T))));
};
}  // namespace detail
template <class T>
using HalfVector = typename detail::HalfVectorOf<T>::type;
template <class T>
[[gnu::always_inline]] inline Vector<T> doubled(HalfVector<T> x) {
  Vector<T> both;
  for (int l = 0; l < kWidth<T>; ++l) both[l] = x[l % (kWidth<T> / 2)];
  return both;
}
template <class T>
[[gnu::always_inline]] inline HalfVector<T> first_half(Vector<T> x) {
  HalfVector<T> first;
  __builtin_memcpy(&first, &x, sizeof first);
  return first;
}

template <class T>
constexpr T choose(float of_floats, double of_doubles) {
  return sizeof(T) == sizeof(float) ? T(of_floats) : T(of_doubles);
}

// A number in all lanes, from memory: GCC would move integers over from general registers, which
// takes the place of a vector instruction.
template <class T>
[[gnu::always_inline]] inline Vector<T> load_constant(const T& x) {
  const T* from = &x;
  asm("" : "+r"(from));
  return broadcast(*from);
}

// An integer as wide as T.
template <class T>
using Int = typename detail::BitsOf<sizeof(T)>::type;

template <class T>
[[gnu::always_inline]] inline VectorBits<T> sign_of(Vector<T> x) {
  static constexpr T kSign = T(-0.0);
  return (VectorBits<T>)x & (VectorBits<T>)load_constant(kSign);
}

template <class T>
[[gnu::always_inline]] inline Vector<T> square_root(Vector<T> x) {
  Vector<T> y;
  for (int l = 0; l < kWidth<T>; ++l) y[l] = sqrt(x[l]);
  return y;
}

// high + low, not rounded to one number.
template <class T>
struct Sum {
  Vector<T> high, low;
};
// above / below, by one division and its rest.
template <class T>
[[gnu::always_inline]] inline Vector<T> quotient(const Sum<T>& above, const Sum<T>& below) {
  const Vector<T> inverse = 1 / (below.high + below.low);
  const Vector<T> q = (above.high + above.low) * inverse;
  const Vector<T> rest =
      multiply_add(-q, below.high, above.high) + multiply_add(-q, below.low, above.low);
  return multiply_add(rest, inverse, q);
}

// Whether all lanes are below the bound; and at least the other.
#if RUSHLIGHT_ISA == 4
[[gnu::always_inline]] inline bool all_below(Vector<float> x, float bound) {
  return _mm512_cmp_ps_mask((__m512)x, (__m512)broadcast(bound), _CMP_NLT_UQ) == 0;
}
[[gnu::always_inline]] inline bool all_below(Vector<double> x, double bound) {
  return _mm512_cmp_pd_mask((__m512d)x, (__m512d)broadcast(bound), _CMP_NLT_UQ) == 0;
}
[[gnu::always_inline]] inline bool all_between(Vector<float> x, float least, float bound) {
  const __mmask16 some = _mm512_cmp_ps_mask((__m512)x, (__m512)broadcast(least), _CMP_GE_OQ);
  return _mm512_mask_cmp_ps_mask(some, (__m512)x, (__m512)broadcast(bound), _CMP_LT_OQ) == 0xffff;
}
[[gnu::always_inline]] inline bool all_between(Vector<double> x, double least, double bound) {
  const __mmask8 some = _mm512_cmp_pd_mask((__m512d)x, (__m512d)broadcast(least), _CMP_GE_OQ);
  return _mm512_mask_cmp_pd_mask(some, (__m512d)x, (__m512d)broadcast(bound), _CMP_LT_OQ) == 0xff;
}
#else
[[gnu::always_inline]] inline bool all(Vector<int32_t> mask) {
  return _mm256_movemask_ps((__m256)mask) == 0xff;
}
[[gnu::always_inline]] inline bool all(Vector<int64_t> mask) {
  return _mm256_movemask_pd((__m256d)mask) == 0xf;
}
[[gnu::always_inline]] inline bool all_below(auto x, auto bound) { return all(x < bound); }
[[gnu::always_inline]] inline bool all_between(auto x, auto least, auto bound) {
  return all((x >= least) & (x < bound));
}
#endif

// The coefficients, each times factor, begin with the highest power's. Horner's rule, for even and
// odd powers, which need not wait for each other, where there are many.
template <class T, T factor = T(1), size_t n>
[[gnu::always_inline]] inline Vector<T> polynomial(Vector<T> x, const T (&coefficients)[n]) {
  constexpr size_t kChains = n < 10 ? 1 : 2;
  Vector<T> sums[kChains], power = kChains == 1 ? x : x * x;
#pragma GCC unroll 32
  for (size_t i = 0; i < n; ++i) {
    const Vector<T> coefficient = broadcast(coefficients[i] * factor);
    Vector<T>& sum = sums[i % kChains];
    sum = i < kChains ? coefficient : multiply_add(sum, power, coefficient);
  }
  if constexpr (kChains == 1) return sums[0];
  else return multiply_add(sums[n % 2], x, sums[1 - n % 2]);
}

}  // namespace rushlight::RUSHLIGHT_ISA_NAMESPACE
#endif
