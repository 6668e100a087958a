// Owns the losses that compare input and target element by element. Each has a private op for the
// elements, and a public one that weights and reduces them. Losses over classes are in loss.cpp.
#include "core/ops/op.h"

namespace rushlight {

// ---- of differences -----------------------------------------------------------------------------

POINTWISE(squared_error_value, (T input, T target), (input - target) * (input - target))
POINTWISE(squared_error_grad, (T g, T input, T target), g * (input - target) * S(2))
OP(_squared_error, "(Tensor input, Tensor target) -> Tensor", {
  .home    = "private",
  .doc     = "(input - target)^2.",
  .dtypes  = floating,
  .forward = formula<squared_error_value>,
  .saves   = saves<"input", "target">,
  .grads   = grads(
      d<"input">(formula<squared_error_grad>),
      d<"target">([](const Tensor& g, const Tensor& input, const Tensor& target) {
        return evaluate<squared_error_grad>(g, target, input);
      })),
})
OP(mse_loss, "(Tensor input, Tensor target, str reduction='mean', Tensor? weight=None) -> Tensor", {
  .home    = "nn.functional",
  .doc     = R"(The squared differences: (input - target)^2.

With a weight for each element, the mean is over the weights.)",
  .dtypes  = floating,
  .forward = [](const Tensor& input, const Tensor& target, std::string_view reduction,
                const Tensor& weight) {
    Tensor errors = call<"_squared_error", Tensor>(input, target);
    return reduce_weighted_loss(errors, weight, input, reduction);
  },
})

POINTWISE(absolute_error_value, (C input, C target), abs(input - target))
POINTWISE(absolute_error_grad, (C g, C input, C target), g * sgn(input - target))
OP(_absolute_error, "(Tensor input, Tensor target) -> Tensor", {
  .home    = "private",
  .doc     = "|input - target|.",
  .dtypes  = numeric,
  .forward = formula<absolute_error_value>,
  .saves   = saves<"input", "target">,
  .grads   = grads(
      d<"input">(formula<absolute_error_grad>),
      d<"target">([](const Tensor& g, const Tensor& input, const Tensor& target) {
        return evaluate<absolute_error_grad>(g, target, input);
      })),
})
OP(l1_loss, "(Tensor input, Tensor target, str reduction='mean', Tensor? weight=None) -> Tensor", {
  .home    = "nn.functional",
  .doc     = R"(The absolute differences: |input - target|.

With a weight for each element, the mean is over the weights.)",
  .dtypes  = numeric,
  .forward = [](const Tensor& input, const Tensor& target, std::string_view reduction,
                const Tensor& weight) {
    bool whole = is_integral(input.dtype()) && is_integral(target.dtype());
    Tensor errors = whole ? maximum(input, target) - minimum(input, target)
                          : call<"_absolute_error", Tensor>(input, target);
    return reduce_weighted_loss(errors, weight, input, reduction);
  },
})

POINTWISE(smooth_l1_value, (T input, T target, S beta),
          select(abs(input - target) < beta,
                 S(0.5) * (input - target) * (input - target) / beta,
                 abs(input - target) - S(0.5) * beta))
POINTWISE(smooth_l1_grad, (T g, T input, T target, S beta),
          select(abs(input - target) < beta, g * (input - target) / beta, g * sgn(input - target)))
OP(_smooth_l1, "(Tensor input, Tensor target, float beta) -> Tensor", {
  .home    = "private",
  .doc     = "The elements of smooth_l1_loss.",
  .dtypes  = floating,
  .forward = formula<smooth_l1_value>,
  .saves   = saves<"input", "target">,
  .grads   = grads(
      d<"input">(formula<smooth_l1_grad>),
      d<"target">([](const Tensor& g, const Tensor& input, const Tensor& target, double beta) {
        return evaluate<smooth_l1_grad>(g, target, input, beta);
      })),
})
OP(smooth_l1_loss,
   "(Tensor input, Tensor target, str reduction='mean', float beta=1.0) -> Tensor", {
  .home    = "nn.functional",
  .doc     = R"(Squared differences close to zero, absolute ones further away (Girshick 2015).

d^2 / (2 * beta) where d = |input - target| is below beta, d - beta / 2 elsewhere.)",
  .dtypes  = floating,
  .forward = [](const Tensor& input, const Tensor& target, std::string_view reduction,
                double beta) {
    CHECK(beta >= 0, "smooth_l1_loss does not support negative values for beta, got ", beta, ".");
    if (beta == 0) return reduce_loss(call<"_absolute_error", Tensor>(input, target), reduction);
    return reduce_loss(call<"_smooth_l1", Tensor>(input, target, beta), reduction);
  },
})

