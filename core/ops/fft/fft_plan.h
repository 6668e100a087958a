// Owns FftPlan: how a transform of one length is carried out, with its tables. Plans are immutable
// and shared; the last ones used are kept.
#pragma once

#include <memory>
#include <vector>

#include "core/ops/fft/fft_loops.h"

namespace rushlight {

// What a length and direction need. A plan has `columns`, `split`, both, or `padded`.
template <class T>
struct FftPlan {
  int64_t n = 1;
  bool inverse = false;
  bool has_columns = false, has_split = false;
  FftColumns<T> columns;
  FftSplit<T> split;
  double columns_cost = 0;  // of as many transforms as a vector of 64 bytes has lanes
  double split_cost = 0;    // of one transform

  // Bluestein's convolution with a chirp (L. I. Bluestein: A linear filtering approach to the
  // computation of discrete Fourier transform, 1970), which runs forward transforms of padded->n.
  std::shared_ptr<const FftPlan> padded;
  const T* chirp = nullptr;     // exp(-pi i k^2 / n), its conjugate when inverse
  const T* spectrum = nullptr;  // the transform of the conjugate chirp, around both ends

  // exp(-pi i k / n) for k <= n / 2, in plans for 2 n real numbers.
  const T* half_turns = nullptr;

  std::vector<std::unique_ptr<T[]>> tables;
  std::vector<double> coarse, fine;
  int64_t bytes = 0;  // of all tables
};

// The radices of the passes over n rows; none when n is 1 or a prime factor is too large.
std::vector<int64_t> fft_radices(int64_t n);

// n >= 1. `real`: for 2 n real numbers.
template <class T>
std::shared_ptr<const FftPlan<T>> fft_plan(int64_t n, bool inverse, bool real = false);

}  // namespace rushlight
