// Owns the elementary functions of formulas on CUDA, where the CPU has formula.h, and in what
// kernels compute; the rest of the vocabulary is the same text for both, formula_math.h and
// formula_special.h.
#pragma once

#include "core/device/device_types.cuh"

#define RUSHLIGHT_ISA 0
#define RUSHLIGHT_ISA_NAMESPACE on_cuda

namespace rushlight::on_cuda {

#define RUSHLIGHT_DEFINE(name)                        \
  inline float name(float x) { return ::name##f(x); } \
  inline double name(double x) { return ::name(x); }
RUSHLIGHT_DEFINE(exp2)
RUSHLIGHT_DEFINE(expm1)
RUSHLIGHT_DEFINE(log)
RUSHLIGHT_DEFINE(log2)
RUSHLIGHT_DEFINE(log10)
RUSHLIGHT_DEFINE(log1p)
RUSHLIGHT_DEFINE(sin)
RUSHLIGHT_DEFINE(cos)
RUSHLIGHT_DEFINE(tan)
RUSHLIGHT_DEFINE(asin)
RUSHLIGHT_DEFINE(acos)
RUSHLIGHT_DEFINE(atan)
RUSHLIGHT_DEFINE(sinh)
RUSHLIGHT_DEFINE(cosh)
RUSHLIGHT_DEFINE(tanh)
RUSHLIGHT_DEFINE(asinh)
RUSHLIGHT_DEFINE(acosh)
RUSHLIGHT_DEFINE(atanh)
RUSHLIGHT_DEFINE(erf)
RUSHLIGHT_DEFINE(erfc)
RUSHLIGHT_DEFINE(cbrt)
RUSHLIGHT_DEFINE(sqrt)
RUSHLIGHT_DEFINE(floor)
RUSHLIGHT_DEFINE(ceil)
RUSHLIGHT_DEFINE(trunc)
RUSHLIGHT_DEFINE(lgamma)
#undef RUSHLIGHT_DEFINE
#define RUSHLIGHT_DEFINE(name)                                    \
  inline float name(float x, float y) { return ::name##f(x, y); } \
  inline double name(double x, double y) { return ::name(x, y); }
RUSHLIGHT_DEFINE(pow)
RUSHLIGHT_DEFINE(atan2)
RUSHLIGHT_DEFINE(hypot)
RUSHLIGHT_DEFINE(fmod)
RUSHLIGHT_DEFINE(copysign)
#undef RUSHLIGHT_DEFINE

inline float multiply_add(float x, float y, float z) { return ::fmaf(x, y, z); }
inline double multiply_add(double x, double y, double z) { return ::fma(x, y, z); }

inline float round(float x) { return ::rintf(x); }
inline double round(double x) { return ::rint(x); }
inline float abs(float x) { return ::fabsf(x); }
inline double abs(double x) { return ::fabs(x); }

float exp(float x);  // in formula_math.h
double exp(double x);

// What kernels compute in where the elements are T: float, for all but double.
template <class T>
struct ComputeOf {
  using type = float;
};
template <>
struct ComputeOf<double> {
  using type = double;
};

// NVRTC is told to fuse no product with a sum.
inline float rounded(float x) { return x; }
inline double rounded(double x) { return x; }

// A complex number is loaded as one word.
template <class T>
inline constexpr int kComplexAlignment = 2 * sizeof(T);

}  // namespace rushlight::on_cuda

#include "core/tensor/complex.cuh"
#include "core/tensor/formula_math.h"
#include "core/tensor/formula_special.h"
