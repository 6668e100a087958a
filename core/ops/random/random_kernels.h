// Owns what a device does for random numbers: filling row-major memory from a piece of the stream.
// The choice of device, layouts and checks are in random_draw.cpp.
#pragma once

#include "core/ops/random/random_args.h"
#include "core/tensor/generator.h"

namespace rushlight {

// What is drawn, in which type, before it is converted to the tensor's. DrawArgs::first and second
// are where a uniform number begins and its width; mean and standard deviation, also of the
// logarithm; median and width; the rate, for geometric numbers that of failures.
enum class Distribution : uint8_t {
  uniform_f32,
  uniform_f64,
  normal_f32,
  normal_f64,
  exponential,
  geometric,
  cauchy,
  log_normal,
  integers
};
// Words of the stream that a number takes.
constexpr int words_each(Distribution distribution) {
  return distribution == Distribution::uniform_f32 || distribution == Distribution::normal_f32 ? 1
                                                                                               : 2;
}

void draw_cpu(const Tensor& out, Distribution distribution, const DrawArgs& args,
              Generator::Draw draw);
void draw_cuda(const Tensor& out, Distribution distribution, const DrawArgs& args,
               Generator::Draw draw);

// Fills a tensor of bools: true with the probability in `chances`, which has float64 elements on
// the same device; `all` holds for all elements where it is undefined.
void bernoulli_cpu(const Tensor& out, const Tensor& chances, double all, Generator::Draw draw);
void bernoulli_cuda(const Tensor& out, const Tensor& chances, double all, Generator::Draw draw);
// Whether all are probabilities.
bool are_chances_cpu(const Tensor& chances);
bool are_chances_cuda(const Tensor& chances);

// Keeps where the random word is at least the threshold; all three are dense in one order.
struct Dropout {
  uint32_t threshold;
  double scale;
};
void dropout_cpu(const Tensor& input, const Tensor& out, const Tensor& mask, Dropout dropout,
                 Generator::Draw draw);
void dropout_cuda(const Tensor& input, const Tensor& out, const Tensor& mask, Dropout dropout,
                  Generator::Draw draw);

}  // namespace rushlight
