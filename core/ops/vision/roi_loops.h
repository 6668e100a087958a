// Owns the shape of the loops of roi pooling that are compiled once per instruction set.
#pragma once

#include "core/tensor/loops.h"

namespace rushlight {

// An axis of one roi, see RoiAxis; all its places lie in [low, high).
struct RoiBins {
  int64_t bins, low, high;
  const int64_t* start;
  const int32_t* places;
  const void* weights;
};

struct RoiLoops {
  // The weighted sums of all bins in a plane of `width` columns. `row` has room for one row.
  void (*sum[2])(const RoiBins& rows, const RoiBins& columns, const void* plane, int64_t width,
                 void* row, void* out);  // float, double
  // Adds the gradients of the bins to that of the plane.
  void (*spread[2])(const RoiBins& rows, const RoiBins& columns, const void* grad, int64_t width,
                    void* row, void* plane);
};

}  // namespace rushlight
