// Owns the arguments of the FFT kernel of CUDA, as host and device both see them.
#pragma once

#include "core/tensor/loops.h"

namespace rushlight {

inline constexpr int kFftThreads = 256;
// Complex numbers of float64 that a block holds, and passes that can make so many.
inline constexpr int kFftBlockPairs = 1024;
inline constexpr int kFftBlockPasses = 10;
// The largest prime factor of a length.
inline constexpr int kFftLargestRadix = 61;

// Lines of n numbers; line (a, b, c) with b < middle and c < inner begins at a * outer + b * middle
// + c in memory, in complex numbers, and its numbers are `step` apart.
struct FftPlace {
  int64_t outer, middle, step;
};

struct FftArgs {
  const void* input;
  void* output;
  int64_t lines, middle, inner;
  FftPlace in, out;
  int n, lines_per_block;
  int passes;
  int radix[kFftBlockPasses];
  // Unless it is 0, number k of line (a, b, c) is turned by b k / turns.
  int64_t turns;
  double scale;
  // An inverse transform is a forward one with real and imaginary parts swapped before and after.
  bool swap_in, swap_out;
  // Whether neighboring threads move neighbors of a line; else those of neighboring lines.
  bool loads_lines, stores_lines;
};

}  // namespace rushlight