POINTWISE(huber_value, (T input, T target, S delta),
          select(abs(input - target) <= delta,
                 S(0.5) * (input - target) * (input - target),
                 delta * (abs(input - target) - S(0.5) * delta)))
POINTWISE(huber_grad, (T g, T input, T target, S delta), g * clamp(input - target, -delta, delta))
OP(_huber, "(Tensor input, Tensor target, float delta) -> Tensor", {
  .home    = "private",
  .doc     = "The elements of huber_loss.",
  .dtypes  = floating,
  .forward = formula<huber_value>,
  .saves   = saves<"input", "target">,
  .grads   = grads(
      d<"input">(formula<huber_grad>),
      d<"target">([](const Tensor& g, const Tensor& input, const Tensor& target, double delta) {
        return evaluate<huber_grad>(g, target, input, delta);
      })),
})
OP(huber_loss,
   "(Tensor input, Tensor target, str reduction='mean', float delta=1.0, Tensor? weight=None)"
   " -> Tensor", {
  .home    = "nn.functional",
  .doc     = R"(Squared differences up to delta, linear beyond (Huber 1964).

d^2 / 2 where d = |input - target| is at most delta, delta * (d - delta / 2) elsewhere.)",
  .dtypes  = floating,
  .forward = [](const Tensor& input, const Tensor& target, std::string_view reduction,
                double delta, const Tensor& weight) {
    CHECK(delta > 0, "does not support non-positive values for delta, got ", delta, ".");
    Tensor losses = call<"_huber", Tensor>(input, target, delta);
    CHECK(!weight.defined() || weight.sizes() == input.sizes(), ErrorKind::kValue,
          "Weights and input must have the same size, but have ", weight.sizes(), " and ",
          input.sizes(), ".");
    return reduce_loss(weight.defined() ? losses * weight : losses, reduction);
  },
})

// ---- of probabilities ---------------------------------------------------------------------------

// Logarithms stop at -100, so that a certain mistake costs 100 and not infinity.
POINTWISE(binary_cross_entropy_value, (T input, T target),
          (target - S(1)) * max(log1p(-input), S(-100)) - target * max(log(input), S(-100)))
POINTWISE(binary_cross_entropy_grad_input, (T g, T input, T target),
          g * (input - target) / max((S(1) - input) * input, S(1e-12)))
POINTWISE(binary_cross_entropy_grad_target, (T g, T input),
          g * (max(log1p(-input), S(-100)) - max(log(input), S(-100))))
POINTWISE(is_probability, (T input), (input >= S(0)) & (input <= S(1)))
OP(_binary_cross_entropy, "(Tensor input, Tensor target) -> Tensor", {
  .home    = "private",
  .doc     = "The elements of binary_cross_entropy.",
  .dtypes  = floating,
  .batch   = by_elements,
  .forward = [](const Tensor& input, const Tensor& target) {
    // On CUDA the check would wait for the GPU, and the logarithms give NaN anyway.
    CHECK(!input.device().is_cpu() || all_true(pointwise<is_probability>(input)),
          "all elements of input should be between 0 and 1. Apply sigmoid first, or call "
          "binary_cross_entropy_with_logits.");
    CHECK(!target.device().is_cpu() || all_true(pointwise<is_probability>(target)),
          "all elements of target should be between 0 and 1. Pass probabilities.");
    return pointwise<binary_cross_entropy_value>(input, target);
  },
  .saves   = saves<"input", "target">,
  .grads   = grads(d<"input">(formula<binary_cross_entropy_grad_input>),
                   d<"target">(formula<binary_cross_entropy_grad_target>)),
})
OP(binary_cross_entropy,
   "(Tensor input, Tensor target, Tensor? weight=None, str reduction='mean') -> Tensor", {
  .home    = "nn.functional",
  .doc     = R"(The cross entropy of probabilities.

-(target * log(input) + (1 - target) * log(1 - input)); logarithms stop at -100. Raises RuntimeError
for an input outside [0, 1]; on CUDA, where that would wait for the GPU, its loss is NaN instead.
binary_cross_entropy_with_logits is more accurate than sigmoid and this.)",
  .dtypes  = floating,
  .forward = [](const Tensor& input, const Tensor& target, const Tensor& weight,
                std::string_view reduction) {
    CHECK(target.sizes() == input.sizes(), ErrorKind::kValue, "Using a target size ",
          target.sizes(), " that is different to the input size ", input.sizes(),
          " is deprecated. Please ensure they have the same size.");
    Tensor losses = call<"_binary_cross_entropy", Tensor>(input, target);
    return reduce_loss(weight.defined() ? losses * weight : losses, reduction);
  },
})

