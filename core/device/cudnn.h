// Owns the calls into cuDNN for convolutions, which is opened at first use (cudnn_library.h).
//
// What cuDNN computes: float32, float16 and bfloat16, where there is enough work that its choice of
// code can matter; see is_wanted. Sums are float32, and only engines are taken that give the same
// bits at every run, whatever the switches say. Work and workspace belong to the current stream.
// RUSHLIGHT_CUDNN=off makes it unused; another value names the library's file.
#pragma once

#include "core/device/onednn.h"

namespace rushlight::cudnn {

using Convolution = onednn::Convolution;

enum class Kind { forward, input_gradient, weight_gradient };

// Whether to ask cuDNN. It is not asked
//   for other dtypes: it has no tensor cores for float64;
//   for fewer than a million products, which take less time than finding code for them;
//   for groups of one input channel, in which tensor cores have nothing to multiply.
// The bound is a guess: nothing has been measured.
bool is_wanted(const Convolution& conv);

// Whether float32 factors are rounded to TF32, by cuDNN or without it by our own kernels.
bool rounds_factors(const Convolution& conv);

// Makes the one of the three that `kind` names out of the other two, which have elements; all are
// dense in the layout of the input. Returns false, having done nothing, when the library is not
// there or has no code for the case.
bool convolve(Kind kind, const Convolution& conv, const void* input, const void* weight,
              const void* output);

struct Settings {
  bool is_enabled = true;
  bool allows_tf32 = true;     // whether float32 factors may be rounded to the 10 bits of TF32
  bool tries_engines = false;  // else the heuristics' first choice is taken
  int most_engines = 10;       // that are tried; 0: all
};
void set(const Settings& settings);

// major * 10000 + minor * 100 + patch, or 0 when there is no library to use.
int64_t version();

}  // namespace rushlight::cudnn
