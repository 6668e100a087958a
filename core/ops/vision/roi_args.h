// Owns the arguments of the kernels of roi pooling on CUDA.
#pragma once

#include <stdint.h>

namespace rushlight {

// See RoiAxis, in the memory of the device.
struct RoiAxisArgs {
  const int64_t* start;
  const int32_t* places;
  const void* weights;
};

struct RoiArgs {
  RoiAxisArgs rows, columns;
  const int64_t* images;                  // by roi
  int64_t rois, channels, height, width;  // of the input
  int64_t outputs, down, across;          // of the result
  int64_t total;                          // threads
  bool by_planes;                         // each bin of a channel has a plane of its own
};

}  // namespace rushlight
