// Owns the shape of the random loops, which are compiled once per instruction set.
//
// Every loop reads `words`, the random words of its elements: one each for 32-bit types, two each
// for 64-bit types. See Note [Random numbers] in device/philox.h.
#pragma once

#include <stdint.h>

namespace rushlight {

struct RandomLoops {
  // The words of `counters` counters from `counter` on, four each.
  void (*words)(uint64_t seed, uint64_t counter, int64_t counters, uint32_t* out);
  // Uniform in [from, from + width) with `bits` random bits, at most 24.
  void (*uniform_f32)(const uint32_t* words, int64_t n, int bits, float from, float width,
                      float* out);
  void (*uniform_f64)(const uint32_t* words, int64_t n, double from, double width, double* out);
  // 2 * pairs normal numbers.
  void (*normal_f32)(const uint32_t* words, int64_t pairs, float mean, float std, float* out);
  void (*normal_f64)(const uint32_t* words, int64_t pairs, double mean, double std, double* out);
  // -log(u) / rate.
  void (*exponential_f64)(const uint32_t* words, int64_t n, double rate, double* out);
  // Uniform in [low, low + range), for range up to 2^32; two words each.
  void (*integers)(const uint32_t* words, int64_t n, int64_t low, uint64_t range, int64_t* out);
  // out = keep ? in * scale : 0, keeping where the word is at least `threshold`.
  void (*dropout_f32)(const uint32_t* words, int64_t n, uint32_t threshold, float scale,
                      const float* in, float* out, bool* keep);
  void (*dropout_f64)(const uint32_t* words, int64_t n, uint32_t threshold, double scale,
                      const double* in, double* out, bool* keep);
};

}  // namespace rushlight
