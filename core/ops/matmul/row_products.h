// Declares the products of one row with a matrix where it lies, which may be of halves: compiled
// once per instruction set. Their time goes into reading the matrix, so nothing is packed.
#pragma once

#include "core/tensor/loops.h"

namespace rushlight {

// The matrix has a multiple of so many columns.
inline constexpr int64_t kRowProductColumns = 16;

// Rows of the matrix are `step` elements apart.
template <class T>
struct RowProducts {
  // out[r] = x @ matrix[r]
  void (*dots)(const T* x, const void* matrix, int64_t step, int64_t rows, int64_t columns, T* out);
  // out += sum of x[r] * matrix[r]
  void (*add_rows)(const T* x, const void* matrix, int64_t step, int64_t rows, int64_t columns,
                   T* out);
};

struct RowProductLoops {
  RowProducts<float> f32, f16, bf16;  // by the elements of the matrix
  RowProducts<double> f64;
};

}  // namespace rushlight
