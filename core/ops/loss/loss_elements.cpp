// Owns the losses that compare input and target element by element: what weights and reduces the
// formulas of loss_pointwise.cpp. Losses over classes are in loss.cpp, those of margins and
// distances in loss_margin.cpp.
//
// Where PyTorch has its former arguments size_average and reduce they are taken and warned of.
#include "core/ops/loss/loss.h"
#include "core/ops/op.h"

namespace rushlight {

// Input and target in one shape, where one without dims counts for the dtype as much as the other.
static std::pair<Tensor, Tensor> in_one_shape(const Tensor& input, const Tensor& target) {
  warn_of_broadcast(input, target);
  if (input.sizes() == target.sizes()) return {input, target};
  Shape sizes = broadcast_shapes(input.sizes(), target.sizes());
  return {expand(input, sizes), expand(target, sizes)};
}

// An operand of integers or truth values as one of floats, where the other has those.
static Tensor in_floats(const Tensor& operand, const Tensor& other) {
  bool differ = !is_differentiable(operand.dtype()) && is_floating(other.dtype());
  return differ ? cast(operand, other.dtype()) : operand;
}

// Losses in the dtype of the argument that PyTorch's have, whatever the others are of.
static Tensor in_dtype_of(const Tensor& argument, const Tensor& losses) {
  bool keeps_all =
      is_floating(argument.dtype()) ? is_floating(losses.dtype()) : is_complex(argument.dtype());
  return keeps_all ? cast(losses, argument.dtype()) : losses;
}

OP(mse_loss,
   "(Tensor input, Tensor target, bool? size_average=None, bool? reduce=None, "
   "str reduction='mean', Tensor? weight=None) -> Tensor", {
  .home    = "nn.functional",
  .doc     = R"(The squared differences: (input - target)^2.

With a weight for each element, the mean is over the weights.)",
  .dtypes  = real,
  .autocast = autocast::single,
  .forward = [](const Tensor& input, const Tensor& target, Legacy size_average, Legacy reduce,
                std::string_view reduction, const Tensor& weight) {
    auto [x, y] = in_one_shape(input, target);
    std::string_view how = reduction_of(reduction, size_average, reduce);
    Tensor errors = call<"_squared_error", Tensor>(in_floats(x, y), in_floats(y, x));
    return reduce_weighted_loss(errors, weight, input, how);
  },
})

OP(l1_loss,
   "(Tensor input, Tensor target, bool? size_average=None, bool? reduce=None, "
   "str reduction='mean', Tensor? weight=None) -> Tensor", {
  .home    = "nn.functional",
  .doc     = R"(The absolute differences: |input - target|.

With a weight for each element, the mean is over the weights.)",
  .dtypes  = numeric,
  .autocast = autocast::single,
  .forward = [](const Tensor& input, const Tensor& target, Legacy size_average, Legacy reduce,
                std::string_view reduction, const Tensor& weight) {
    auto [x, y] = in_one_shape(input, target);
    std::string_view how = reduction_of(reduction, size_average, reduce);
    bool whole = is_integral(x.dtype()) && is_integral(y.dtype());
    // Gradients read the difference, so that the program may write to what it compared.
    bool recorded = is_grad_enabled() && (detail::wants_grad(x) || detail::wants_grad(y));
    Tensor errors = whole      ? maximum(x, y) - minimum(x, y)
                    : recorded ? abs(x - y)
                               : call<"_absolute_error", Tensor>(x, y);
    return reduce_weighted_loss(errors, weight, input, how);
  },
})

OP(smooth_l1_loss,
   "(Tensor input, Tensor target, bool? size_average=None, bool? reduce=None, "
   "str reduction='mean', float beta=1.0) -> Tensor", {
  .home    = "nn.functional",
  .doc     = R"(Squared differences close to zero, absolute ones further away (Girshick 2015).

d^2 / (2 * beta) where d = |input - target| is below beta, d - beta / 2 elsewhere.)",
  .dtypes  = real,
  .autocast = autocast::single,
  .forward = [](const Tensor& input, const Tensor& target, Legacy size_average, Legacy reduce,
                std::string_view reduction, double beta) {
    auto [whole_input, whole_target] = in_one_shape(input, target);
    std::string_view how = reduction_of(reduction, size_average, reduce);
    CHECK(beta >= 0, "smooth_l1_loss does not support negative values for beta, got ", beta, ".");
    Tensor x = in_floats(whole_input, whole_target), y = in_floats(whole_target, whole_input);
    if (beta == 0) return reduce_loss(call<"_absolute_error", Tensor>(x, y), how);
    return reduce_loss(call<"_smooth_l1", Tensor>(x, y, beta), how);
  },
})

OP(huber_loss,
   "(Tensor input, Tensor target, str reduction='mean', float delta=1.0, Tensor? weight=None)"
   " -> Tensor", {
  .home    = "nn.functional",
  .doc     = R"(Squared differences up to delta, linear beyond (Huber 1964).

d^2 / 2 where d = |input - target| is at most delta, delta * (d - delta / 2) elsewhere.)",
  .dtypes  = floating,
  .autocast = autocast::single,
  .forward = [](const Tensor& input, const Tensor& target, std::string_view reduction,
                double delta, const Tensor& weight) {
    auto [x, y] = in_one_shape(input, target);
    CHECK(delta > 0, "does not support non-positive values for delta, got ", delta, ".");
    Tensor errors = call<"_huber", Tensor>(x, in_floats(y, x), delta);
    Tensor losses = in_dtype_of(input, errors);
    return reduce_loss(weighted_losses(losses, weight, input), reduction);
  },
})

