// Owns the choice of grids for the kernels of gemm.cuh: how large tiles are, and into how many
// pieces the inner index is cut so that there are blocks for the whole device.
#pragma once

#include "core/base/dtype.h"
#include "core/ops/matmul/gemm_args.h"

namespace rushlight {

// A batch of products of m x k with k x n elements.
struct GemmSize {
  int64_t m, n, k, batch;
};

struct GemmPlan {
  bool small_tiles;  // which module is wanted
  GemmGrid grid;
  size_t partial_bytes;  // room for the sums of pieces; 0 for one piece
};

inline constexpr int64_t kMostPieces = 256;

// For the current device.
GemmPlan plan_gemm(const GemmSize& size, DType dtype, int64_t most_pieces = kMostPieces);
// The same where each block sums one element of the result.
GemmPlan plan_gemm_blocks(const GemmSize& size, DType dtype);

}  // namespace rushlight
