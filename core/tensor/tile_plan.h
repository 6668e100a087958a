// Owns the plan of a loop over tensors: how its operands and its result are walked, and which parts
// of a large result are made at a time.
#pragma once

#include <optional>
#include <span>

#include "core/tensor/tile_loop.h"

namespace rushlight {

inline constexpr int64_t kTileBytes = 4096;  // of the widest operand: several stay in the L1 cache
inline constexpr int64_t kRowTile = 256;     // rows below this are gathered several at a time

// One tensor of the loop.
struct TileLane {
  char* data;               // of an operand; where the result goes is said when the loop runs
  int64_t item;             // bytes of an element in memory
  int64_t kernel_item;      // bytes of an element in the kernel
  CastLoop cast = nullptr;  // null: the kernel reads the memory's own dtype
  bool linear = false;      // element i of the iteration lies at data + i * item
  bool single = false;      // one element serves the whole iteration
  bool same_rows = false;   // one row serves the whole iteration
  Shape strides;            // in bytes, by iteration dim
};

struct TilePlan {
  Shape sizes;  // coalesced, in memory order of the result
  int64_t numel;
  std::span<TileLane> lanes;  // the operands, then the result
  int operand_count;
  PointwiseKernel kernel;
  const void* scalars;

  int64_t inner() const { return sizes.empty() ? 1 : sizes.back(); }
  const TileLane& result() const { return lanes[operand_count]; }
  // Elements of a tile: operands stay in the L1 cache until the result is at its place.
  int64_t tile() const;
  // An operand that is one element along a row and that the kernel takes so, or -1. Rows are long,
  // so that no tile holds parts of two.
  int single_in_rows() const;
};

TilePlan make_plan(std::span<TileLane> lanes, const TileOperand& result,
                   std::span<const TileOperand> operands, const PointwiseKernel& kernel,
                   const void* scalars);

// Whether the neighbors of an operand lie across the rows of the result, so that each element of a
// row would touch a cache line of its own.
bool lies_across(const TilePlan& plan, const TileLane& lane);
// The strides of a lane whose elements have the order of the result.
Shape ordered_strides(const TilePlan& plan, int64_t item);

// A part of a large result: some indices of dim `dim` and all of the dims inside it. Operands that
// lie across are brought into its order part by part, which stay in the cache.
struct TileSlabs {
  size_t dim;
  int64_t inner;  // elements for each index
  int64_t most;   // indices of a slab
};

// Null where no operand lies across, or slabs with rows enough to be read by squares are too large,
// or all is small.
std::optional<TileSlabs> slabs_of(const TilePlan& plan);

}  // namespace rushlight
