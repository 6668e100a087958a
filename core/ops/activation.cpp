// Owns the nonlinearities of neural networks, element by element. sigmoid and tanh are in
// pointwise_math.cpp.
#include "core/ops/op.h"

namespace rushlight {

// ---- piecewise linear ---------------------------------------------------------------------------

POINTWISE(relu_value, (R input), max(input, S(0)))
POINTWISE(relu_grad, (T g, T result), select(result <= S(0), S(0), g))
OP(relu, "(Tensor input, bool inplace=False) -> Tensor", {
  .home    = "torch nn.functional",
  .doc     = R"(The positive part of each element: max(input, 0).

Example:
    >>> torch.relu(torch.tensor([-1.0, 2.0]))
    tensor([0., 2.]))",
  .dtypes  = real_numeric,
  .sparse  = by_values,
  .forward = formula<relu_value>,
  .saves   = saves<"result">,
  .grads   = grads(d<"input">(lines<relu_grad>)),
})

POINTWISE(relu6_value, (R input), clamp(input, S(0), S(6)))
POINTWISE(relu6_grad, (T g, T input), select((input <= S(0)) | (input >= S(6)), S(0), g))
OP(relu6, "(Tensor input, bool inplace=False) -> Tensor", {
  .home    = "nn.functional",
  .doc     = "relu that stops at 6: min(max(input, 0), 6).",
  .dtypes  = real_numeric,
  .forward = formula<relu6_value>,
  .saves   = saves<"input">,
  .grads   = grads(d<"input">(lines<relu6_grad>)),
})

POINTWISE(leaky_relu_value, (T input, S negative_slope),
          select(input > S(0), input, input * negative_slope))
POINTWISE(leaky_relu_grad, (T g, T input, S negative_slope),
          select(input > S(0), g, g * negative_slope))
OP(leaky_relu, "(Tensor input, float negative_slope=0.01, bool inplace=False) -> Tensor", {
  .home    = "nn.functional",
  .doc     = "input where it is positive, negative_slope * input elsewhere.",
  .dtypes  = floating,
  .variants = function | inplace,
  .forward = formula<leaky_relu_value>,
  .saves   = saves<"input">,
  .grads   = grads(d<"input">(lines<leaky_relu_grad>)),
})

POINTWISE(prelu_value, (T input, T weight), select(input > S(0), input, input * weight))
POINTWISE(prelu_grad_input, (T g, T input, T weight), select(input > S(0), g, g * weight))
POINTWISE(prelu_grad_weight, (T g, T input), select(input > S(0), S(0), g * input))
OP(_prelu, "(Tensor input, Tensor weight) -> Tensor", {
  .home    = "core",
  .doc     = "prelu with a weight that broadcasts.",
  .dtypes  = floating,
  .forward = formula<prelu_value>,
  .saves   = saves<"input", "weight">,
  .grads   = grads(d<"input">(lines<prelu_grad_input>), d<"weight">(formula<prelu_grad_weight>)),
})
OP(prelu, "(Tensor input, Tensor weight) -> Tensor", {
  .home    = "torch nn.functional",
  .doc     = R"(input where it is positive, weight * input elsewhere (He et al. 2015).

weight holds one number for all, or one for each channel: dim 1 of input.)",
  .dtypes  = floating,
  .autocast = autocast::lower,
  .forward = [](const Tensor& input, const Tensor& weight) {
    CHECK(weight.dim() <= 1, "weight must be one number or a vector, but has shape ",
          weight.sizes());
    if (weight.numel() == 1) return call<"_prelu", Tensor>(input, reshape(weight, {}));
    int64_t channels = input.dim() > 1 ? input.size(1) : 1;
    CHECK(weight.numel() == channels,
          "Mismatch of parameter numbers and input channel size. Found parameter numbers = ",
          weight.numel(), " and channel size = ", channels, ".");
    Shape sizes(size_t(input.dim()), 1);
    sizes[1] = channels;
    return call<"_prelu", Tensor>(input, reshape(weight, sizes));
  },
})

