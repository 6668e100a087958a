// Owns cross_entropy. Rows of logits with classes as targets have fused kernels on the CPU: neither
// the log-probabilities nor the gradient of nll_loss are ever written. The rest is made of
// log_softmax and nll_loss.
#include "core/ops/loss/loss.h"
#include "core/ops/op.h"
#include "core/ops/operands.h"

namespace rushlight {
namespace {

CrossEntropy how_of(int64_t ignore_index, int64_t reduction, double smoothing) {
  return {ignore_index, LossReduction{reduction}, smoothing};
}

// What multiplies the probabilities in the gradient of the logits, (N, 1): the gradient of the loss
// times the weights of the target and, for the smoothed part, of all classes.
Tensor slopes_of(const Tensor& grad, const Tensor& target, const Tensor& weight,
                 const Tensor& total_weight, int64_t classes, const CrossEntropy& how) {
  Tensor ignored = target == Scalar(how.ignore_index);
  Tensor scale = full(target.sizes(), 1.0, grad.dtype(), grad.device());
  if (weight.defined()) {
    Tensor known = where(ignored, zeros_like(target), target);
    Tensor own = call<"index_select", Tensor>(weight, int64_t(0), known);
    scale = own * (1 - how.smoothing) + sum(weight) * (how.smoothing / double(classes));
  }
  scale = select(ignored, 0.0, scale) * grad;
  return unsqueeze(how.reduction == LossReduction::mean ? scale / total_weight : scale, 1);
}

// cross_entropy with probabilities as targets: -sum_c log_probs * target * weight.
Tensor soft_cross_entropy(const Tensor& log_probs, const Tensor& target, const Tensor& weights,
                          int64_t dim, LossReduction reduction) {
  Tensor product = log_probs * target;
  if (weights.defined()) product = product * weights;
  if (reduction == LossReduction::none) return -sum(product, Shape{dim});
  if (reduction == LossReduction::sum) return -sum(product);
  int64_t positions = log_probs.numel() / std::max<int64_t>(1, log_probs.sizes()[size_t(dim)]);
  return -sum(product) / double(positions);
}

// The same for classes, of any shape.
Tensor composed_cross_entropy(const Tensor& log_probs, const Tensor& target, const Tensor& weight,
                              const Tensor& weights, int64_t dim, const CrossEntropy& how) {
  auto [loss, total_weight] = call<"nll_loss_kernel", std::tuple<Tensor, Tensor>>(
      log_probs, target, weight, how.ignore_index, int64_t(how.reduction));
  if (how.smoothing == 0) return loss;
  Tensor uniform = -sum(weights.defined() ? log_probs * weights : log_probs, Shape{dim});
  uniform = where(target == Scalar(how.ignore_index), wrapped_number(0.0), uniform);
  if (how.reduction == LossReduction::sum) uniform = sum(uniform);
  if (how.reduction == LossReduction::mean)
    uniform = cast(sum(uniform) / detach(total_weight), loss.dtype());
  int64_t classes = log_probs.sizes()[size_t(dim)];
  return loss * (1 - how.smoothing) + uniform * (how.smoothing / double(classes));
}

// Whether the kernels take these arguments.
bool has_kernel(const Tensor& input, const Tensor& target, const Tensor& weight) {
  for (const Tensor* t : {&input, &target, &weight})
    if (t->defined() && (t->is_hollow() || !t->device().is_cpu())) return false;
  return input.dim() == 2 && input.size(1) > 0 && !is_half(input.dtype());
}

}  // namespace

OP(cross_entropy_kernel,
   "_cross_entropy(Tensor input, Tensor target, Tensor? weight, int ignore_index, int reduction, "
   "float smoothing) -> (Tensor output, Tensor normalizer, Tensor total_weight)", {
  .home    = "core",
  .doc     = R"(cross_entropy of rows (N, C), with what its gradient needs; see loss.h.

The caller has checked the targets.)",
  .dtypes  = floating,
  .node    = "nll_loss",
  .gpu     = none<"on CUDA cross_entropy is made of log_softmax and nll_loss">,
  .forward = [](const Tensor& input, const Tensor& target, const Tensor& weight,
                int64_t ignore_index, int64_t reduction, double smoothing) {
    CrossEntropy how = how_of(ignore_index, reduction, smoothing);
    DType dtype = input.dtype();
    Shape sizes = how.reduction == LossReduction::none ? Shape{input.size(0)} : Shape();
    Tensor output = empty(sizes, dtype, input.device());
    Tensor normalizer = empty(Shape{2, input.size(0)}, dtype, input.device());
    Tensor total_weight = empty(Shape(), dtype, input.device());
    if (input.device().is_cpu())
      cross_entropy_cpu(to_contiguous(input), prepared(target, DType::int64),
                        prepared(weight, dtype), how, output, normalizer, total_weight);
    return std::tuple(output, normalizer, total_weight);
  },
  .saves   = saves<"input", "target", "weight", "normalizer", "total_weight">,
  .grads   = grads(
      d<"input">([](TensorList grads, const Tensor& input, const Tensor& target,
                    const Tensor& weight, const Tensor& normalizer, const Tensor& total_weight,
                    int64_t ignore_index, int64_t reduction, double smoothing) {
        return call<"cross_entropy_backward", Tensor>(grads[0], input, normalizer, target, weight,
                                                      total_weight, ignore_index, reduction,
                                                      smoothing);
      }),
      no_grad<"target">, no_grad<"weight">),
})

