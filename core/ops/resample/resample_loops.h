// Owns the shape of the loops of resampling that are compiled once per instruction set.
#pragma once

#include "core/tensor/loops.h"

namespace rushlight {

// Outputs of a row that are computed as one vector. Tap k takes the lanes `lanes` of the elements
// from `base` on; with gaps some lanes are -1, where an output has fewer taps. Without taps the
// outputs are computed one by one. With kResampleRun in the place of taps they are the elements
// from `at` on.
inline constexpr int64_t kResampleRun = -1;
struct ResampleBlock {
  int64_t begin, end;  // outputs
  int64_t taps, at;    // how many, and where the first stands in the tables below
  bool has_gaps;
};

// The weights of an axis, see ResampleAxis.
struct ResampleWeights {
  int64_t out;
  const int64_t* start;
  const int32_t* index;
  const void* weight;  // in the type of the sums
  bool moves, is_same;
  bool has_pairs;  // whether all outputs have two taps
};

struct ResampleImage {
  ResampleWeights rows, columns;
  int64_t row, pixel;   // elements of an input row, and of a pixel
  bool reads_past_row;  // so that rows must be copied where more may be read
  int64_t blocks;
  const ResampleBlock* block;
  const int64_t* base;
  const void* lanes;    // integers as wide as a sum, a vector per tap
  const void* weights;  // a vector per tap
};

// What an element is in memory. Those of a byte or two only move, whatever they stand for; halves
// are summed as floats.
enum class ResampleType : uint8_t { bytes1, bytes2, f32, f64, f16, bf16 };
inline constexpr int kResampleTypes = 6;

// out[i] = the weighted sum of in[index[k] * stride + i] over the taps, for n elements; out is in
// the type of the sums.
using ResampleSumLoop = void (*)(void* out, const void* in, int64_t stride, const int32_t* index,
                                 const void* weight, int64_t taps, int64_t n);
// Output rows row_begin to below row_end of a plane. `scratch` has room for a row of sums and two
// vectors.
using ResampleRowsLoop = void (*)(const ResampleImage& image, const void* in, void* out,
                                  int64_t row_begin, int64_t row_end, void* scratch);

struct ResampleLoops {
  int lanes[kResampleTypes];  // of a block; 0 where blocks do not pay; of bytes there are only runs
  ResampleSumLoop sum[kResampleTypes];
  ResampleRowsLoop rows[kResampleTypes];
  ResampleRowsLoop rows_of_sums[kResampleTypes];  // of planes that `sum` made
};

// ---- bytes -------------------------------------------------------------------------------------

// An output is the sum of `taps` inputs from `first` on, times the weights from `at` on. These are
// even in number: a last one may be zero and without an input.
struct ByteOutput {
  int32_t first, taps;
  int64_t at;
};
// The weights of an axis in fixed point, that is, times 2^precision.
struct ByteWeights {
  int64_t size, out;  // of the input and of the output
  const ByteOutput* output;
  const int16_t* weight;
  int precision;
};

// Transposed lines stand in strips as wide as this, or less in multiples of kByteLanes.
inline constexpr int64_t kByteStrip = 64, kByteLanes = 16;

// Outputs begin to below end, each of n bytes side by side, as its inputs are.
using ByteSumLoop = void (*)(const ByteWeights& weights, const uint8_t* in, uint8_t* out, int64_t n,
                             int64_t begin, int64_t end);
// All outputs of some lines, at most `strip`, whose elements are n bytes. `scratch` has room for
// so many lines of the input and of the output.
using ByteLinesLoop = void (*)(const ByteWeights& weights, const uint8_t* in, uint8_t* out,
                               int64_t n, int64_t lines, int64_t strip, uint8_t* scratch);

struct ResampleByteLoops {
  ByteSumLoop sum;
  ByteLinesLoop lines;
};

}  // namespace rushlight
