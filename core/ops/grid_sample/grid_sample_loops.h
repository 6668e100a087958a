// Owns the shape of the loops of grid_sample that are compiled once per instruction set.
#pragma once

#include "core/ops/grid_sample/grid_args.h"
#include "core/tensor/loops.h"

namespace rushlight {

// Places of a grid that are worked on at once, so that their weights stay in the cache.
inline constexpr int64_t kGridPlaces = 128;
inline constexpr int kGridTaps = 16;  // of a place at most: 4 x 4 of bicubic

// The samples of all channels: (channels, places).
using GridSampleLoop = void (*)(const GridImage& image, const void* input, const void* grid,
                                void* output);
// Adds to the gradient of the input, and writes that of the grid; each may be null.
using GridBackwardLoop = void (*)(const GridImage& image, const void* grad, const void* input,
                                  const void* grid, void* grad_input, void* grad_grid);

struct GridLoops {
  GridSampleLoop sample[2];  // float, double
  GridBackwardLoop backward[2];
};

}  // namespace rushlight
