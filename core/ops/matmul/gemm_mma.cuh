// Owns the product of a tile of gemm.cuh by tensor cores.
#pragma once

#include "core/ops/matmul/gemm_part.cuh"

namespace rushlight::on_cuda {

// Sums over the inner indices from begin to below end. Two rows of four warps share the tile, and
// each sums `down` x `across` fragments of 16 x 8 elements.
template <int tile, class Problem>
void multiply_tile_by_tensor_cores(const Problem& problem, int64_t first_row, int64_t first_column,
                                   int64_t begin, int64_t end) {
  using Element = typename Problem::Element;
  constexpr int kHalfStep = 16 / sizeof(Element), kStep = 2 * kHalfStep;  // along fragments
  constexpr int kDepth = 2 * kStep;  // of the inner index, what lies in shared memory at a time
  constexpr int kLine = kDepth + kHalfStep;  // so that eight lines lie in different banks
  constexpr int kRows = tile / 2, kColumns = tile / 4, kDown = kRows / 16, kAcross = kColumns / 8;
  alignas(16) __shared__ Element lefts[tile][kLine], rights[tile][kLine];
  Parts<Problem, tile, kDepth> parts(problem, first_row, first_column);
  int warp = int(threadIdx.x) / 32, lane = int(threadIdx.x) % 32;
  int row = warp / 4 * kRows, column = warp % 4 * kColumns;

  float sums[kDown][kAcross][4] = {};
  parts.fetch(begin, end);
  for (int64_t from = begin; from < end; from += kDepth) {
    parts.left.write_lines(lefts);
    parts.right.write_lines(rights);
    __syncthreads();
    // On its way while this part is multiplied.
    if (from + kDepth < end) parts.fetch(from + kDepth, end);
#pragma unroll
    for (int d = 0; d < kDepth; d += kStep) {
      uint32_t right[kAcross][2];
#pragma unroll
      for (int n = 0; n < kAcross; n += 2) {
        uint32_t two[2][2];  // in the smallest tile, the second one is the first again
        int line = column + (8 * n + lane / 16 * 8 + lane % 8) % kColumns;
        load_matrices<false>(two, &rights[line][d + lane / 8 % 2 * kHalfStep]);
#pragma unroll
        for (int k = 0; k < 4; ++k)
          if (n + k / 2 < kAcross) right[n + k / 2][k % 2] = two[k / 2][k % 2];
      }
#pragma unroll
      for (int m = 0; m < kDown; ++m) {
        uint32_t left[4];
        load_matrices<false>(left, &lefts[row + 16 * m + lane % 16][d + lane / 16 * kHalfStep]);
#pragma unroll
        for (int n = 0; n < kAcross; ++n)
          multiply_add_fragments<Element>(sums[m][n], left, right[n]);
      }
    }
    __syncthreads();
  }

#pragma unroll
  for (int j = 0; j < 2 * kAcross; ++j) {
    int64_t to_column = first_column + column + j / 2 * 8 + lane % 4 * 2 + j % 2;
    if (to_column >= problem.columns) continue;
    auto to = problem.place(to_column);
#pragma unroll
    for (int i = 0; i < 2 * kDown; ++i) {
      int64_t to_row = first_row + row + i * 8 + lane / 4;
      if (to_row < problem.rows) problem.store(to_row, to, sums[i / 2][j / 2][i % 2 * 2 + j % 2]);
    }
  }
}

}  // namespace rushlight::on_cuda
