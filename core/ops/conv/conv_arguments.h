// Owns the arguments of convolutions: their checks, and what the ops that Python calls share.
#pragma once

#include "core/ops/conv/conv.h"
#include "core/ops/ops.h"
#include "core/ops/window_numbers.h"

namespace rushlight {

// How the windows lie; one number for each spatial dim.
struct ConvWindows {
  ShapeRef stride, before, after, dilation;  // before and after: the padding
  int64_t groups;
};

// The sizes of a convolution, once they have proved to fit together.
Convolution describe_conv(ShapeRef input, ShapeRef weight, const ConvWindows& windows);

void check_conv_operands(const Tensor& input, const Tensor& weight, const Tensor& bias);
void check_conv_bias(const Tensor& bias, const Tensor& weight, int64_t channels);

// The private ops of conv.cpp.
inline Tensor convolve(const Tensor& input, const Tensor& weight, const Tensor& bias,
                       const ConvWindows& w) {
  return call<"_conv", Tensor>(input, weight, bias, w.stride, w.before, w.after, w.dilation,
                               w.groups);
}
inline Tensor conv_input_gradient(const Tensor& grad, const Tensor& weight, ShapeRef size,
                                  const ConvWindows& w) {
  return call<"_conv_input", Tensor>(grad, weight, size, w.stride, w.before, w.after, w.dilation,
                                     w.groups);
}

// product(input, weight) of the kernels, which take floats, for other dtypes too: of complex
// numbers by their parts, of integers in float64, which is exact up to 2^53.
template <class Product>
Tensor conv_product(const Tensor& input, const Tensor& weight, Product product) {
  if (is_floating(input.dtype())) return product(input, weight);
  if (!is_complex(input.dtype()))
    return cast(product(cast(input, DType::float64), cast(weight, DType::float64)), input.dtype());
  Tensor x = call<"real", Tensor>(input), y = call<"imag", Tensor>(input);
  Tensor u = call<"real", Tensor>(weight), v = call<"imag", Tensor>(weight);
  return call<"complex", Tensor>(product(x, u) - product(y, v), product(x, v) + product(y, u));
}

// A bias in the shape that broadcasts to an output.
Tensor conv_bias_column(const Tensor& bias, const Tensor& output);
// The output plus a bias for each channel, if there is one.
Tensor plus_conv_bias(const Tensor& output, const Tensor& bias);

// The numbers of an argument such as stride: one may stand for all.
inline Shape conv_numbers(ShapeRef list, int64_t dims) {
  return list.size() == 1 ? Shape(size_t(dims), list[0]) : Shape(list);
}

// Checks the dims of what Python passes and gives images without a batch one of size 1.
Tensor conv_batch(const Tensor& input, const Tensor& weight, int64_t dims);

}  // namespace rushlight