POINTWISE(threshold_value, (R input, S threshold, S value),
          select(input <= threshold, value, input))
POINTWISE(threshold_grad, (T g, T input, S threshold), select(input <= threshold, S(0), g))
OP(threshold, "(Tensor input, float threshold, float value, bool inplace=False) -> Tensor", {
  .home    = "torch nn.functional",
  .doc     = "input where it is above the threshold, value elsewhere.",
  .dtypes  = real_numeric,
  .variants = function | inplace,
  .batch   = by_elements,
  .forward = [](const Tensor& input, double threshold, double value, bool, const Tensor* into) {
    if (is_integral(input.dtype()))  // the numbers become integers, if they fit
      for (double* number : {&threshold, &value})
        *number = item(scalar_tensor(std::trunc(*number), input.dtype())).to<double>();
    return pointwise_into<threshold_value>(into, input, threshold, value);
  },
  .saves   = saves<"input">,
  .grads   = grads(d<"input">(lines<threshold_grad>)),
})

POINTWISE(hardtanh_value, (R input, S min_val, S max_val), clamp(input, min_val, max_val))
POINTWISE(hardtanh_grad, (T g, T input, S min_val, S max_val),
          select((input <= min_val) | (input >= max_val), S(0), g))
OP(hardtanh,
   "(Tensor input, float min_val=-1.0, float max_val=1.0, bool inplace=False) -> Tensor", {
  .home    = "nn.functional",
  .doc     = "Brings every element into [min_val, max_val]; at the bounds the gradient is 0.",
  .dtypes  = real_numeric,
  .variants = function | inplace,
  .batch   = by_elements,
  .forward = [](const Tensor& input, double min_val, double max_val, bool, const Tensor* into) {
    CHECK(min_val <= max_val, ErrorKind::kValue,
          "min_val cannot be greater than max_val, got ", min_val, " and ", max_val);
    if (is_integral(input.dtype())) min_val = std::trunc(min_val), max_val = std::trunc(max_val);
    return pointwise_into<hardtanh_value>(into, input, min_val, max_val);
  },
  .saves   = saves<"input">,
  .grads   = grads(d<"input">(lines<hardtanh_grad>)),
})

POINTWISE(hardsigmoid_value, (T input), clamp(input + S(3), S(0), S(6)) / S(6))
POINTWISE(hardsigmoid_grad, (T g, T input),
          select((input > S(-3)) & (input < S(3)), g / S(6), S(0)))
OP(hardsigmoid, "(Tensor input, bool inplace=False) -> Tensor", {
  .home    = "nn.functional",
  .doc     = "A sigmoid of straight lines: min(max(input + 3, 0), 6) / 6.",
  .dtypes  = floating,
  .forward = formula<hardsigmoid_value>,
  .saves   = saves<"input">,
  .grads   = grads(d<"input">(lines<hardsigmoid_grad>)),
})

POINTWISE(hardswish_value, (T input), input * clamp(input + S(3), S(0), S(6)) / S(6))
POINTWISE(hardswish_grad, (T g, T input),
          select(input <= S(-3), S(0), select(input >= S(3), g, g * (input / S(3) + S(0.5)))))
OP(hardswish, "(Tensor input, bool inplace=False) -> Tensor", {
  .home    = "nn.functional",
  .doc     = "input * hardsigmoid(input). Howard et al. 2019.",
  .dtypes  = floating,
  .forward = formula<hardswish_value>,
  .saves   = saves<"input">,
  .grads   = grads(d<"input">(formula<hardswish_grad>)),
})

// Zero times NaN is NaN, which passes through both.
POINTWISE(softshrink_value, (T input, S lambd),
          select(input > lambd, input - lambd, select(input < -lambd, input + lambd, input * S(0))))
