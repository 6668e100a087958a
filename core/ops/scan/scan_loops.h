// Declares the vectorized loops behind running sums, products and extremes, compiled once per
// instruction set.
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

struct ExtremeSet {
  ExtremeLoops of[4];  // by Compute, but of complex numbers
  ExtremeLoops narrow[kNarrowCount];
};

// Of sums or of products of T, which are kept in State.
template <class T, class State>
struct RunningLoops {
  State start;  // what nothing adds up to
  // Each y[i] is `state` and all x up to there: of [0], from the first element on, of [1] from the
  // last element back. Returns the state behind them.
  State (*row[2])(const T* x, T* y, int64_t n, State state);
  // y[i] = states[i] = states[i] and x[i].
  void (*columns)(const T* x, T* y, State* states, int64_t n);
};

template <class T, class State>
struct RunningSet {
  RunningLoops<T, State> sums, products;
  State (*total)(const T* x, int64_t n);  // x[0] + ... + x[n - 1]
};

struct ScanLoops {
  RunningSet<float, double> floats;
  RunningSet<double, double> doubles;
  RunningSet<int64_t, uint64_t> integers;  // unsigned, because they wrap around
  ExtremeSet extremes[2];                  // minima and maxima
};

}  // namespace rushlight
