// Owns the arguments of fused kernels, as host and device both see them.
#pragma once

#include "core/tensor/lane_layout.h"

namespace rushlight {

// What a fused kernel reads and writes at most.
inline constexpr int kMaxFusedReads = 16;
inline constexpr int kMaxFusedWrites = 32;
inline constexpr int kMaxFusedNumbers = 64;

struct FusedArgs {
  const void* reads[kMaxFusedReads];
  void* writes[kMaxFusedWrites];
  int64_t numel;
  alignas(16) char numbers[kMaxFusedNumbers][16];  // by value, in the types that formulas read
};

// Of the reads that lie in another order than the results, then the results.
using FusedLayout = LaneLayout<kMaxFusedReads + 1>;
static_assert(sizeof(FusedArgs) + sizeof(FusedLayout) <= 4096, "a kernel takes no more arguments");

}  // namespace rushlight
