// Owns the shapes of the loops over quantized numbers that are compiled once per instruction set.
#pragma once

#include "core/tensor/loops.h"

namespace rushlight {

// Of what the numbers of a quantized tensor are made.
enum class QuantizedType : uint8_t { int8, uint8, int32 };
inline constexpr int kQuantizedTypes = 3;

// A number q of this form stands for (q - zero_point) * scale.
struct QuantizedForm {
  float scale;
  int32_t zero_point;
};

struct FloatRange {
  float low, high;
};

inline constexpr int kDotWeights = 4;

struct QuantizedLoops {
  // The nearest numbers, halves to even, from `low` to `high`; NaN becomes `low`.
  void (*quantize[kQuantizedTypes])(const float* input, QuantizedForm form, int32_t low,
                                    int32_t high, void* output, int64_t n);
  // The same where each number has its own form.
  void (*quantize_each[kQuantizedTypes])(const float* input, const float* scales,
                                         const int32_t* zero_points, int32_t low, int32_t high,
                                         void* output, int64_t n);
  void (*dequantize[kQuantizedTypes])(const void* input, QuantizedForm form, float* output,
                                      int64_t n);
  void (*dequantize_each[kQuantizedTypes])(const void* input, const float* scales,
                                           const int32_t* zero_points, float* output, int64_t n);
  // The sum of two, not below `low`; for int8 and uint8.
  void (*add[2])(const void* a, QuantizedForm a_form, const void* b, QuantizedForm b_form,
                 QuantizedForm form, int32_t low, void* output, int64_t n);
  // Of n > 0 numbers.
  FloatRange (*range)(const float* input, int64_t n);
  // The products of `rows` rows of n numbers with four rows of weights; sums wrap around.
  void (*dots)(const int16_t* input, int64_t rows, const int8_t* const (&weights)[kDotWeights],
               int64_t n, int32_t (*sums)[kDotWeights]);
};

}  // namespace rushlight
