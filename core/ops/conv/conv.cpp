// Owns the three private ops that convolutions are made of, each the gradient of the other two, so
// that gradients of any order come from the three kernels of conv_kernel.cpp. What Python calls is
// in conv_nd.cpp and conv_transpose.cpp.
#include "core/ops/conv/conv_arguments.h"
#include "core/ops/joined_samples.h"
#include "core/ops/op.h"

namespace rushlight {
namespace {

void check_output(const Convolution& conv, const Tensor& grad) {
  bool fits = grad.dim() == conv.dims + 2 && grad.size(0) == conv.batch &&
              grad.size(1) == conv.out_channels;
  for (int d = 0; fits && d < conv.dims; ++d) fits = grad.size(d + 2) == conv.out_size(d);
  CHECK(fits, "a gradient of shape ", grad.sizes(), " does not fit the output.");
}

std::tuple<Tensor, Tensor> weight_gradient(const Tensor& input, const Tensor& grad,
                                           ShapeRef kernel_size, const ConvWindows& w, bool bias) {
  return call<"_conv_weight", std::tuple<Tensor, Tensor>>(
      input, grad, kernel_size, w.stride, w.before, w.after, w.dilation, w.groups, bias);
}

ShapeRef spatial(const Shape& sizes) { return ShapeRef(sizes).subspan(2); }

// Samples of vmap are more images or, where each has its own weight, groups of channels.

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

}  // namespace

OP(_conv,
   "(Tensor input, Tensor weight, Tensor? bias, int[] stride, int[] before, int[] after, "
   "int[] dilation, int groups) -> Tensor", {
  .home    = "core",
  .doc     = R"(A batch of sequences, images or volumes convolved with a weight, plus a bias.

`before` and `after` count the zeros added at the two ends of each spatial dim.)",
  .dtypes  = floating,
  .node    = "convolution",
  .batch   = [](const Batch& batch, const Tensor& input, const Tensor& weight, const Tensor& bias,
                ShapeRef stride, ShapeRef before, ShapeRef after, ShapeRef dilation,
                int64_t groups) {
    ConvWindows windows{stride, before, after, dilation, groups};
    if (!batch.has("weight") && !batch.has("bias"))
      return parted_samples(convolve(joined_samples(input), weight, bias, windows), batch.size(),
                            input.size(1));
    if (!batch.has("weight")) {
      bool parts = batch.has("input");
      Tensor out = convolve(parts ? joined_samples(input) : input, weight, {}, windows);
      out = parts ? parted_samples(out, batch.size(), input.size(1)) : unsqueeze(out, 0);
      return out + reshape(bias, samples_of_channels(bias, out.dim()));
    }
    windows.groups *= batch.size();
    Tensor each = bias.defined() ? joined_samples(batch.full("bias")) : bias;
    Tensor groups_of_input = as_groups(batch.full("input"));
    return from_groups(convolve(groups_of_input, joined_samples(weight), each, windows),
                       batch.size());
  },
  .forward = [](const Tensor& input, const Tensor& weight, const Tensor& bias, ShapeRef stride,
                ShapeRef before, ShapeRef after, ShapeRef dilation, int64_t groups) {
    check_conv_operands(input, weight, bias);
    Convolution conv =
        describe_conv(input.sizes(), weight.sizes(), {stride, before, after, dilation, groups});
    check_conv_bias(bias, weight, conv.out_channels);
    return conv_forward(conv, input, weight, bias);
  },
  .saves   = saves<"input", "weight", "input.shape", "weight.shape">,
  .grads   = grads(
    d<"input">(uses<"weight", "input.shape">,
               [](const Tensor& g, const Tensor& weight, const Shape& size, const Shape& stride,
                  const Shape& before, const Shape& after, const Shape& dilation, int64_t groups) {
      ConvWindows windows{stride, before, after, dilation, groups};
      return conv_input_gradient(g, weight, spatial(size), windows);
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
    ConvWindows windows{stride, before, after, dilation, groups};
    if (!batch.has("weight"))
      return parted_samples(conv_input_gradient(joined_samples(grad), weight, size, windows),
                            batch.size(), grad.size(1));
    windows.groups *= batch.size();
    Tensor groups_of_grad = as_groups(batch.full("grad"));
    return from_groups(conv_input_gradient(groups_of_grad, joined_samples(weight), size, windows),
                       batch.size());
  },
  .forward = [](const Tensor& grad, const Tensor& weight, ShapeRef size, ShapeRef stride,
                ShapeRef before, ShapeRef after, ShapeRef dilation, int64_t groups) {
    check_conv_operands(grad, weight, {});
    CHECK(grad.dim() >= 3 && weight.dim() == grad.dim() && groups > 0,
          "grad and weight must have 3, 4 or 5 dims, both the same, and groups be positive.");
    Shape input{grad.size(0), 0};
    CHECK(!__builtin_mul_overflow(weight.size(1), groups, &input[1]), "groups is too large.");
    for (int64_t s : size) input.push_back(s);
    checked_numel(input);
    Convolution conv =
        describe_conv(input, weight.sizes(), {stride, before, after, dilation, groups});
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
      ConvWindows windows{stride, before, after, dilation, groups};
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
    ConvWindows windows{stride, before, after, dilation, groups * batch.size()};
    Tensor grads = batch.full("grad");
    auto [weight_grad, bias_grad] = weight_gradient(as_groups(batch.full("input")),
                                                    as_groups(grads), kernel_size, windows, bias);
    auto parted = [&](const Tensor& t) {
      return parted_samples(t, batch.size(), grads.size(2));
    };
    return std::tuple(parted(weight_grad), bias ? parted(bias_grad) : bias_grad);
  },
  .forward = [](const Tensor& input, const Tensor& grad, ShapeRef kernel_size, ShapeRef stride,
                ShapeRef before, ShapeRef after, ShapeRef dilation, int64_t groups, bool bias) {
    check_conv_operands(input, grad, {});
    CHECK(input.dim() >= 3 && grad.dim() == input.dim() && groups > 0,
          "input and grad must have 3, 4 or 5 dims, both the same, and groups be positive.");
    Shape weight{grad.size(1), input.size(1) / groups};
    for (int64_t s : kernel_size) weight.push_back(s);
    checked_numel(weight);
    Convolution conv =
        describe_conv(input.sizes(), weight, {stride, before, after, dilation, groups});
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
      ConvWindows windows{stride, before, after, dilation, groups};
      return conv_input_gradient(grad, g[0], spatial(size), windows);
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

}  // namespace rushlight
