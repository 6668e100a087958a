// Owns the convolutions. What Python calls is made of three private ops, each the gradient of the
// other two, so that gradients of any order come from the three kernels of conv_kernel.cpp.
#include "core/ops/conv.h"

#include <limits>

#include "core/ops/op.h"
#include "core/tensor/pointwise.h"

namespace rushlight {
namespace {

// How the windows lie; one number for each spatial dim.
struct Windows {
  ShapeRef stride, before, after, dilation;  // before and after: the padding
  int64_t groups;
};

void check_range(ShapeRef list, int64_t dims, const char* name, int64_t least) {
  CHECK(int64_t(list.size()) == dims, name, " must have ", dims, " numbers, one for each spatial ",
        "dim, but is ", ShapeText{list}, ".");
  for (int64_t value : list)
    CHECK(value >= least && value <= std::numeric_limits<int32_t>::max(), name, " ",
          ShapeText{list}, " is out of range: each number must be at least ", least,
          " and below 2^31.");
}

// The sizes of a convolution, once they have proved to fit together.
Convolution describe(ShapeRef input, ShapeRef weight, const Windows& windows) {
  int64_t dims = int64_t(input.size()) - 2, groups = windows.groups;
  CHECK(dims >= 1 && dims <= 3 && weight.size() == input.size(),
        "input and weight must have 3, 4 or 5 dims, both the same, but have shapes ",
        ShapeText{input}, " and ", ShapeText{weight}, ".");
  check_range(windows.stride, dims, "stride", 1);
  check_range(windows.before, dims, "padding", 0);
  check_range(windows.after, dims, "padding", 0);
  check_range(windows.dilation, dims, "dilation", 1);
  check_range(weight.subspan(2), dims, "kernel_size", 1);
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

void check_output(const Convolution& conv, const Tensor& grad) {
  bool fits = grad.dim() == conv.dims + 2 && grad.size(0) == conv.batch &&
              grad.size(1) == conv.out_channels;
  for (int d = 0; fits && d < conv.dims; ++d) fits = grad.size(d + 2) == conv.out_size(d);
  CHECK(fits, "a gradient of shape ", grad.sizes(), " does not fit the output.");
}

void check_operands(const Tensor& input, const Tensor& weight, const Tensor& bias) {
  CHECK(input.dtype() == weight.dtype(), "Input type (", dtype_name(input.dtype()),
        ") and weight type (", dtype_name(weight.dtype()), ") should be the same.");
  common_device(std::array{&input, &weight});
  if (!bias.defined()) return;
  common_device(std::array{&input, &bias});
  CHECK(input.dtype() == bias.dtype(), "Input type (", dtype_name(input.dtype()),
        ") and bias type (", dtype_name(bias.dtype()), ") should be the same.");
}

void check_bias(const Tensor& bias, const Tensor& weight, int64_t channels) {
  CHECK(!bias.defined() || (bias.dim() == 1 && bias.size(0) == channels), "Given weight of size ",
        weight.sizes(), ", expected bias to be 1-dimensional with ", channels,
        " elements, but got bias of size ", bias.sizes(), " instead.");
}

Tensor convolve(const Tensor& input, const Tensor& weight, const Tensor& bias, const Windows& w) {
  return call<"_conv", Tensor>(input, weight, bias, w.stride, w.before, w.after, w.dilation,
                               w.groups);
}

Tensor input_gradient(const Tensor& grad, const Tensor& weight, ShapeRef size, const Windows& w) {
  return call<"_conv_input", Tensor>(grad, weight, size, w.stride, w.before, w.after, w.dilation,
                                     w.groups);
}

std::tuple<Tensor, Tensor> weight_gradient(const Tensor& input, const Tensor& grad,
                                           ShapeRef kernel_size, const Windows& w, bool bias) {
  return call<"_conv_weight", std::tuple<Tensor, Tensor>>(
      input, grad, kernel_size, w.stride, w.before, w.after, w.dilation, w.groups, bias);
}

// product(input, weight) of the kernels, which take floats, for other dtypes too: of complex
// numbers by their parts, of integers in float64, which is exact up to 2^53.
template <class Product>
Tensor product_of(const Tensor& input, const Tensor& weight, Product product) {
  if (is_floating(input.dtype())) return product(input, weight);
  if (!is_complex(input.dtype()))
    return cast(product(cast(input, DType::float64), cast(weight, DType::float64)), input.dtype());
  Tensor x = call<"real", Tensor>(input), y = call<"imag", Tensor>(input);
  Tensor u = call<"real", Tensor>(weight), v = call<"imag", Tensor>(weight);
  return call<"complex", Tensor>(product(x, u) - product(y, v), product(x, v) + product(y, u));
}

Tensor plus_bias(const Tensor& output, const Tensor& bias) {
  if (!bias.defined()) return output;
  Shape column(size_t(output.dim()) - 1, 1);
  column[0] = bias.size(0);
  return output + reshape(bias, column);
}

ShapeRef spatial(const Shape& sizes) { return ShapeRef(sizes).subspan(2); }

// Samples of vmap are more images or, where each has its own weight, groups of channels.

// (B, N, ...) as (B * N, ...), and back.
Tensor joined(const Tensor& samples) {
  Shape sizes = samples.sizes();
  sizes[0] *= sizes[1];
  sizes.erase(1);
  return reshape(samples, sizes);
}
Tensor parted(const Tensor& t, int64_t samples) {
  Shape sizes = t.sizes();
  sizes[0] /= samples;
  sizes.insert(0, samples);
  return reshape(t, sizes);
}
// (B, N, C, ...) as (N, B * C, ...), and back.
Tensor as_groups(const Tensor& samples) {
  Tensor t = transpose(samples, 0, 1);
  Shape sizes = t.sizes();
  sizes[1] *= sizes[2];
  sizes.erase(2);
  return reshape(t, sizes);
}
Tensor from_groups(const Tensor& t, int64_t samples) {
  Shape sizes = t.sizes();
  sizes[1] /= samples;
  sizes.insert(1, samples);
  return transpose(reshape(t, sizes), 0, 1);
}
// The sizes of bias (B, C) that goes with (B, N, C, ...).
Shape samples_of_channels(const Tensor& bias, int64_t dims) {
  Shape sizes(size_t(dims), 1);
  sizes[0] = bias.size(0);
  sizes[2] = bias.size(1);
  return sizes;
}

// The numbers of an argument such as stride: one may stand for all.
Shape spread(ShapeRef list, int64_t dims) {
  return list.size() == 1 ? Shape(size_t(dims), list[0]) : Shape(list);
}

// Checks the dims of what Python passes and gives images without a batch one of size 1.
Tensor as_batch(const Tensor& input, const Tensor& weight, int64_t dims) {
  CHECK(input.dim() == dims + 1 || input.dim() == dims + 2, "Expected ", dims + 1,
        "D (unbatched) or ", dims + 2, "D (batched) input, but got input of size: ", input.sizes());
  CHECK(weight.dim() == dims + 2, "Expected ", dims + 2,
        "D weight, but got weight of size: ", weight.sizes());
  return input.dim() == dims + 1 ? unsqueeze(input, 0) : input;
}

Tensor conv_nd(int64_t dims, const Tensor& input, const Tensor& weight, const Tensor& bias,
               ShapeRef stride, ShapeRef before, ShapeRef after, ShapeRef dilation,
               int64_t groups) {
  Tensor batch = as_batch(input, weight, dims);
  Shape strides = spread(stride, dims), dilations = spread(dilation, dims);
  Windows windows{strides, before, after, dilations, groups};
  // Checked here too, so that messages name the op that was called.
  check_operands(input, weight, bias);
  describe(batch.sizes(), weight.sizes(), windows);
  check_bias(bias, weight, weight.size(0));
  // The kernels of floats add the bias themselves.
  Tensor added = is_floating(input.dtype()) ? bias : Tensor();
  Tensor output = product_of(batch, weight, [&](const Tensor& x, const Tensor& w) {
    return convolve(x, w, added, windows);
  });
  if (!added.defined()) output = plus_bias(output, bias);
  return batch.is(input) ? output : squeeze(output, 0);
}

Tensor conv_nd(int64_t dims, const Tensor& input, const Tensor& weight, const Tensor& bias,
               ShapeRef stride, ShapeRef padding, ShapeRef dilation, int64_t groups) {
  Shape both = spread(padding, dims);
  return conv_nd(dims, input, weight, bias, stride, both, both, dilation, groups);
}

// Padding by name: "valid" adds none, "same" as much as keeps the sizes, the odd one at the end.
Tensor conv_nd(int64_t dims, const Tensor& input, const Tensor& weight, const Tensor& bias,
               ShapeRef stride, std::string_view padding, ShapeRef dilation, int64_t groups) {
  CHECK(padding == "same" || padding == "valid", "Invalid padding string '", padding,
        "'. It must be 'same' or 'valid'.");
  Shape dilations = spread(dilation, dims), before(dilations.size()), after(dilations.size());
  if (padding == "same") {
    for (int64_t step : stride)
      CHECK(step == 1, "padding='same' is not supported for strided convolutions.");
    as_batch(input, weight, dims);  // for its checks
    check_range(dilations, dims, "dilation", 1);
    for (size_t d = 0; d < size_t(dims); ++d) {
      int64_t total = dilations[d] * std::max<int64_t>(weight.sizes()[d + 2] - 1, 0);
      before[d] = total / 2;
      after[d] = total - before[d];
    }
  }
  return conv_nd(dims, input, weight, bias, stride, before, after, dilations, groups);
}

Tensor conv_transpose_nd(int64_t dims, const Tensor& input, const Tensor& weight,
                         const Tensor& bias, ShapeRef stride, ShapeRef padding,
                         ShapeRef output_padding, int64_t groups, ShapeRef dilation) {
  Tensor batch = as_batch(input, weight, dims);
  Shape strides = spread(stride, dims), pads = spread(padding, dims);
  Shape dilations = spread(dilation, dims), extra = spread(output_padding, dims);
  check_operands(input, weight, bias);
  check_range(strides, dims, "stride", 1);
  check_range(pads, dims, "padding", 0);
  check_range(dilations, dims, "dilation", 1);
  check_range(extra, dims, "output_padding", 0);
  Shape size(strides.size());
  for (size_t d = 0; d < size_t(dims); ++d) {
    CHECK(extra[d] < strides[d], "output padding must be smaller than stride, but got output_",
          "padding ", ShapeText{extra}, " and stride ", ShapeText{strides}, ".");
    int64_t span;
    bool overflows = __builtin_mul_overflow(batch.sizes()[d + 2] - 1, strides[d], &span);
    overflows |= __builtin_add_overflow(
        span, dilations[d] * (weight.sizes()[d + 2] - 1) + 1 + extra[d] - 2 * pads[d], &size[d]);
    CHECK(!overflows && size[d] > 0, "the output size in dim ", d + 2, " is ", size[d],
          ". It must be positive and fit in 63 bits.");
  }
  Windows windows{strides, pads, pads, dilations, groups};
  CHECK(weight.size(0) == batch.size(1), "Given transposed=1, weight of size ", weight.sizes(),
        ", expected input", batch.sizes(), " to have ", weight.size(0), " channels, but got ",
        batch.size(1), " channels instead.");
  CHECK(groups > 0 && batch.size(1) % groups == 0, "groups must be positive and divide the ",
        batch.size(1), " channels of the input, but is ", groups, ".");
  int64_t channels = weight.size(1) * groups;
  check_bias(bias, weight, channels);
  Tensor output = product_of(batch, weight, [&](const Tensor& x, const Tensor& w) {
    return input_gradient(x, w, size, windows);
  });
  output = plus_bias(output, bias);
  return batch.is(input) ? output : squeeze(output, 0);
}

}  // namespace

OP(_conv,
   "(Tensor input, Tensor weight, Tensor? bias, int[] stride, int[] before, int[] after, "
   "int[] dilation, int groups) -> Tensor", {
  .home    = "private",
  .doc     = R"(A batch of sequences, images or volumes convolved with a weight, plus a bias.

`before` and `after` count the zeros added at the two ends of each spatial dim.)",
  .dtypes  = floating,
  .batch   = [](const Batch& batch, const Tensor& input, const Tensor& weight, const Tensor& bias,
                ShapeRef stride, ShapeRef before, ShapeRef after, ShapeRef dilation,
                int64_t groups) {
    Windows windows{stride, before, after, dilation, groups};
    if (!batch.has("weight") && !batch.has("bias"))
      return parted(convolve(joined(input), weight, bias, windows), batch.size());
    if (!batch.has("weight")) {
      Tensor out = batch.has("input")
                       ? parted(convolve(joined(input), weight, {}, windows), batch.size())
                       : unsqueeze(convolve(input, weight, {}, windows), 0);
      return out + reshape(bias, samples_of_channels(bias, out.dim()));
    }
    windows.groups *= batch.size();
    Tensor each = bias.defined() ? joined(batch.full("bias")) : bias;
    return from_groups(convolve(as_groups(batch.full("input")), joined(weight), each, windows),
                       batch.size());
  },
  .forward = [](const Tensor& input, const Tensor& weight, const Tensor& bias, ShapeRef stride,
                ShapeRef before, ShapeRef after, ShapeRef dilation, int64_t groups) {
    check_operands(input, weight, bias);
    Convolution conv =
        describe(input.sizes(), weight.sizes(), {stride, before, after, dilation, groups});
    check_bias(bias, weight, conv.out_channels);
    return conv_forward(conv, input, weight, bias);
  },
  .saves   = saves<"input", "weight", "input.shape", "weight.shape">,
  .grads   = grads(
    d<"input">(uses<"weight", "input.shape">,
               [](const Tensor& g, const Tensor& weight, const Shape& size, const Shape& stride,
                  const Shape& before, const Shape& after, const Shape& dilation, int64_t groups) {
      return input_gradient(g, weight, spatial(size), {stride, before, after, dilation, groups});
    }),
    d<"weight", "bias">(uses<"input", "weight.shape">,
                        [](const Tensor& g, const Tensor& input, const Shape& size,
                           const Shape& stride, const Shape& before, const Shape& after,
                           const Shape& dilation, int64_t groups, GradMask<2> mask) {
      return weight_gradient(input, g, spatial(size), {stride, before, after, dilation, groups},
                             mask[1]);
    })),
})

OP(_conv_input,
   "(Tensor grad, Tensor weight, int[] size, int[] stride, int[] before, int[] after, "
   "int[] dilation, int groups) -> Tensor", {
  .home    = "private",
  .doc     = R"(The gradient of _conv with respect to an input whose spatial dims are `size`.)",
  .dtypes  = floating,
  .batch   = [](const Batch& batch, const Tensor& grad, const Tensor& weight, ShapeRef size,
                ShapeRef stride, ShapeRef before, ShapeRef after, ShapeRef dilation,
                int64_t groups) {
    Windows windows{stride, before, after, dilation, groups};
    if (!batch.has("weight"))
      return parted(input_gradient(joined(grad), weight, size, windows), batch.size());
    windows.groups *= batch.size();
    return from_groups(input_gradient(as_groups(batch.full("grad")), joined(weight), size, windows),
                       batch.size());
  },
  .forward = [](const Tensor& grad, const Tensor& weight, ShapeRef size, ShapeRef stride,
                ShapeRef before, ShapeRef after, ShapeRef dilation, int64_t groups) {
    check_operands(grad, weight, {});
    CHECK(grad.dim() >= 3 && weight.dim() == grad.dim() && groups > 0,
          "grad and weight must have 3, 4 or 5 dims, both the same, and groups be positive.");
    Shape input{grad.size(0), 0};
    CHECK(!__builtin_mul_overflow(weight.size(1), groups, &input[1]), "groups is too large.");
    for (int64_t s : size) input.push_back(s);
    checked_numel(input);
    Convolution conv = describe(input, weight.sizes(), {stride, before, after, dilation, groups});
    check_output(conv, grad);
    return conv_backward_input(conv, grad, weight);
  },
  .saves   = saves<"grad", "weight", "weight.shape">,
  .grads   = grads(
    d<"grad">(uses<"weight">,
              [](const Tensor& g, const Tensor& weight, const Shape&, const Shape& stride,
                 const Shape& before, const Shape& after, const Shape& dilation, int64_t groups) {
      return convolve(g, weight, {}, {stride, before, after, dilation, groups});
    }),
    d<"weight">(uses<"grad", "weight.shape">,
                [](const Tensor& g, const Tensor& grad, const Shape& size, const Shape&,
                   const Shape& stride, const Shape& before, const Shape& after,
                   const Shape& dilation, int64_t groups) {
      Windows windows{stride, before, after, dilation, groups};
      return std::get<0>(weight_gradient(g, grad, spatial(size), windows, false));
    })),
})

OP(_conv_weight,
   "(Tensor input, Tensor grad, int[] kernel_size, int[] stride, int[] before, int[] after, "
   "int[] dilation, int groups, bool bias) -> (Tensor weight, Tensor bias)", {
  .home    = "private",
  .doc     = R"(The gradients of _conv with respect to its weight and, if wanted, its bias.)",
  .dtypes  = floating,
  .batch   = [](const Batch& batch, const Tensor&, const Tensor&, ShapeRef kernel_size,
                ShapeRef stride, ShapeRef before, ShapeRef after, ShapeRef dilation, int64_t groups,
                bool bias) {
    Windows windows{stride, before, after, dilation, groups * batch.size()};
    auto [weight_grad, bias_grad] =
        weight_gradient(as_groups(batch.full("input")), as_groups(batch.full("grad")), kernel_size,
                        windows, bias);
    return std::tuple(parted(weight_grad, batch.size()),
                      bias ? parted(bias_grad, batch.size()) : bias_grad);
  },
  .forward = [](const Tensor& input, const Tensor& grad, ShapeRef kernel_size, ShapeRef stride,
                ShapeRef before, ShapeRef after, ShapeRef dilation, int64_t groups, bool bias) {
    check_operands(input, grad, {});
    CHECK(input.dim() >= 3 && grad.dim() == input.dim() && groups > 0,
          "input and grad must have 3, 4 or 5 dims, both the same, and groups be positive.");
    Shape weight{grad.size(1), input.size(1) / groups};
    for (int64_t s : kernel_size) weight.push_back(s);
    checked_numel(weight);
    Convolution conv = describe(input.sizes(), weight, {stride, before, after, dilation, groups});
    check_output(conv, grad);
    auto [weight_grad, bias_grad] = conv_backward_weight(conv, input, grad, bias);
    return std::tuple(weight_grad, bias_grad);
  },
  .saves   = saves<"input", "grad", "input.shape">,
  .grads   = grads(
    d<"input">(uses<"grad", "input.shape">,
               [](TensorList g, const Tensor& grad, const Shape& size, const Shape&,
                  const Shape& stride, const Shape& before, const Shape& after,
                  const Shape& dilation, int64_t groups, bool) {
      if (!g[0].defined()) return Tensor();
      return input_gradient(grad, g[0], spatial(size), {stride, before, after, dilation, groups});
    }),
    d<"grad">(uses<"input", "grad">,
              [](TensorList g, const Tensor& input, const Tensor& grad, const Shape&,
                 const Shape& stride, const Shape& before, const Shape& after,
                 const Shape& dilation, int64_t groups, bool) {
      // The output's place in both gradients is that of an output: weight and bias applied to it.
      Shape ones(grad.sizes().size() - 1, 1);
      ones[0] = grad.size(1);
      if (!g[0].defined()) return expand(reshape(g[1], ones), grad.sizes());
      return convolve(input, g[0], g[1], {stride, before, after, dilation, groups});
    })),
})

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
  .forward = [](const Tensor& input, const Tensor& weight, const Tensor& bias, ShapeRef stride,
                ShapeRef padding, ShapeRef dilation, int64_t groups) {
    return conv_nd(1, input, weight, bias, stride, padding, dilation, groups);
  },
})

