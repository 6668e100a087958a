// Declares the vectorized loops behind the normalizations, compiled once per instruction set.
//
// Sums are taken over at most kNormRun elements (or rows) in the element type; callers add such
// parts in double, so that long sums keep their digits.
#pragma once

#include "core/tensor/loops.h"

namespace rushlight {

inline constexpr int64_t kNormRun = 1024;

template <class T>
struct NormLoopsOf {
  // Over a run of n elements that share one mean.
  T (*sum)(const T* x, int64_t n);
  T (*squares)(const T* x, T mean, int64_t n);  // of x - mean
  // Of g, and of g * (x - mean).
  void (*grad_sums)(const T* g, const T* x, T mean, int64_t n, T* sum, T* dot);

  // Over `rows` rows of n columns that have one mean each; sums are added to `into`.
  void (*column_sum)(const T* x, int64_t rows, int64_t n, T* into);
  void (*column_moments)(const T* x, const T* shift, int64_t rows, int64_t n, T* sum,
                         T* squares);  // of x - shift
  void (*column_grad_sums)(const T* g, const T* x, const T* mean, int64_t rows, int64_t n, T* sum,
                           T* dot);

  // One row of layer_norm; weight and bias may be null.
  void (*layer)(const T* x, T mean, T rstd, const T* weight, const T* bias, T* y, int64_t n);
  // Its gradient; adds to grad_weight and grad_bias unless they are null. Without `centered` the
  // mean is a constant.
  void (*layer_grad)(const T* g, const T* x, T mean, T rstd, bool centered, const T* weight,
                     T* grad_input, T* grad_weight, T* grad_bias, int64_t n);
};

// What becomes of the elements of a plane, or of rows, as they lie in memory: halves are converted
// in registers. y may be x.
template <class T>
struct ChangeLoops {
  void (*affine)(const void* x, T scale, T shift, void* y, int64_t n);
  void (*combine)(const void* g, const void* x, T a, T b, T c, void* y,
                  int64_t n);  // a g + b x + c
  void (*column_affine)(const void* x, const T* scale, const T* shift, void* y, int64_t rows,
                        int64_t n);
  void (*column_combine)(const void* g, const void* x, const T* a, const T* b, const T* c, void* y,
                         int64_t rows, int64_t n);
};

struct NormLoops {
  NormLoopsOf<float> f32;
  NormLoopsOf<double> f64;
  ChangeLoops<float> of_float, of_half, of_bfloat16;
  ChangeLoops<double> of_double;
};

}  // namespace rushlight
