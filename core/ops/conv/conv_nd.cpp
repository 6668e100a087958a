// Owns the convolutions that Python calls.
#include "core/ops/conv/conv_arguments.h"
#include "core/ops/op.h"

namespace rushlight {
namespace {

Tensor conv_nd(int64_t dims, const Tensor& input, const Tensor& weight, const Tensor& bias,
               ShapeRef stride, ShapeRef before, ShapeRef after, ShapeRef dilation,
               int64_t groups) {
  Tensor batch = conv_batch(input, weight, dims);
  Shape strides = conv_numbers(stride, dims), dilations = conv_numbers(dilation, dims);
  ConvWindows windows{strides, before, after, dilations, groups};
  // Checked here too, so that messages name the op that was called.
  check_conv_operands(input, weight, bias);
  describe_conv(batch.sizes(), weight.sizes(), windows);
  check_conv_bias(bias, weight, weight.size(0));
  // The kernels of floats add the bias themselves.
  Tensor added = is_floating(input.dtype()) ? bias : Tensor();
  Tensor output = conv_product(batch, weight, [&](const Tensor& x, const Tensor& w) {
    return convolve(x, w, added, windows);
  });
  if (!added.defined()) output = plus_conv_bias(output, bias);
  return batch.is(input) ? output : squeeze(output, 0);
}

Tensor conv_nd(int64_t dims, const Tensor& input, const Tensor& weight, const Tensor& bias,
               ShapeRef stride, ShapeRef padding, ShapeRef dilation, int64_t groups) {
  Shape both = conv_numbers(padding, dims);
  return conv_nd(dims, input, weight, bias, stride, both, both, dilation, groups);
}

// Padding by name: "valid" adds none, "same" as much as keeps the sizes, the odd one at the end.
Tensor conv_nd(int64_t dims, const Tensor& input, const Tensor& weight, const Tensor& bias,
               ShapeRef stride, std::string_view padding, ShapeRef dilation, int64_t groups) {
  CHECK(padding == "same" || padding == "valid", "Invalid padding string '", padding,
        "'. It must be 'same' or 'valid'.");
  Shape dilations = conv_numbers(dilation, dims), before(dilations.size()), after(dilations.size());
  if (padding == "same") {
    for (int64_t step : stride)
      CHECK(step == 1, "padding='same' is not supported for strided convolutions.");
    conv_batch(input, weight, dims);  // for its checks
    check_window_numbers(dilations, dims, "dilation", 1);
    for (size_t d = 0; d < size_t(dims); ++d) {
      int64_t total = dilations[d] * std::max<int64_t>(weight.sizes()[d + 2] - 1, 0);
      before[d] = total / 2;
      after[d] = total - before[d];
    }
  }
  return conv_nd(dims, input, weight, bias, stride, before, after, dilations, groups);
}

// The forwards of the ops, with their padding in numbers or by name.
template <int64_t dims, class Padding>
constexpr auto conv = [](const Tensor& input, const Tensor& weight, const Tensor& bias,
                         ShapeRef stride, Padding padding, ShapeRef dilation, int64_t groups) {
  return conv_nd(dims, input, weight, bias, stride, padding, dilation, groups);
};

}  // namespace

OP(conv1d,
   "(Tensor input, Tensor weight, Tensor? bias=None, int[1] stride=1, int[1] padding=0, "
   "int[1] dilation=1, int groups=1) -> Tensor", {
  .home    = "nn.functional torch",
  .doc     = R"(Slides filters along sequences: cross-correlation, plus a bias.

Output length: floor((L + 2 * padding - dilation * (K - 1) - 1) / stride) + 1.

Args:
    input: (N, C, L) or (C, L).
    weight: (out_channels, C / groups, K).
    bias: (out_channels,).
    stride: step between outputs.
    padding: zeros added at both ends, or 'same' (for stride 1) or 'valid'.
    dilation: distance between the elements of a filter.
    groups: how many groups of channels are convolved by themselves.)",
  .dtypes  = numeric,
  .autocast = autocast::lower,
  .forward = conv<1, ShapeRef>,
})

