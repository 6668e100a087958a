// Owns the shape of the pooling loops that are compiled once per instruction set.
#pragma once

#include "core/tensor/loops.h"

namespace rushlight {

// The windows along one dim: output o covers the elements begin[o], begin[o] + dilation, ... below
// end[o]. The outputs from even_begin to below even_end have windows alike, each `stride` elements
// after the one before.
struct PoolAxis {
  int64_t size, out;
  const int32_t* begin;
  const int32_t* end;
  int64_t dilation;
  int64_t even_begin, even_end, stride;
  int64_t sharing;  // so many windows have an element in common at most
};

// Volumes of which `channels` lie side by side, at most kPoolChannels; their pixels are `pixel`
// elements apart.
inline constexpr int64_t kPoolChannels = 64;
inline constexpr int64_t kPoolLanes = 16;  // channels that are worth a vector
inline constexpr int kPoolRowBytes = 32;   // of a vector along the outputs of a row
struct PoolVolume {
  PoolAxis planes, rows, columns;
  int64_t channels, pixel;
  void* scratch;  // for rows of these channels, as computed
};

// Calls f(i, at, n) for the runs of n elements that `pixels` pixels of some channels are made of:
// they lie from `at` on, and from i on where nothing lies between them.
template <class F>
[[gnu::always_inline]] inline void for_runs(int64_t channels, int64_t pixel, int64_t pixels, F f) {
  if (channels == pixel) return f(int64_t(0), int64_t(0), pixels * channels);
  for (int64_t x = 0; x < pixels; ++x) f(x * channels, x * pixel, channels);
}

// The largest element of each window and, unless `indices` is null, its place in the volume; NaN is
// the largest.
using MaxPoolLoop = void (*)(const PoolVolume& volume, const void* input, void* output,
                             int32_t* indices);
// The sum of each window, divided by the output's divisor.
using AvgPoolLoop = void (*)(const PoolVolume& volume, const void* divisors, const void* input,
                             void* output);
// The sum of the gradients, each divided by its divisor, of the outputs whose windows have an
// element.
using AvgPoolBackwardLoop = void (*)(const PoolVolume& volume, const void* divisors,
                                     const void* grad, void* grad_input);

// For elements in memory of float, double, int64, Half and BFloat16; there are no gradients of
// integers. Halves are computed as float, and so are their divisors.
struct MaxPoolLoops {
  MaxPoolLoop of_memory[5];
};
struct AvgPoolLoops {
  AvgPoolLoop forward[5];
  AvgPoolBackwardLoop backward[5];
};

}  // namespace rushlight