POINTWISE(shrink_grad, (T g, T input, S lambd), select(abs(input) <= lambd, S(0), g))
OP(softshrink, "(Tensor input, float lambd=0.5) -> Tensor", {
  .home    = "nn.functional",
  .doc     = "Moves elements towards zero by lambd; those within it become zero.",
  .dtypes  = floating,
  .batch   = by_elements,
  .forward = [](const Tensor& input, double lambd) {
    CHECK(lambd >= 0, "lambda must be greater or equal to 0, but found to be ", lambd, ".");
    return pointwise<softshrink_value>(input, lambd);
  },
  .saves   = saves<"input">,
  .grads   = grads(d<"input">(lines<shrink_grad>)),
})

POINTWISE(hardshrink_value, (T input, S lambd), select(abs(input) <= lambd, S(0), input))
OP(hardshrink, "(Tensor input, float lambd=0.5) -> Tensor", {
  .home    = "torch nn.functional",
  .doc     = "Elements within lambd of zero become zero.",
  .dtypes  = floating,
  .variants = function | method,
  .forward = formula<hardshrink_value>,
  .saves   = saves<"input">,
  .grads   = grads(d<"input">(lines<shrink_grad>)),
})

// ---- exponential below zero ---------------------------------------------------------------------
// exp sees min(input, 0), so that it cannot overflow where its result is not used. Gradients say it
// by select, whose own gradient at 0 is that of one side.

POINTWISE(elu_value, (T input, S alpha),
          select(input > S(0), input, expm1(min(input, S(0))) * alpha))
POINTWISE(elu_grad, (T g, T input, S alpha),
          select(input > S(0), g, g * exp(select(input >= S(0), S(0), input)) * alpha))
OP(elu, "(Tensor input, float alpha=1.0, bool inplace=False) -> Tensor", {
  .home    = "nn.functional",
  .doc     = "input where it is positive, alpha * (exp(input) - 1) elsewhere. Clevert et al. 2015.",
  .dtypes  = floating,
  .variants = function | inplace,
  .forward = formula<elu_value>,
  .saves   = saves<"input">,
  .grads   = grads(d<"input">(formula<elu_grad>)),
})

POINTWISE(celu_value, (T input, S alpha),
          select(input > S(0), input, expm1(min(input, S(0)) / alpha) * alpha))
POINTWISE(celu_grad, (T g, T input, S alpha),
          select(input > S(0), g, g * exp(select(input >= S(0), S(0), input) / alpha)))
OP(celu, "(Tensor input, float alpha=1.0, bool inplace=False) -> Tensor", {
  .home    = "torch nn.functional",
  .doc     = R"(elu with a continuous derivative (Barron 2017).

Below zero it is alpha * (exp(input / alpha) - 1).)",
  .dtypes  = floating,
  .variants = function | inplace,
  .batch   = by_elements,
  .forward = [](const Tensor& input, double alpha, bool, const Tensor* into) {
    CHECK(alpha != 0, "ZeroDivisionError: alpha cannot be 0 for CELU");
    return pointwise_into<celu_value>(into, input, alpha);
  },
  .saves   = saves<"input">,
  .grads   = grads(d<"input">(formula<celu_grad>)),
})

// The constants keep mean 0 and variance 1 from layer to layer.
POINTWISE(selu_value, (T input),
          select(input > S(0), input * S(1.0507009873554805),
                 expm1(min(input, S(0))) * S(1.7580993408473766)))
POINTWISE(selu_grad, (T g, T input),
          select(input > S(0), g * S(1.0507009873554805),
                 g * exp(select(input >= S(0), S(0), input)) * S(1.7580993408473766)))
OP(selu, "(Tensor input, bool inplace=False) -> Tensor", {
  .home    = "torch nn.functional",
  .doc     = "1.0507 * elu(input, 1.6733): the self-normalizing unit of Klambauer et al. 2017.",
  .dtypes  = floating,
  .variants = function | inplace,
  .forward = formula<selu_value>,
  .saves   = saves<"input">,
  .grads   = grads(d<"input">(formula<selu_grad>)),
})