OP(conv1d_padding,
   "conv1d.padding(Tensor input, Tensor weight, Tensor? bias=None, int[1] stride=1, "
   "str padding='valid', int[1] dilation=1, int groups=1) -> Tensor", {
  .home    = "nn.functional torch",
  .dtypes  = numeric,
  .autocast = autocast::lower,
  .forward = conv<1, std::string_view>,
})

OP(conv2d,
   "(Tensor input, Tensor weight, Tensor? bias=None, int[2] stride=1, int[2] padding=0, "
   "int[2] dilation=1, int groups=1) -> Tensor", {
  .home    = "nn.functional torch",
  .doc     = R"(Slides filters over images: cross-correlation, plus a bias.

Output height: floor((H + 2 * padding - dilation * (KH - 1) - 1) / stride) + 1, and likewise the
width.

Args:
    input: (N, C, H, W) or (C, H, W).
    weight: (out_channels, C / groups, KH, KW).
    bias: (out_channels,).
    stride: step between outputs.
    padding: zeros added at all sides, or 'same' (for stride 1) or 'valid'.
    dilation: distance between the elements of a filter.
    groups: how many groups of channels are convolved by themselves.

Example:
    >>> image, filters = torch.ones(1, 3, 8, 8), torch.ones(4, 3, 3, 3)
    >>> torch.nn.functional.conv2d(image, filters, padding=1).shape
    torch.Size([1, 4, 8, 8]))",
  .dtypes  = numeric,
  .autocast = autocast::lower,
  .forward = conv<2, ShapeRef>,
})

OP(conv2d_padding,
   "conv2d.padding(Tensor input, Tensor weight, Tensor? bias=None, int[2] stride=1, "
   "str padding='valid', int[2] dilation=1, int groups=1) -> Tensor", {
  .home    = "nn.functional torch",
  .dtypes  = numeric,
  .autocast = autocast::lower,
  .forward = conv<2, std::string_view>,
})

OP(conv3d,
   "(Tensor input, Tensor weight, Tensor? bias=None, int[3] stride=1, int[3] padding=0, "
   "int[3] dilation=1, int groups=1) -> Tensor", {
  .home    = "nn.functional torch",
  .doc     = R"(Slides filters over volumes: conv2d with a depth before height and width.)",
  .dtypes  = numeric,
  .autocast = autocast::lower,
  .forward = conv<3, ShapeRef>,
})

OP(conv3d_padding,
   "conv3d.padding(Tensor input, Tensor weight, Tensor? bias=None, int[3] stride=1, "
   "str padding='valid', int[3] dilation=1, int groups=1) -> Tensor", {
  .home    = "nn.functional torch",
  .dtypes  = numeric,
  .autocast = autocast::lower,
  .forward = conv<3, std::string_view>,
})

OP(conv_tbc, "(Tensor input, Tensor weight, Tensor bias, int pad=0) -> Tensor", {
  .home    = "torch nn.functional",
  .doc     = R"(conv1d of sequences whose dims are (T, N, C): time, batch, channels.

Args:
    input: (T, N, C).
    weight: (K, C, out_channels).
    bias: (out_channels,).
    pad: zeros added at both ends.)",
  .dtypes  = numeric,
  .autocast = autocast::lower,
  .forward = [](const Tensor& input, const Tensor& weight, const Tensor& bias, int64_t pad) {
    CHECK(input.dim() == 3, "Input must have 3 dims: time, batch, in_channel, but has shape ",
          input.sizes(), ".");
    CHECK(weight.dim() == 3, "Weight tensor must have 3 dims: kernel_width, in_channels, ",
          "out_channels, but has shape ", weight.sizes(), ".");
    Tensor output = conv_nd(1, permute(input, Shape{1, 2, 0}), permute(weight, Shape{2, 1, 0}),
                            bias, Shape{1}, ShapeRef(Shape{pad}), Shape{1}, 1);
    return permute(output, Shape{2, 0, 1});
  },
})

}  // namespace rushlight