OP(cross_entropy_backward,
   "_cross_entropy_backward(Tensor grad, Tensor input, Tensor normalizer, Tensor target, "
   "Tensor? weight, Tensor total_weight, int ignore_index, int reduction, float smoothing) -> "
   "Tensor", {
  .home    = "core",
  .doc     = R"(The gradient of cross_entropy: softmax(input) - 1 at the target, times weights.)",
  .dtypes  = floating,
  .gpu     = none<"on CUDA cross_entropy is made of log_softmax and nll_loss">,
  .batch   = [](const Batch& batch, const Tensor&, const Tensor&, const Tensor&, const Tensor&,
                const Tensor& weight, const Tensor& total_weight, int64_t ignore_index,
                int64_t reduction, double smoothing) {
    ASSERT(!batch.has("weight"));
    LossReduction how{reduction};
    Tensor x = batch.full("input"), g = batch.full("grad");
    int64_t samples = x.size(0), rows = x.size(1), classes = x.size(2);
    if (how == LossReduction::mean) g = g / batch.full("total_weight");
    if (how != LossReduction::none) g = expand(unsqueeze(g, 1), Shape{samples, rows});
    Shape row{samples * rows};
    Tensor normalizer = transpose(batch.full("normalizer"), 0, 1);  // (2, samples, rows)
    Tensor result = call<"cross_entropy_backward", Tensor>(
        reshape(g, row), reshape(x, Shape{samples * rows, classes}),
        reshape(normalizer, Shape{2, samples * rows}), reshape(batch.full("target"), row), weight,
        total_weight, ignore_index, int64_t(LossReduction::none), smoothing);
    return reshape(result, x.sizes());
  },
  .forward = [](const Tensor& grad, const Tensor& input, const Tensor& normalizer,
                const Tensor& target, const Tensor& weight, const Tensor& total_weight,
                int64_t ignore_index, int64_t reduction, double smoothing) {
    check_class_sizes(input.sizes(), target, weight);
    CHECK(normalizer.size(1) == input.size(0), "input had ", normalizer.size(1),
          " rows in the forward pass and now has shape ", input.sizes(),
          ". Do not replace its .data by that of another shape.");
    DType dtype = input.dtype();
    Tensor grad_input = empty(input.sizes(), dtype, input.device());
    if (input.device().is_cpu())
      cross_entropy_backward_cpu(prepared(grad, dtype), to_contiguous(input),
                                 to_contiguous(normalizer), prepared(target, DType::int64),
                                 prepared(weight, dtype), total_weight,
                                 how_of(ignore_index, reduction, smoothing), grad_input);
    return grad_input;
  },
  .saves   = saves<"grad", "input", "normalizer", "target", "weight", "total_weight">,
  .grads   = grads(
      // Linear in grad: the gradient of a loss of 1, summed over what shares an element of grad.
      d<"grad">(uses<"input", "normalizer", "target", "weight", "total_weight">,
                [](const Tensor& g, const Tensor& input, const Tensor& normalizer,
                   const Tensor& target, const Tensor& weight, const Tensor& total_weight,
                   int64_t ignore_index, int64_t reduction, double smoothing) {
        LossReduction how{reduction};
        Shape sizes = how == LossReduction::none ? Shape{input.size(0)} : Shape();
        Tensor slopes = g * call<"cross_entropy_backward", Tensor>(
                                full(sizes, 1.0, input.dtype(), input.device()), input, normalizer,
                                target, weight, total_weight, ignore_index, reduction, smoothing);
        return how == LossReduction::none ? sum(slopes, Shape{1}) : sum(slopes);
      }),
      d<"input">(uses<"grad", "input", "target", "weight", "total_weight">,
                 [](const Tensor& g, const Tensor& grad, const Tensor& input, const Tensor& target,
                    const Tensor& weight, const Tensor& total_weight, int64_t ignore_index,
                    int64_t reduction, double smoothing) {
        Tensor slopes = slopes_of(grad, target, weight, total_weight, input.size(1),
                                  how_of(ignore_index, reduction, smoothing));
        return call<"_softmax_backward", Tensor>(g * slopes, softmax(input, 1), int64_t(1));
      }),
      // It depends on input, whose gradient includes this one.
      no_grad<"normalizer">, no_grad<"target">, no_grad<"weight">, no_grad<"total_weight">),
})

