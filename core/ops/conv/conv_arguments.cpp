// Defines the checks of convolutions' arguments.
#include "core/ops/conv/conv_arguments.h"

#include <limits>

#include "core/tensor/pointwise.h"

namespace rushlight {

Convolution describe_conv(ShapeRef input, ShapeRef weight, const ConvWindows& windows) {
  int64_t dims = int64_t(input.size()) - 2, groups = windows.groups;
  CHECK(dims >= 1 && dims <= 3 && weight.size() == input.size(),
        "input and weight must have 3, 4 or 5 dims, both the same, but have shapes ",
        ShapeText{input}, " and ", ShapeText{weight}, ".");
  check_window_numbers(windows.stride, dims, "stride", 1);
  check_window_numbers(windows.before, dims, "padding", 0);
  check_window_numbers(windows.after, dims, "padding", 0);
  check_window_numbers(windows.dilation, dims, "dilation", 1);
  check_window_numbers(weight.subspan(2), dims, "kernel_size", 1);
  CHECK(groups > 0, "groups must be at least 1, but is ", groups, ".");
  CHECK(weight[0] % groups == 0, "Given groups=", groups, ", expected weight to be divisible by ",
        groups, " at dimension 0, but got weight of size ", ShapeText{weight}, " instead.");
  int64_t channels;
  CHECK(!__builtin_mul_overflow(weight[1], groups, &channels) && input[1] == channels,
        "Given groups=", groups, ", weight of size ", ShapeText{weight}, ", expected input",
        ShapeText{input}, " to have ", channels, " channels, but got ", input[1],
        " channels instead.");

  Convolution conv{};
  conv.dims = int(dims);
  conv.batch = input[0];
  conv.groups = groups;
  conv.in_channels = input[1];
  conv.out_channels = weight[0];
  for (size_t d = 0; d < size_t(dims); ++d) {
    conv.size[d] = input[d + 2];
    conv.kernel[d] = weight[d + 2];
    conv.stride[d] = windows.stride[d];
    conv.dilation[d] = windows.dilation[d];
    conv.padding_before[d] = windows.before[d];
    conv.padding_after[d] = windows.after[d];
    CHECK(conv.size[d] <= std::numeric_limits<int64_t>::max() / 2, "size ", conv.size[d],
          " of the input is too large.");
    int64_t padded = conv.size[d] + conv.padding_before[d] + conv.padding_after[d];
    int64_t window = conv.dilation[d] * (conv.kernel[d] - 1) + 1;
    CHECK(window <= padded, "Kernel size can't be greater than actual input size: in dim ", d + 2,
          " a window spans ", window, ", but the padded input has ", padded, ".");
  }
  return conv;
}

void check_conv_operands(const Tensor& input, const Tensor& weight, const Tensor& bias) {
  CHECK(input.dtype() == weight.dtype(), "Input type (", dtype_name(input.dtype()),
        ") and weight type (", dtype_name(weight.dtype()), ") should be the same.");
  common_device(std::array{&input, &weight});
  if (!bias.defined()) return;
  common_device(std::array{&input, &bias});
  CHECK(input.dtype() == bias.dtype(), "Input type (", dtype_name(input.dtype()),
        ") and bias type (", dtype_name(bias.dtype()), ") should be the same.");
}

void check_conv_bias(const Tensor& bias, const Tensor& weight, int64_t channels) {
  CHECK(!bias.defined() || (bias.dim() == 1 && bias.size(0) == channels), "Given weight of size ",
        weight.sizes(), ", expected bias to be 1-dimensional with ", channels,
        " elements, but got bias of size ", bias.sizes(), " instead.");
}

Tensor conv_bias_column(const Tensor& bias, const Tensor& output) {
  Shape column(size_t(output.dim()) - 1, 1);
  column[0] = bias.size(0);
  return reshape(bias, column);
}

Tensor plus_conv_bias(const Tensor& output, const Tensor& bias) {
  return bias.defined() ? output + conv_bias_column(bias, output) : output;
}

Tensor conv_batch(const Tensor& input, const Tensor& weight, int64_t dims) {
  CHECK(input.dim() == dims + 1 || input.dim() == dims + 2, "Expected ", dims + 1,
        "D (unbatched) or ", dims + 2, "D (batched) input, but got input of size: ", input.sizes());
  CHECK(weight.dim() == dims + 2, "Expected ", dims + 2,
        "D weight, but got weight of size: ", weight.sizes());
  return input.dim() == dims + 1 ? unsqueeze(input, 0) : input;
}

}  // namespace rushlight
