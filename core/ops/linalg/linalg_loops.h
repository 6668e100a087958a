// Owns the shape of the factorizations of small matrices that are compiled once per instruction
// set. Those of complex matrices exist in the baseline set only.
#pragma once

#include "core/tensor/loops.h"

namespace rushlight {

// Up to here our loops are faster than LAPACK's calls.
inline constexpr int64_t kSmallMatrix = 16;

// The LU decomposition of a column-major m x n matrix in its place, as LAPACK's getrf gives it.
using SmallLu = int (*)(int64_t m, int64_t n, void* a, int* pivots);
// The lower factor in place of the lower triangle, as LAPACK's potrf gives it; element (i, j) lies
// at a[i * row + j * column].
using SmallCholesky = int (*)(int64_t n, void* a, int64_t row, int64_t column);

// A triangular matrix, or its conjugate.
struct SmallTriangle {
  const void* data;
  int64_t row, column;
  bool conjugated, upper, unitriangular;
};
// b = A^-1 b for a b of n rows, whose columns lie `column` elements apart.
using SmallSubstitution = void (*)(int64_t n, const SmallTriangle& a, void* b, int64_t column,
                                   int64_t columns);

// float, double, and the complex forms of both.
struct SmallMatrixLoops {
  SmallLu lu[4];
  SmallCholesky cholesky[4];
  SmallSubstitution substitute[4];
};

}  // namespace rushlight