OP(cross_entropy,
   "(Tensor input, Tensor target, Tensor? weight=None, bool? size_average=None, "
   "int ignore_index=-100, bool? reduce=None, str reduction='mean', float label_smoothing=0.0) "
   "-> Tensor", {
  .home    = "nn.functional",
  .doc     = R"(The cross entropy of classes given logits: nll_loss of log_softmax.

target holds classes, or probabilities in the shape of input. label_smoothing mixes that share of
the uniform distribution into the target (Szegedy et al. 2016).
Raises IndexError for a class outside [0, C) that is not ignore_index; on CUDA, where that would
wait for the GPU, its loss is NaN instead.)",
  .dtypes  = floating,
  .autocast = autocast::single,
  .forward = [](const Tensor& input, const Tensor& given, const Tensor& weight, Legacy size_average,
                int64_t ignore_index, Legacy reduce, std::string_view reduction,
                double smoothing) {
    CrossEntropy how{ignore_index, parse_reduction(reduction_of(reduction, size_average, reduce)),
                     smoothing};
    Tensor target = as_class_target(input, given);
    CHECK(smoothing >= 0 && smoothing <= 1,
          "label_smoothing must be between 0.0 and 1.0. Got: ", smoothing);
    CHECK(input.dim() > 0, "input must have at least one dim: the classes. Got a 0-d tensor");
    int64_t dim = class_dim(input), classes = input.sizes()[size_t(dim)];
    bool soft = target.sizes() == input.sizes();
    CHECK(!soft || is_floating(target.dtype()),
          "Expected floating point type for target with class probabilities, got ",
          dtype_name(target.dtype()), ". Use target.float().");
    CHECK(!soft || ignore_index < 0,
          "ignore_index is not supported for floating point target, got ", ignore_index, ".");
    if (!soft) check_class_loss(input, target, weight, ignore_index);
    if (!soft && has_kernel(input, target, weight))
      return std::get<0>(call<"cross_entropy_kernel", std::tuple<Tensor, Tensor, Tensor>>(
          input, target, weight, ignore_index, int64_t(how.reduction), smoothing));
    Tensor log_probs = log_softmax(input, dim);
    Tensor weights;  // of the rank of input
    check_class_weight(weight, classes);
    if (weight.defined()) {
      Shape sizes(size_t(input.dim()), 1);
      sizes[size_t(dim)] = classes;
      weights = reshape(weight, sizes);
    }
    if (!soft) return composed_cross_entropy(log_probs, target, weight, weights, dim, how);
    double share = smoothing / double(std::max<int64_t>(classes, 1));
    Tensor mixed = smoothing > 0 ? target * (1 - smoothing) + share : target;
    return soft_cross_entropy(log_probs, mixed, weights, dim, how.reduction);
  },
})

}  // namespace rushlight
