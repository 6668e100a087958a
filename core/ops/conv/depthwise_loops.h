// Owns the shape of the loops of depthwise convolution, compiled once per instruction set.
//
// They see an image as one long row, so that images of a few columns fill vectors too.
#pragma once

#include "core/tensor/loops.h"

namespace rushlight {

// Loops work on whole vectors: what they read or write has this many elements after its end.
inline constexpr int64_t kDepthwiseSlack = 16;

// Output i sees element i + offset of the input, times element `weight` of the weights.
struct DepthwiseTap {
  int64_t offset, weight;
};

// out[i] = bias + the sum over taps of weights times inputs, for i < n. The bias may be null.
using CorrelateLoop = void (*)(const void* in, const DepthwiseTap* taps, int64_t count,
                               const void* weights, const void* bias, void* out, int64_t n);
// Adds to the gradient of each tap's weight the sum over i < n of grad[i] times its input, and to
// grad_bias, unless it is null, the sum of grad. There are zeros after the end of grad.
using TapSumsLoop = void (*)(const void* in, const DepthwiseTap* taps, int64_t count,
                             const void* grad, void* grad_weights, void* grad_bias, int64_t n);

struct DepthwiseLoops {
  CorrelateLoop correlate[2];  // float, double
  TapSumsLoop sum_taps[2];
};

}  // namespace rushlight