OP(binary_cross_entropy,
   "(Tensor input, Tensor target, Tensor? weight=None, bool? size_average=None, "
   "bool? reduce=None, str reduction='mean') -> Tensor", {
  .home    = "nn.functional",
  .doc     = R"(The cross entropy of probabilities.

-(target * log(input) + (1 - target) * log(1 - input)); logarithms stop at -100. Raises RuntimeError
for an input outside [0, 1]; on CUDA, where that would wait for the GPU, its loss is NaN instead.
binary_cross_entropy_with_logits is more accurate than sigmoid and this.)",
  .dtypes  = floating,
  .autocast = autocast::single,
  .forward = [](const Tensor& input, const Tensor& target, const Tensor& weight,
                Legacy size_average, Legacy reduce, std::string_view reduction) {
    CHECK(target.sizes() == input.sizes(), ErrorKind::kValue, "Using a target size ",
          target.sizes(), " that is different to the input size ", input.sizes(),
          " is deprecated. Please ensure they have the same size.");
    Tensor losses = call<"_binary_cross_entropy", Tensor>(input, target);
    return reduce_loss(weight.defined() ? in_dtype_of(losses, losses * weight) : losses,
                       reduction_of(reduction, size_average, reduce));
  },
})

OP(binary_cross_entropy_with_logits,
   "(Tensor input, Tensor target, Tensor? weight=None, bool? size_average=None, "
   "bool? reduce=None, str reduction='mean', Tensor? pos_weight=None) -> Tensor", {
  .home    = "nn.functional",
  .doc     = R"(The cross entropy of sigmoid(input), without the rounding of sigmoid.

log(1 + exp(input)) - input * target; pos_weight multiplies the part of target.

Example:
    >>> loss = torch.nn.functional.binary_cross_entropy_with_logits
    >>> loss(torch.tensor([1000.0]), torch.tensor([0.0]))
    tensor(1000.))",
  .dtypes  = floating,
  .autocast = autocast::single,
  .forward = [](const Tensor& input, const Tensor& target, const Tensor& weight,
                Legacy size_average, Legacy reduce, std::string_view reduction,
                const Tensor& pos_weight) {
    CHECK(target.sizes() == input.sizes(), ErrorKind::kValue, "Target size ", target.sizes(),
          " must be the same as input size ", input.sizes());
    Tensor losses = call<"_logits_loss", Tensor>(input, target);
    if (pos_weight.defined())
      losses = losses + target * (pos_weight - 1) * softplus(-input);
    if (weight.defined()) losses = losses * weight;
    return reduce_loss(in_dtype_of(is_floating(target.dtype()) ? target : input, losses),
                       reduction_of(reduction, size_average, reduce));
  },
})

OP(kl_div,
   "(Tensor input, Tensor target, bool? size_average=None, bool? reduce=None, "
   "str reduction='mean', bool log_target=False) -> Tensor", {
  .home    = "nn.functional",
  .doc     = R"(The Kullback-Leibler divergence: target * (log(target) - input).

input holds logarithms, and with log_target target does too. reduction='batchmean' divides the sum
by the batch size.)",
  .dtypes  = floating,
  .autocast = autocast::single,
  .forward = [](const Tensor& input, const Tensor& target, Legacy size_average, Legacy reduce,
                std::string_view reduction, bool log_target) {
    std::string_view how = reduction_of(reduction, size_average, reduce);
    if (how == "mean" && !size_average && !reduce && warn_user)
      warn_user(
          "reduction: 'mean' divides the total loss by both the batch size and the support size."
          "'batchmean' divides only by the batch size, and aligns with the KL div math definition."
          "'mean' will be changed to behave the same as 'batchmean' in the next major release.");
    Tensor losses = log_target ? exp(target) * (target - input)
                               : xlogy(target, target) - target * input;
    if (how != "batchmean") return reduce_loss(losses, how);
    return sum(losses) / double(input.dim() ? input.size(0) : 1);
  },
})

OP(soft_margin_loss,
   "(Tensor input, Tensor target, bool? size_average=None, bool? reduce=None, "
   "str reduction='mean') -> Tensor", {
  .home    = "nn.functional",
  .doc     = "The logistic loss of targets 1 and -1: log(1 + exp(-target * input)).",
  .dtypes  = floating_or_complex,
  .autocast = autocast::single,
  .forward = [](const Tensor& input, const Tensor& target, Legacy size_average, Legacy reduce,
                std::string_view reduction) {
    Tensor z = -(target * input);
    return reduce_loss(in_dtype_of(input, is_complex(z.dtype()) ? log1p(exp(z)) : softplus(z)),
                       reduction_of(reduction, size_average, reduce));
  },
})

OP(poisson_nll_loss,
   "(Tensor input, Tensor target, bool log_input=True, bool full=False, "
   "bool? size_average=None, float eps=1e-08, bool? reduce=None, str reduction='mean') -> "
   "Tensor", {
  .home    = "nn.functional",
  .doc     = R"(The negative log likelihood of counts: exp(input) - target * input.

Without log_input, input - target * log(input + eps). With full, Stirling's approximation of
log(target!) is added where target is above 1.)",
  .dtypes  = numeric,
  .autocast = autocast::single,
  .forward = [](const Tensor& input, const Tensor& target, bool log_input, bool full,
                Legacy size_average, double eps, Legacy reduce, std::string_view reduction) {
    Tensor losses = log_input ? exp(input) - target * input : input - target * log(input + eps);
    if (full) {
      Tensor stirling = target * log(target) - target + log(target * 6.283185307179586) * 0.5;
      losses = losses + in_dtype_of(losses, select(target <= 1, 0.0, stirling));
    }
    return reduce_loss(losses, reduction_of(reduction, size_average, reduce));
  },
})

}  // namespace rushlight
