// Owns the shape of the FFT kernels that are compiled once per instruction set, and of the parts of
// a plan that they read. fft_plan.h makes the plans, fft_cpu.cpp walks over tensors.
//
// Complex numbers lie as pairs (real, imaginary); lengths, strides and offsets count pairs.
#pragma once

#include "core/tensor/loops.h"

namespace rushlight {

// Larger prime factors go by Bluestein's algorithm.
inline constexpr int64_t kMaxRadix = 61;
inline constexpr int kMaxPasses = 40;

// Transforms of n rows of columns that lie side by side: one pass per factor of n.
template <class T>
struct FftColumns {
  int64_t n = 1;
  int passes = 0;
  int64_t radix[kMaxPasses];
  // Of each pass over m * radix * s rows: w^(p j) for p < m and 0 < j < radix, w being
  // 1 / (m radix) of a turn.
  const T* twiddles[kMaxPasses];
  // Of a pass without a kernel of its own: cos(2 pi k / radix) for k < radix, then the sines.
  const T* turns[kMaxPasses];
};

// A transform of n1 * n2 numbers as one of the columns and one of the rows of an n1 x n2 matrix,
// with a rotation of element (k, j) by k j / n turns between them.
template <class T>
struct FftSplit {
  FftColumns<T> first, second;  // n1, n2
  bool inverse = false;
  // The rotations as n1 rows of n2 real and n2 imaginary numbers. Null for long transforms, whose
  // rotations are products of one for k (j / kFftBlock) turns, itself coarse * fine, and one from
  // the rows of 2 kFftBlock real and as many imaginary numbers in `lane`.
  const T* rotations = nullptr;
  const T* lane = nullptr;
  const double* coarse = nullptr;
  const double* fine = nullptr;
};
inline constexpr int64_t kFftBlock = 16;
inline constexpr int64_t kFftFine = 256;

enum class FftMultiply : int { plain, conjugate_result, conjugate_input };

template <class T>
struct FftLoopsOf {
  int64_t lanes;  // columns side by side

  // How many pairs of scratch the next eight need for columns of n rows.
  int64_t (*scratch)(int64_t n);
  // `lanes` columns. `in` may be `out`.
  void (*columns)(const FftColumns<T>& plan, bool inverse, T scale, const T* in, int64_t in_stride,
                  T* out, int64_t out_stride, T* scratch);
  // `lanes` columns of 2 n real numbers to the first n + 1 numbers of their transforms, and back
  // by the inverse transform. Strides of real numbers count those; w as below.
  void (*columns_to_half)(const FftColumns<T>& plan, const T* w, T scale, const T* in,
                          int64_t in_stride, T* out, int64_t out_stride, T* scratch);
  void (*half_to_columns)(const FftColumns<T>& plan, const T* w, T scale, const T* in,
                          int64_t in_stride, T* out, int64_t out_stride, T* scratch);
  // Up to `lanes` rows of n numbers, 2 n >= lanes. `in` may be `out`.
  void (*rows)(const FftColumns<T>& plan, bool inverse, T scale, const T* in, int64_t in_stride,
               T* out, int64_t out_stride, int64_t count, T* scratch);
  // Such rows as pairs of real numbers to the first n + 1 numbers of their transforms, and back.
  void (*rows_to_half)(const FftColumns<T>& plan, const T* w, T scale, const T* in,
                       int64_t in_stride, T* out, int64_t out_stride, int64_t count, T* scratch);
  void (*half_to_rows)(const FftColumns<T>& plan, const T* w, T scale, const T* in,
                       int64_t in_stride, T* out, int64_t out_stride, int64_t count, T* scratch);
  // The two halves of a split transform, n2 >= lanes: blocks of `lanes` columns of n1 rows, then of
  // n2 rows. `middle` has n pairs.
  void (*split_first)(const FftSplit<T>& plan, const T* in, T* middle, int64_t begin, int64_t end,
                      T* scratch);
  void (*split_second)(const FftSplit<T>& plan, T scale, const T* middle, T* out, int64_t begin,
                       int64_t end, T* scratch);

  // out = factor * a * b, elementwise. `out` may be an operand.
  void (*multiply)(FftMultiply form, const T* a, const T* b, T factor, T* out, int64_t n);
  // From the transform z of m pairs of real numbers to the first m + 1 numbers of their own, and
  // back: numbers k and m - k for k in [begin, end), a part of [0, m / 2 + 1). w has
  // exp(-pi i k / m) for these k.
  void (*pairs_to_half)(const T* z, const T* w, T scale, T* out, int64_t m, int64_t begin,
                        int64_t end);
  void (*half_to_pairs)(const T* x, const T* w, T* z, int64_t m, int64_t begin, int64_t end);
  // Fills a row of n numbers from its first n / 2 + 1, the transform of real numbers; conjugates
  // all for the inverse transform.
  void (*complete)(T* row, bool inverse, int64_t n);
};

struct FftLoops {
  FftLoopsOf<float> f32;
  FftLoopsOf<double> f64;
};

}  // namespace rushlight
