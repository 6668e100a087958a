// Owns the arguments of the kernel of resampling on CUDA, as host and device both see them.
#pragma once

#include <stdint.h>

namespace rushlight {

// The weights of an axis, see ResampleAxis in core/ops/resample/resample.h.
struct ResampleTable {
  int64_t size, out;
  const int64_t* start;
  const double* weight;
  const int32_t* index;
};

struct ResampleArgs {
  const void* input;
  void* result;
  int64_t planes, pixel, total;  // total: elements of the result
  ResampleTable axes[3];         // depth, rows, columns
};

}  // namespace rushlight
