// Owns the products of 8-bit integers by oneDNN: linear layers and convolutions of uint8 inputs
// with int8 weights, their scales, zero points, bias and relu in one primitive. Sums are exact only
// as multiplies_bytes() says.
//
// Weights may be packed once into the format that the primitive wants. Where oneDNN is not there or
// has no fast code, functions return false or 0, having done nothing, as those of onednn.h do.
#pragma once

#include "core/device/onednn.h"

namespace rushlight::onednn {

struct Int8Convolution {
  Convolution conv;        // no dtype, channels last; with 0 dims a linear layer: batch is its rows
  DType output;            // float32; uint8, with a scale and a zero point; int32, without scales
  bool has_zero_point;     // of the input
  bool scale_per_channel;  // of the weights
  bool relu;
};

struct Int8Arrays {
  const void* input;   // uint8
  const void* weight;  // int8, (out, in / groups, ...) row-major
  int64_t format = 0;  // of `packed`
  const void* packed = nullptr;
  const float* bias = nullptr;  // in units of the result
  float input_scale = 1;
  int32_t input_zero_point = 0;
  const float* weight_scales = nullptr;
  float output_scale = 1;
  int32_t output_zero_point = 0;
  void* output = nullptr;
};

// output = round(max(0, input . weight * scales + bias) / output_scale) + output_zero_point, or the
// products alone in int32.
bool int8_convolution(const Int8Convolution& product, const Int8Arrays& arrays);

// The number of the format, valid in this process, that a product wants its weights in; 0 for none.
int64_t packed_format(const Int8Convolution& product);
// 0 for numbers that are not of a format.
size_t packed_bytes(int64_t format);
void pack(const Int8Convolution& product, const void* weight, int64_t format, void* packed);

}  // namespace rushlight::onednn
