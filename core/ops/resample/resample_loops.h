// Owns the shape of the loops of resampling that are compiled once per instruction set.
#pragma once

#include "core/tensor/loops.h"

namespace rushlight {

// Outputs of a row that are computed as one vector. Tap k takes the lanes `lanes` of the elements
// from `base` on; without taps the outputs are computed one by one. With kResampleRun in the place
// of taps they are the elements from `at` on.
inline constexpr int64_t kResampleRun = -1;
struct ResampleBlock {
  int64_t begin, end;  // outputs
  int64_t taps, at;    // how many, and where the first stands in the tables below
};

// The weights of an axis, see ResampleAxis.
struct ResampleWeights {
  int64_t out;
  const int64_t* start;
  const int32_t* index;
  const void* weight;  // in the type of the elements
  bool moves, is_same;
};

struct ResampleImage {
  ResampleWeights rows, columns;
  int64_t row, pixel;   // elements of an input row, and of a pixel
  bool reads_past_row;  // so that rows must be copied where more may be read
  int64_t blocks;
  const ResampleBlock* block;
  const int64_t* base;
  const void* lanes;    // integers as wide as an element, a vector per tap
  const void* weights;  // a vector per tap
};

// out[i] = the weighted sum of in[index[k] * stride + i] over the taps, for n elements.
using ResampleSumLoop = void (*)(void* out, const void* in, int64_t stride, const int32_t* index,
                                 const void* weight, int64_t taps, int64_t n);
// Output rows row_begin to below row_end of a plane. `scratch` has room for a row and two vectors.
using ResampleRowsLoop = void (*)(const ResampleImage& image, const void* in, void* out,
                                  int64_t row_begin, int64_t row_end, void* scratch);

struct ResampleLoops {
  int lanes[2];  // of a block, for float and double; 0 where blocks do not pay
  ResampleSumLoop sum[2];
  ResampleRowsLoop rows[2];
};

}  // namespace rushlight
