// Owns sums down the columns of a row-major matrix, for kernels over rows: blocks of kColumns x
// kRows threads take pieces of the rows, and a second kernel merges the pieces.
#pragma once

#include "core/ops/row.cuh"

namespace rushlight::on_cuda {

constexpr int kColumns = 32, kRows = kDownThreads / kColumns;

inline int64_t own_column() { return int64_t(blockIdx.x) * kColumns + threadIdx.x; }

// Merges the state of the threads of a column into its place among the pieces.
template <class S>
void write_piece(const S& own, S* pieces, int64_t columns) {
  S all = merged_down(own);
  if (threadIdx.y == 0 && own_column() < columns) pieces[blockIdx.y * columns + own_column()] = all;
}

// What all pieces of the own column come to.
template <class S>
S merged_pieces(const S* pieces, int64_t count, int64_t columns) {
  S own = S::none();
  if (own_column() < columns)
    for (int64_t piece = threadIdx.y; piece < count; piece += kRows)
      own = merge(own, pieces[piece * columns + own_column()]);
  return merged_down(own);
}

// Calls f(row) for the rows of a piece that are this thread's; blockIdx.y is the piece.
template <class F>
void for_own_rows(int64_t rows, int64_t rows_of_piece, F f) {
  int64_t first = blockIdx.y * rows_of_piece;
  int64_t end = rows - first < rows_of_piece ? rows : first + rows_of_piece;
#pragma unroll 4
  for (int64_t row = first + threadIdx.y; row < end; row += kRows) f(row);
}

}  // namespace rushlight::on_cuda