POINTWISE(logits_loss_value, (T input, T target), softplus(input) - input * target)
POINTWISE(logits_loss_grad_input, (T g, T input, T target), g * (sigmoid(input) - target))
POINTWISE(logits_loss_grad_target, (T g, T input), -g * input)
OP(_logits_loss, "(Tensor input, Tensor target) -> Tensor", {
  .home    = "private",
  .doc     = "The elements of binary_cross_entropy_with_logits.",
  .dtypes  = floating,
  .forward = formula<logits_loss_value>,
  .saves   = saves<"input", "target">,
  .grads   = grads(d<"input">(formula<logits_loss_grad_input>),
                   d<"target">(formula<logits_loss_grad_target>)),
})
OP(binary_cross_entropy_with_logits,
   "(Tensor input, Tensor target, Tensor? weight=None, str reduction='mean', "
   "Tensor? pos_weight=None) -> Tensor", {
  .home    = "nn.functional",
  .doc     = R"(The cross entropy of sigmoid(input), without the rounding of sigmoid.

log(1 + exp(input)) - input * target; pos_weight multiplies the part of target.

Example:
    >>> loss = torch.nn.functional.binary_cross_entropy_with_logits
    >>> loss(torch.tensor([1000.0]), torch.tensor([0.0]))
    tensor(1000.))",
  .dtypes  = floating,
  .forward = [](const Tensor& input, const Tensor& target, const Tensor& weight,
                std::string_view reduction, const Tensor& pos_weight) {
    CHECK(target.sizes() == input.sizes(), ErrorKind::kValue, "Target size ", target.sizes(),
          " must be the same as input size ", input.sizes());
    Tensor losses = call<"_logits_loss", Tensor>(input, target);
    if (pos_weight.defined())
      losses = losses + target * (pos_weight - 1) * (softplus(input) - input);
    return reduce_loss(weight.defined() ? losses * weight : losses, reduction);
  },
})

OP(kl_div,
   "(Tensor input, Tensor target, str reduction='mean', bool log_target=False) -> Tensor", {
  .home    = "nn.functional",
  .doc     = R"(The Kullback-Leibler divergence: target * (log(target) - input).

input holds logarithms, and with log_target target does too. reduction='batchmean' divides the sum
by the batch size.)",
  .dtypes  = floating,
  .forward = [](const Tensor& input, const Tensor& target, std::string_view reduction,
                bool log_target) {
    Tensor losses = log_target ? exp(target) * (target - input)
                               : xlogy(target, target) - target * input;
    if (reduction != "batchmean") return reduce_loss(losses, reduction);
    return sum(losses) / double(input.dim() ? input.size(0) : 1);
  },
})

// ---- of signs and counts ------------------------------------------------------------------------

OP(soft_margin_loss, "(Tensor input, Tensor target, str reduction='mean') -> Tensor", {
  .home    = "nn.functional",
  .doc     = "The logistic loss of targets 1 and -1: log(1 + exp(-target * input)).",
  .dtypes  = floating_or_complex,
  .forward = [](const Tensor& input, const Tensor& target, std::string_view reduction) {
    Tensor z = -target * input;
    return reduce_loss(is_complex(z.dtype()) ? log1p(exp(z)) : softplus(z), reduction);
  },
})

OP(poisson_nll_loss,
   "(Tensor input, Tensor target, bool log_input=True, bool full=False, float eps=1e-08, "
   "str reduction='mean') -> Tensor", {
  .home    = "nn.functional",
  .doc     = R"(The negative log likelihood of counts: exp(input) - target * input.

Without log_input, input - target * log(input + eps). With full, Stirling's approximation of
log(target!) is added where target is above 1.)",
  .dtypes  = numeric,
  .forward = [](const Tensor& input, const Tensor& target, bool log_input, bool full, double eps,
                std::string_view reduction) {
    Tensor losses = log_input ? exp(input) - target * input : input - target * log(input + eps);
    if (full) {
      Tensor stirling = target * log(target) - target + log(target * 6.283185307179586) * 0.5;
      losses = losses + select(target <= 1, 0.0, stirling);
    }
    return reduce_loss(losses, reduction);
  },
})

}  // namespace rushlight
