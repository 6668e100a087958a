// Declares the vectorized loops behind ctc_loss, compiled once per instruction set.
#pragma once

#include "core/tensor/loops.h"

namespace rushlight {

// A step is over the n states of one sample at one time; logarithms of probabilities throughout.
template <class T>
struct CtcLoopsOf {
  // next[s] = emit[s] + log(exp(last[s]) + exp(last[s - 1]) + exp(last[s - 2] + skip[s])).
  void (*step)(const T* last, const T* skip, const T* emit, T* next, int64_t n);
  // The probability of each state given the target, where `behind` counts states from the end.
  void (*posterior)(const T* ahead, const T* behind, const T* emit, T loss, T* out, int64_t n);
  // out[c] = scale * exp(x[c])
  void (*scaled_exp)(const T* x, T scale, T* out, int64_t n);
};

struct CtcLoops {
  CtcLoopsOf<float> f32;
  CtcLoopsOf<double> f64;
};

}  // namespace rushlight