OP(conv1d_padding,
   "conv1d.padding(Tensor input, Tensor weight, Tensor? bias=None, int[1] stride=1, "
   "str padding='valid', int[1] dilation=1, int groups=1) -> Tensor", {
  .home    = "nn.functional torch",
  .dtypes  = numeric,
  .forward = [](const Tensor& input, const Tensor& weight, const Tensor& bias, ShapeRef stride,
                std::string_view padding, ShapeRef dilation, int64_t groups) {
    return conv_nd(1, input, weight, bias, stride, padding, dilation, groups);
  },
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
  .forward = [](const Tensor& input, const Tensor& weight, const Tensor& bias, ShapeRef stride,
                ShapeRef padding, ShapeRef dilation, int64_t groups) {
    return conv_nd(2, input, weight, bias, stride, padding, dilation, groups);
  },
})

OP(conv2d_padding,
   "conv2d.padding(Tensor input, Tensor weight, Tensor? bias=None, int[2] stride=1, "
   "str padding='valid', int[2] dilation=1, int groups=1) -> Tensor", {
  .home    = "nn.functional torch",
  .dtypes  = numeric,
  .forward = [](const Tensor& input, const Tensor& weight, const Tensor& bias, ShapeRef stride,
                std::string_view padding, ShapeRef dilation, int64_t groups) {
    return conv_nd(2, input, weight, bias, stride, padding, dilation, groups);
  },
})

