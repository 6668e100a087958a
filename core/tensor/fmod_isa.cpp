// Owns fmod of floats and doubles for loops: compiled once per instruction set, each giving the
// vector form that the compiler calls in the loops of that set, as it calls those of libmvec. Exact
// in every form, so that no element depends on its place.
#include "core/tensor/vectors.h"

namespace rushlight::RUSHLIGHT_ISA_NAMESPACE {
namespace {

inline float exactly(float x, float y, float z) { return __builtin_fmaf(x, y, z); }  // x * y + z
inline double exactly(double x, double y, double z) { return __builtin_fma(x, y, z); }
inline float by_library(float x, float y) { return __builtin_fmodf(x, y); }
inline double by_library(double x, double y) { return __builtin_fmod(x, y); }

template <class T>
constexpr T kMostWhole = sizeof(T) == sizeof(float) ? T(0x1p24) : T(0x1p53);

// Where the quotient is small enough to be cut to a whole number, that is right or, when rounding
// made the quotient whole, one too many; and what is left is a number of the type T. The library's
// way, bit by bit, is for the others: rare is set to ones there.
template <class T>
[[gnu::always_inline]] inline T fmod_unless_rare(T x, T y, auto& rare) {
  const T a = abs(x), b = abs(y), quotient = a / b;
  rare = !(quotient < kMostWhole<T>) | !(b < T(__builtin_inf())) ? -1 : 0;
  const T rest = exactly(-trunc(quotient), b, a);
  return copysign(rest + where_true(rest < T(0), b), x);
}

template <class T, class Bits>
inline T fmod_scalar(T x, T y) {
  Bits rare;
  T result = fmod_unless_rare(x, y, rare);
  return rare ? by_library(x, y) : result;
}

template <class T, class Bits>
[[gnu::always_inline]] inline Vector<T> fmod_vector(Vector<T> x, Vector<T> y) {
  T in[kWidth<T>], by[kWidth<T>], out[kWidth<T>];
  store_vector(in, x);
  store_vector(by, y);
  Bits any = 0;
#pragma omp simd reduction(| : any)
  for (int l = 0; l < kWidth<T>; ++l) {
    Bits rare;
    out[l] = fmod_unless_rare(in[l], by[l], rare);
    any |= rare;
  }
  if (any)
    for (int l = 0; l < kWidth<T>; ++l) out[l] = by_library(in[l], by[l]);
  return load_vector(out);
}

}  // namespace

// What formula.h declares.
#if RUSHLIGHT_ISA == 0
float fmod_number(float x, float y) asm("rushlight_fmodf");
float fmod_number(float x, float y) { return fmod_scalar<float, int32_t>(x, y); }
double fmod_number(double x, double y) asm("rushlight_fmod");
double fmod_number(double x, double y) { return fmod_scalar<double, int64_t>(x, y); }
#endif

Vector<float> fmod_numbers(Vector<float> x,
                           Vector<float> y) asm("_ZGV" RUSHLIGHT_FLOAT_LANES "vv_rushlight_fmodf");
Vector<float> fmod_numbers(Vector<float> x, Vector<float> y) {
  return fmod_vector<float, int32_t>(x, y);
}
Vector<double> fmod_numbers(Vector<double> x, Vector<double> y) asm("_ZGV" RUSHLIGHT_DOUBLE_LANES
                                                                    "vv_rushlight_fmod");
Vector<double> fmod_numbers(Vector<double> x, Vector<double> y) {
  return fmod_vector<double, int64_t>(x, y);
}

}  // namespace rushlight::RUSHLIGHT_ISA_NAMESPACE