// ---- smooth -------------------------------------------------------------------------------------

// The approximation is input * sigmoid(2 u) with
// u = sqrt(2 / pi) * (input + 0.044715 * input^3).
POINTWISE(gelu_value, (T input), input * normal_cdf(input))
POINTWISE(gelu_grad, (T g, T input), g * (normal_cdf(input) + input * normal_density(input)))
POINTWISE(gelu_tanh_value, (T input),
          input * sigmoid(input * (S(1.5957691216057308) + S(0.07135481627159602) * input * input)))
POINTWISE(gelu_tanh_gate, (T input),
          sigmoid(input * (S(1.5957691216057308) + S(0.07135481627159602) * input * input)))
POINTWISE(gelu_tanh_grad, (T g, T input, T gate),
          g * gate * (S(1) + input * (S(1) - gate) *
                                 (S(1.5957691216057308) + S(0.2140644488147881) * input * input)))
OP(gelu, "(Tensor input, str approximate='none') -> Tensor", {
  .home    = "nn.functional",
  .doc     = R"(input times the probability that a normal variable is below it.

Hendrycks and Gimpel 2016. approximate='tanh' gives the faster
0.5 * input * (1 + tanh(sqrt(2 / pi) * (input + 0.044715 * input^3))).)",
  .dtypes  = floating,
  .batch   = by_elements,
  .forward = [](const Tensor& input, std::string_view approximate) {
    CHECK(approximate == "none" || approximate == "tanh",
          "approximate argument must be either none or tanh, got ", approximate, ".");
    if (approximate == "none") return pointwise<gelu_value>(input);
    return pointwise<gelu_tanh_value>(input);
  },
  .saves   = saves<"input">,
  .grads   = grads(d<"input">([](const Tensor& g, const Tensor& input,
                                 const std::string& approximate) {
    if (approximate == "none") return evaluate<gelu_grad>(g, input);
    return evaluate<gelu_tanh_grad>(g, input, evaluate<gelu_tanh_gate>(input));
  })),
})

POINTWISE(silu_value, (C input), input * sigmoid(input))
POINTWISE(silu_grad, (C g, C input),
          g * conj(sigmoid(input) * (S(1) + input * (S(1) - sigmoid(input)))))
OP(silu, "(Tensor input, bool inplace=False) -> Tensor", {
  .home    = "nn.functional",
  .doc     = "input * sigmoid(input), also called swish.",
  .dtypes  = floating_or_complex,
  .forward = formula<silu_value>,
  .saves   = saves<"input">,
  .grads   = grads(d<"input">(formula<silu_grad>)),
})

POINTWISE(glu_value, (T input, T gate), input * sigmoid(gate))
POINTWISE(glu_grad_input, (T g, T gate), g * sigmoid(gate))
POINTWISE(glu_grad_gate, (T g, T input, T gate), g * input * sigmoid(gate) * (S(1) - sigmoid(gate)))
OP(_glu, "(Tensor input, Tensor gate) -> Tensor", {
  .home    = "core",
  .doc     = "input * sigmoid(gate).",
  .dtypes  = floating,
  .forward = formula<glu_value>,
  .saves   = saves<"input", "gate">,
  .grads   = grads(d<"input">(formula<glu_grad_input>), d<"gate">(formula<glu_grad_gate>)),
})
OP(glu, "(Tensor input, int dim=-1) -> Tensor", {
  .home    = "nn.functional",
  .doc     = R"(The first half of dim times the sigmoid of the second half. Dauphin et al. 2016.

Example:
    >>> torch.nn.functional.glu(torch.tensor([4.0, 0.0]))
    tensor([2.]))",
  .dtypes  = floating,
  .forward = [](const Tensor& input, int64_t dim) {
    CHECK(input.dim() > 0, "does not support 0-dimensional tensors");
    int64_t size = input.size(dim);
    CHECK(size % 2 == 0, "Halving dimension must be even, but dimension ", dim, " is size ", size);
    // Views of one split, because their gradients are joined, not added.
    Shape lengths{size / 2, size / 2};
    auto halves = call<"split_with_sizes", std::vector<Tensor>>(input, ShapeRef(lengths), dim);
    return call<"_glu", Tensor>(halves[0], halves[1]);
  },
})

