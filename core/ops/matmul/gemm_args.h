// Owns the arguments of the kernels that multiply matrices, as host and device both see them.
#pragma once

#include <stdint.h>

namespace rushlight {

inline constexpr int kGemmThreads = 256;  // of a block

// The blocks of a grid are tiles of the result, for each piece of the inner index, for each matrix
// of a batch. Pieces of one sum are added up by another kernel.
struct GemmGrid {
  int64_t rows, columns;  // of tiles
  int64_t batch;
  int64_t pieces, piece;  // how many, and of which length

  int64_t blocks() const { return rows * columns * batch * pieces; }
};

// c = alpha * a @ b + beta * c + bias for a batch of matrices; c is row-major. Strides and steps
// are in elements.
struct GemmArgs {
  const void *a, *b, *bias;  // bias: n elements, or null
  void *c, *partial;         // partial: the sums of pieces, if there are several
  int64_t m, n, k;
  int64_t a_row, a_column, b_row, b_column;
  int64_t a_step, b_step;  // from matrix to matrix
  double alpha, beta;      // of real numbers
  GemmGrid grid;
};

}  // namespace rushlight
