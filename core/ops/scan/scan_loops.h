// Declares the vectorised loops behind running sums of floats, compiled once per instruction set.
#pragma once

#include "core/tensor/loops.h"

namespace rushlight {

// Sums are kept in double.
struct ScanLoops {
  // x[0] + ... + x[n - 1].
  double (*sum)(const float* x, int64_t n);
  // Each y[i] is start plus all x up to there: of [0], from the first element on, of [1] from the
  // last element back. Returns the sum of start and all.
  double (*running_sum[2])(const float* x, float* y, int64_t n, double start);
};

}  // namespace rushlight
