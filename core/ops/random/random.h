// Owns the shape of the random loops, which are compiled once per instruction set.
//
// Every loop reads `words`, the random words of its elements: one each for 32-bit types, two each
// for 64-bit types. See Note [Random numbers] in device/philox.h.
#pragma once

#include "core/ops/random/random_args.h"

namespace rushlight {

struct RandomLoops {
  // The words of `counters` counters from `counter` on, four each.
  void (*words)(uint64_t seed, uint64_t counter, int64_t counters, uint32_t* out);
  // Numbers of the distributions in random_kernels.h. Normal and log-normal ones come in pairs: an
  // odd n has one more.
  void (*uniform_f32)(const uint32_t* words, int64_t n, const DrawArgs& args, float* out);
  void (*uniform_f64)(const uint32_t* words, int64_t n, const DrawArgs& args, double* out);
  void (*normal_f32)(const uint32_t* words, int64_t n, const DrawArgs& args, float* out);
  void (*normal_f64)(const uint32_t* words, int64_t n, const DrawArgs& args, double* out);
  void (*exponential)(const uint32_t* words, int64_t n, const DrawArgs& args, double* out);
  void (*geometric)(const uint32_t* words, int64_t n, const DrawArgs& args, double* out);
  void (*cauchy)(const uint32_t* words, int64_t n, const DrawArgs& args, double* out);
  void (*log_normal)(const uint32_t* words, int64_t n, const DrawArgs& args, double* out);
  // Uniform in [low, low + range), for range up to 2^32; two words each.
  void (*integers)(const uint32_t* words, int64_t n, int64_t low, uint64_t range, int64_t* out);
  // out = keep ? in * scale : 0, keeping where the word is at least `threshold`.
  void (*dropout_f32)(const uint32_t* words, int64_t n, uint32_t threshold, float scale,
                      const float* in, float* out, bool* keep);
  void (*dropout_f64)(const uint32_t* words, int64_t n, uint32_t threshold, double scale,
                      const double* in, double* out, bool* keep);
};

}  // namespace rushlight