POINTWISE(mish_value, (T input), input * tanh_softplus(input))
POINTWISE(mish_grad, (T g, T input),
          g * (tanh_softplus(input) +
               input * sigmoid(input) * (S(1) - tanh_softplus(input) * tanh_softplus(input))))
OP(mish, "(Tensor input, bool inplace=False) -> Tensor", {
  .home    = "nn.functional",
  .doc     = "input * tanh(softplus(input)). Misra 2019.",
  .dtypes  = floating,
  .forward = formula<mish_value>,
  .saves   = saves<"input">,
  .grads   = grads(d<"input">(formula<mish_grad>)),
})

POINTWISE(softplus_value, (T input, S beta, S threshold),
          select(input * beta > threshold, input, log1p(exp(input * beta)) / beta))
POINTWISE(softplus_grad, (T g, T input, S beta, S threshold),
          select(input * beta > threshold, g, g * sigmoid(input * beta)))
OP(softplus, "(Tensor input, float beta=1, float threshold=20) -> Tensor", {
  .home    = "nn.functional",
  .doc     = R"(Smooth relu: log(1 + exp(beta * input)) / beta.

Above input * beta = threshold it returns input, because exp would overflow.)",
  .dtypes  = floating,
  .autocast = autocast::on_cuda(autocast::single),
  .forward = formula<softplus_value>,
  .saves   = saves<"input">,
  .grads   = grads(d<"input">(formula<softplus_grad>)),
})

POINTWISE(logsigmoid_value, (T input), min(input, S(0)) - log1p(exp(-abs(input))))
POINTWISE(logsigmoid_grad, (T g, T input), g * sigmoid(-input))
OP(logsigmoid, "(Tensor input) -> Tensor", {
  .home    = "nn.functional",
  .doc     = "log(sigmoid(input)), where sigmoid alone would round to 0 too.",
  .dtypes  = floating,
  .node    = "log_sigmoid",
  .forward = formula<logsigmoid_value>,
  .saves   = saves<"input">,
  .grads   = grads(d<"input">(formula<logsigmoid_grad>)),
})

POINTWISE(softsign_value, (C input), input / (S(1) + abs(input)))
POINTWISE(softsign_grad, (T g, T input), g / ((S(1) + abs(input)) * (S(1) + abs(input))))
OP(softsign, "(Tensor input) -> Tensor", {
  .home    = "nn.functional",
  .doc     = "input / (1 + abs(input)).",
  .forward = formula<softsign_value>,
  .saves   = saves<"input">,
  .grads   = grads(d<"input">([](const Tensor& g, const Tensor& input) {
    if (!is_complex(input.dtype())) return evaluate<softsign_grad>(g, input);
    Tensor scale = abs(input) + 1, along = call<"real", Tensor>(conj(g) * input);
    return g / scale - sgn(input) * along / (scale * scale);
  })),
})

POINTWISE(tanhshrink_value, (C input), input - tanh(input))
POINTWISE(tanhshrink_grad, (C g, C input), g * conj(tanh(input) * tanh(input)))
OP(tanhshrink, "(Tensor input) -> Tensor", {
  .home    = "nn.functional",
  .doc     = "input - tanh(input).",
  .forward = formula<tanhshrink_value>,
  .saves   = saves<"input">,
  .grads   = grads(d<"input">(formula<tanhshrink_grad>)),
})

}  // namespace rushlight