OP(conv3d,
   "(Tensor input, Tensor weight, Tensor? bias=None, int[3] stride=1, int[3] padding=0, "
   "int[3] dilation=1, int groups=1) -> Tensor", {
  .home    = "nn.functional torch",
  .doc     = R"(Slides filters over volumes: conv2d with a depth before height and width.)",
  .dtypes  = numeric,
  .forward = [](const Tensor& input, const Tensor& weight, const Tensor& bias, ShapeRef stride,
                ShapeRef padding, ShapeRef dilation, int64_t groups) {
    return conv_nd(3, input, weight, bias, stride, padding, dilation, groups);
  },
})

OP(conv3d_padding,
   "conv3d.padding(Tensor input, Tensor weight, Tensor? bias=None, int[3] stride=1, "
   "str padding='valid', int[3] dilation=1, int groups=1) -> Tensor", {
  .home    = "nn.functional torch",
  .dtypes  = numeric,
  .forward = [](const Tensor& input, const Tensor& weight, const Tensor& bias, ShapeRef stride,
                std::string_view padding, ShapeRef dilation, int64_t groups) {
    return conv_nd(3, input, weight, bias, stride, padding, dilation, groups);
  },
})

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
  .forward = [](const Tensor& input, const Tensor& weight, const Tensor& bias, ShapeRef stride,
                ShapeRef padding, ShapeRef output_padding, int64_t groups, ShapeRef dilation) {
    return conv_transpose_nd(1, input, weight, bias, stride, padding, output_padding, groups,
                             dilation);
  },
})

OP(conv_transpose2d,
   "(Tensor input, Tensor weight, Tensor? bias=None, int[2] stride=1, int[2] padding=0, "
   "int[2] output_padding=0, int groups=1, int[2] dilation=1) -> Tensor", {
  .home    = "nn.functional torch",
  .doc     = R"(The gradient of conv2d with respect to its input, used as a layer that upsamples.

Output height: (H - 1) * stride - 2 * padding + dilation * (KH - 1) + output_padding + 1, and
likewise the width. Arguments as in conv_transpose1d; weight: (C, out_channels / groups, KH, KW).)",
  .dtypes  = numeric,
  .forward = [](const Tensor& input, const Tensor& weight, const Tensor& bias, ShapeRef stride,
                ShapeRef padding, ShapeRef output_padding, int64_t groups, ShapeRef dilation) {
    return conv_transpose_nd(2, input, weight, bias, stride, padding, output_padding, groups,
                             dilation);
  },
})

}  // namespace rushlight
