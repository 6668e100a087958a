// Defines the kernels of convolution but for the arithmetic: layouts and memory for results.
#include "core/ops/conv/conv.h"

#include "core/tensor/memory_order.h"
#include "core/tensor/reduce.h"
#include "core/tensor/tile_loop.h"

namespace rushlight {
namespace {

using onednn::ImageLayout;

// ---- layouts -----------------------------------------------------------------------------------

MemoryFormat format_of(ImageLayout layout, int dims) {
  return layout == ImageLayout::channels_first ? MemoryFormat::contiguous
                                               : channels_last_for(dims + 2);
}

ImageLayout layout_of(const Tensor& tensor, int dims) {
  bool last = dims > 1 && suggested_format(tensor) == format_of(ImageLayout::channels_last, dims);
  return last ? ImageLayout::channels_last : ImageLayout::channels_first;
}

// The layout of the results: that of the operands, where channels_last wins.
ImageLayout common_layout(const Tensor& a, const Tensor& b, int dims) {
  return layout_of(a, dims) == ImageLayout::channels_last ? ImageLayout::channels_last
                                                          : layout_of(b, dims);
}

// In the dtype and on the device of an operand.
Tensor empty_in_layout(ShapeRef sizes, const Tensor& operand, ImageLayout layout, int dims) {
  return empty_strided(sizes, strides_for(sizes, format_of(layout, dims)), operand.dtype(),
                       operand.device());
}

// ---- shapes ------------------------------------------------------------------------------------

Shape input_sizes(const Convolution& conv) {
  Shape sizes{conv.batch, conv.in_channels};
  for (int d = 0; d < conv.dims; ++d) sizes.push_back(conv.size[size_t(d)]);
  return sizes;
}

Shape output_sizes(const Convolution& conv) {
  Shape sizes{conv.batch, conv.out_channels};
  for (int d = 0; d < conv.dims; ++d) sizes.push_back(conv.out_size(d));
  return sizes;
}

Shape weight_sizes(const Convolution& conv) {
  Shape sizes{conv.out_channels, conv.in_channels / conv.groups};
  for (int d = 0; d < conv.dims; ++d) sizes.push_back(conv.kernel[size_t(d)]);
  return sizes;
}

}  // namespace

Tensor in_layout(const Tensor& tensor, ImageLayout layout, int dims) {
  return in_format(tensor, format_of(layout, dims));
}

Convolution in_three_dims(Convolution conv) {
  for (; conv.dims < 3; ++conv.dims) {
    auto prepend = [](std::array<int64_t, 3>& list, int64_t value) {
      list = {value, list[0], list[1]};
    };
    prepend(conv.size, 1);
    prepend(conv.kernel, 1);
    prepend(conv.stride, 1);
    prepend(conv.dilation, 1);
    prepend(conv.padding_before, 0);
    prepend(conv.padding_after, 0);
  }
  return conv;
}

Tensor conv_forward(Convolution conv, const Tensor& input, const Tensor& weight,
                    const Tensor& bias) {
  conv.dtype = input.dtype();
  conv.layout = common_layout(input, weight, conv.dims);
  conv.weight_layout = layout_of(weight, conv.dims);
  Tensor output = empty_in_layout(output_sizes(conv), input, conv.layout, conv.dims);
  if (output.numel() == 0 || output.device().is_meta()) return output;
  if (output.device().is_cpu()) conv_forward_on_cpu(conv, input, weight, bias, output);
  else conv_forward_on_cuda(conv, input, weight, bias, output);
  return output;
}

Tensor conv_backward_input(Convolution conv, const Tensor& grad, const Tensor& weight) {
  conv.dtype = grad.dtype();
  conv.layout = common_layout(grad, weight, conv.dims);
  conv.weight_layout = layout_of(weight, conv.dims);
  Tensor result = empty_in_layout(input_sizes(conv), grad, conv.layout, conv.dims);
  if (result.numel() == 0 || result.device().is_meta()) return result;
  if (result.device().is_cpu()) conv_backward_input_on_cpu(conv, grad, weight, result);
  else conv_backward_input_on_cuda(conv, grad, weight, result);
  return result;
}

std::pair<Tensor, Tensor> conv_backward_weight(Convolution conv, const Tensor& input,
                                               const Tensor& grad, bool wants_bias) {
  conv.dtype = input.dtype();
  conv.layout = conv.weight_layout = common_layout(input, grad, conv.dims);
  Tensor weight = empty_in_layout(weight_sizes(conv), input, conv.weight_layout, conv.dims);
  if (input.device().is_cuda()) {
    conv_backward_weight_on_cuda(conv, input, grad, weight);
    if (!wants_bias) return {weight, Tensor()};
    DimSet all_but_channels = reduced_dims({}, grad.dim()).reset(1);
    return {weight, reduce(Reduction::sum, grad, all_but_channels, false, conv.dtype)};
  }
  Tensor bias = wants_bias ? empty(Shape{conv.out_channels}, conv.dtype, input.device()) : Tensor();
  if (input.device().is_cpu()) conv_backward_weight_on_cpu(conv, input, grad, weight, bias);
  return {weight, bias};
}

}  // namespace rushlight
