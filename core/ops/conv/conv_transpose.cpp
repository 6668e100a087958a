// Owns the transposed convolutions: gradients of convolutions with respect to their input.
#include <algorithm>

#include "core/ops/conv/conv_arguments.h"
#include "core/ops/op.h"

namespace rushlight {
namespace {

template <int64_t dims>
constexpr auto conv_transpose = [](const Tensor& input, const Tensor& weight, const Tensor& bias,
                                   ShapeRef stride, ShapeRef padding, ShapeRef output_padding,
                                   int64_t groups, ShapeRef dilation) {
  Tensor batch = conv_batch(input, weight, dims);
  Shape strides = conv_numbers(stride, dims), pads = conv_numbers(padding, dims);
  Shape dilations = conv_numbers(dilation, dims), extra = conv_numbers(output_padding, dims);
  check_conv_operands(input, weight, bias);
  check_window_numbers(strides, dims, "stride", 1);
  check_window_numbers(pads, dims, "padding", 0);
  check_window_numbers(dilations, dims, "dilation", 1);
  check_window_numbers(extra, dims, "output_padding", 0);
  Shape size(strides.size()), after = pads, missing(strides.size());
  for (size_t d = 0; d < size_t(dims); ++d) {
    CHECK(extra[d] < std::max(strides[d], dilations[d]),
          "output padding must be smaller than either stride or dilation, but got output_padding ",
          ShapeText{extra}, ", stride ", ShapeText{strides}, " and dilation ", ShapeText{dilations},
          ".");
    int64_t span;
    bool overflows = __builtin_mul_overflow(batch.sizes()[d + 2] - 1, strides[d], &span);
    overflows |= __builtin_add_overflow(
        span, dilations[d] * (weight.sizes()[d + 2] - 1) + 1 + extra[d] - 2 * pads[d], &size[d]);
    CHECK(!overflows && size[d] > 0, "the output size in dim ", d + 2, " is ", size[d],
          ". It must be positive and fit in 63 bits.");
    // Whole strides of output padding take back what padding cuts off, and are zeros beyond that.
    after[d] -= extra[d] / strides[d] * strides[d];
    missing[d] = std::max<int64_t>(-after[d], 0);
    after[d] = std::max<int64_t>(after[d], 0);
    size[d] -= missing[d];
  }
  ConvWindows windows{strides, pads, after, dilations, groups};
  CHECK(weight.size(0) == batch.size(1), "Given transposed=1, weight of size ", weight.sizes(),
        ", expected input", batch.sizes(), " to have ", weight.size(0), " channels, but got ",
        batch.size(1), " channels instead.");
  CHECK(groups > 0 && batch.size(1) % groups == 0, "groups must be positive and divide the ",
        batch.size(1), " channels of the input, but is ", groups, ".");
  int64_t channels = weight.size(1) * groups;
  check_conv_bias(bias, weight, channels);
  Tensor output = conv_product(batch, weight, [&](const Tensor& x, const Tensor& w) {
    return conv_input_gradient(x, w, size, windows);
  });
  for (size_t d = 0; d < size_t(dims); ++d) {
    if (missing[d] == 0) continue;
    Shape edge = output.sizes();
    edge[d + 2] = missing[d];
    const Tensor parts[] = {output, new_zeros(output, edge)};
    output = cat(parts, int64_t(d) + 2);
  }
  output = plus_conv_bias(output, bias);
  return batch.is(input) ? output : squeeze(output, 0);
};

}  // namespace

OP(conv_transpose1d,
   "(Tensor input, Tensor weight, Tensor? bias=None, int[1] stride=1, int[1] padding=0, "
   "int[1] output_padding=0, int groups=1, int[1] dilation=1) -> Tensor", {
  .home    = "nn.functional torch",
  .doc     = R"(The gradient of conv1d with respect to its input, used as a layer that upsamples.

Output length: (L - 1) * stride - 2 * padding + dilation * (K - 1) + output_padding + 1.

Args:
    input: (N, C, L) or (C, L).
    weight: (C, out_channels / groups, K).
    bias: (out_channels,).
    stride: step between the windows in the output.
    padding: elements dropped at both ends of the output.
    output_padding: elements added to one end, less than stride.
    groups: how many groups of channels are convolved by themselves.
    dilation: distance between the elements of a filter.)",
  .dtypes  = numeric,
  .autocast = autocast::lower,
  .forward = conv_transpose<1>,
})

OP(conv_transpose2d,
   "(Tensor input, Tensor weight, Tensor? bias=None, int[2] stride=1, int[2] padding=0, "
   "int[2] output_padding=0, int groups=1, int[2] dilation=1) -> Tensor", {
  .home    = "nn.functional torch",
  .doc     = R"(The gradient of conv2d with respect to its input, used as a layer that upsamples.

Output height: (H - 1) * stride - 2 * padding + dilation * (KH - 1) + output_padding + 1, and
likewise the width. Arguments as in conv_transpose1d; weight: (C, out_channels / groups, KH, KW).)",
  .dtypes  = numeric,
  .autocast = autocast::lower,
  .forward = conv_transpose<2>,
})

OP(conv_transpose3d,
   "(Tensor input, Tensor weight, Tensor? bias=None, int[3] stride=1, int[3] padding=0, "
   "int[3] output_padding=0, int groups=1, int[3] dilation=1) -> Tensor", {
  .home    = "nn.functional torch",
  .doc     = R"(The gradient of conv3d with respect to its input, used as a layer that upsamples.

Output depth: (D - 1) * stride - 2 * padding + dilation * (KD - 1) + output_padding + 1, and
likewise height and width. Arguments as in conv_transpose1d; weight: (C, out_channels / groups, KD,
KH, KW).)",
  .dtypes  = numeric,
  .autocast = autocast::lower,
  .forward = conv_transpose<3>,
})

}  // namespace rushlight
