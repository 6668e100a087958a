// Owns the formulas of the losses that compare input and target element by element.
// loss_elements.cpp weights and reduces them.
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

POINTWISE(smooth_l1_value, (T input, T target, S beta),
          select(abs(input - target) < beta,
                 S(0.5) * (input - target) * (input - target) / beta,
                 abs(input - target) - S(0.5) * beta))
POINTWISE(smooth_l1_grad, (T g, T input, T target, S beta),
          g * clamp((input - target) / beta, S(-1), S(1)))
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

}  // namespace rushlight
