// Declares the vectorized loops behind cross_entropy, compiled once per instruction set.
#pragma once

#include "core/tensor/loops.h"

namespace rushlight {

// Rows of logits that are read together, and again while they are in the cache.
inline constexpr int64_t kCrossEntropyRows = 16;

template <class T>
struct CrossEntropyLoopsOf {
  // Of up to kCrossEntropyRows rows of n logits: the largest of each, and the logarithm of the sum
  // of exp(logit - largest).
  void (*normalize)(const T* x, int64_t rows, int64_t n, T* largest, T* log_total);
  // The sum of weight * -log(softmax(x)); null weights are ones.
  T (*smoothed)(const T* x, const T* weight, int64_t n, T largest, T log_total);
  // scale * softmax(x) - share * weight.
  void (*gradient)(const T* x, const T* weight, int64_t n, T largest, T log_total, T scale, T share,
                   T* grad);
};

struct CrossEntropyLoops {
  CrossEntropyLoopsOf<float> f32;
  CrossEntropyLoopsOf<double> f64;
};

}  // namespace rushlight
