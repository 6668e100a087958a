// Owns the arguments of the kernels of reductions, as host and device both see them.
#pragma once

#include "core/tensor/loops.h"

namespace rushlight {

// Threads of a block that reduces rows; other blocks have as many at most.
inline constexpr int kReduceThreads = 256;
// Dims that are left after those walked as one are joined.
inline constexpr int kMaxReduceDims = 16;
// Bytes of a result in the making, at most.
inline constexpr int kMaxReduceState = 24;

// Some dims of the input, walked as one index whose last dim is the innermost.
struct ReduceDims {
  int32_t dims;
  int64_t numel;
  int64_t sizes[kMaxReduceDims];
  int64_t strides[kMaxReduceDims];  // in elements of the input
};

struct ReduceArgs {
  const void* input;
  void* first;
  void* second;    // null: nobody wants it
  void* partials;  // states by piece and output; null where one piece is all
  double parameter;
  ReduceDims outputs, reduced;
  int64_t result_strides[kMaxReduceDims];  // by dim of `outputs`, in elements
  int64_t piece;                           // reduced elements of a block
  int64_t pieces;
};

}  // namespace rushlight
