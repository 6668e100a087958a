// Declares the vectorized loops behind running sums of floats and running extremes, compiled once
// per instruction set.
#pragma once

#include "core/tensor/loops.h"

namespace rushlight {

// The running extremes y of x and their last positions, of `count` rows of `length` elements one
// after the other; or of `count` columns side by side, kMaxColumns at most, whose elements are
// `stride` apart.
inline constexpr int64_t kMaxColumns = 64;
using ExtremeRows = void (*)(const void* x, void* y, int64_t* positions, int64_t count,
                             int64_t length);
using ExtremeColumns = void (*)(const void* x, void* y, int64_t* positions, int64_t count,
                                int64_t length, int64_t stride);
struct ExtremeLoops {
  ExtremeRows rows;
  ExtremeColumns columns;
};

struct ScanLoops {
  // Sums are kept in double.
  // x[0] + ... + x[n - 1].
  double (*sum)(const float* x, int64_t n);
  // Each y[i] is start plus all x up to there: of [0], from the first element on, of [1] from the
  // last element back. Returns the sum of start and all.
  double (*running_sum[2])(const float* x, float* y, int64_t n, double start);
  // Minima and maxima by Compute, but of complex numbers.
  ExtremeLoops extremes[2][4];
};

}  // namespace rushlight
