#include "core/ops/matmul/gemm_cuda.h"

#include <algorithm>

#include "core/base/ceil_div.h"
#include "core/device/cuda.h"

namespace rushlight {
namespace {

constexpr int64_t kSmallTile = 32;
constexpr int64_t kShortestPiece = 512;     // of the inner index, for a tile
constexpr int64_t kShortestVector = 16384;  // likewise, for a block that sums one element

// The bytes of what elements of a dtype are summed in.
size_t sum_size(DType dtype) { return std::max<size_t>(4, dtype_size(dtype)); }

GemmPlan plan_pieces(const GemmSize& size, DType dtype, GemmGrid grid, int64_t wanted_blocks,
                     int64_t shortest, int64_t most_pieces) {
  int64_t blocks = grid.rows * grid.columns * grid.batch;
  int64_t pieces = std::clamp<int64_t>(
      std::min(wanted_blocks / std::max<int64_t>(1, blocks), size.k / shortest), 1, most_pieces);
  grid.piece =
      std::max<int64_t>(1, ceil_div(ceil_div(size.k, pieces), kGemmThreads)) * kGemmThreads;
  grid.pieces = std::max<int64_t>(1, ceil_div(size.k, grid.piece));
  size_t elements = size_t(grid.pieces * size.m * size.n * size.batch);
  return {false, grid, grid.pieces > 1 ? elements * sum_size(dtype) : 0};
}

}  // namespace

GemmPlan plan_gemm(const GemmSize& size, DType dtype, int64_t most_pieces) {
  int64_t processors = cuda::properties(cuda::current_device()).multiprocessors;
  int64_t tile = sum_size(dtype) > 4 ? 64 : 128;
  auto grid_of = [&](int64_t side) {
    return GemmGrid{ceil_div(size.m, side), ceil_div(size.n, side), size.batch, 1, 0};
  };
  GemmGrid grid = grid_of(tile);
  // Small tiles do less work for what they read, but there are more of them, and less of a narrow
  // result is wasted.
  bool small = std::min(size.m, size.n) <= kSmallTile ||
               (grid.rows * grid.columns * size.batch < processors && size.k < 4 * kShortestPiece);
  if (small) grid = grid_of(kSmallTile);
  GemmPlan plan =
      plan_pieces(size, dtype, grid, (small ? 4 : 2) * processors, kShortestPiece, most_pieces);
  plan.small_tiles = small;
  return plan;
}

GemmPlan plan_gemm_blocks(const GemmSize& size, DType dtype) {
  int64_t processors = cuda::properties(cuda::current_device()).multiprocessors;
  GemmPlan plan = plan_pieces(size, dtype, {size.m, size.n, size.batch, 1, 0}, 4 * processors,
                              kShortestVector, kMostPieces);
  plan.small_tiles = true;
  return plan;
}

}  // namespace rushlight
