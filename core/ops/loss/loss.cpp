// Owns nll_loss, and the checks of losses over classes. loss_cross_entropy.cpp has cross_entropy.
#include "core/ops/loss/loss.h"

#include "core/ops/op.h"
#include "core/ops/operands.h"
#include "core/ops/same_device.h"
#include "core/tensor/values.h"

namespace rushlight {
namespace {

NllShape nll_shape(const Shape& sizes) {
  if (sizes.size() == 1) return {1, sizes[0], 1};
  int64_t inner = 1;
  for (size_t d = 2; d < sizes.size(); ++d) inner *= sizes[d];
  return {sizes[0], sizes[1], inner};
}

Shape without_class(const Shape& sizes) {
  Shape out = sizes;
  out.erase(sizes.size() == 1 ? 0 : 1);
  return out;
}

using NllResult = std::tuple<Tensor, Tensor>;  // (loss, total weight)
NllResult nll(const Tensor& input, const Tensor& target, const Tensor& weight, int64_t ignore_index,
              LossReduction reduction) {
  return call<"nll_loss_kernel", NllResult>(input, target, weight, ignore_index,
                                            int64_t(reduction));
}

// The elements of samples (B, C) or (B, N, C, ...) that targets (B) or (B, N, ...) name, for vmap.
struct Targets {
  Shape sizes;
  int64_t dim;    // of the classes
  Tensor places;  // with a dim of size 1 for them
  Tensor weight;  // of each target: 0 where it is ignored

  // With class weights (B, C), or undefined ones.
  Targets(ShapeRef sizes_in, DType dtype, const Tensor& target, const Tensor& class_weight,
          int64_t ignore_index)
      : sizes(sizes_in), dim(sizes.size() == 2 ? 1 : 2) {
    Tensor ignored = target == Scalar(ignore_index);
    Tensor known = where(ignored, zeros_like(target), target);
    places = unsqueeze(known, dim);
    Tensor each = class_weight.defined()
                      ? reshape(gather(class_weight, 1, in_rows(known)), known.sizes())
                      : full(target.sizes(), 1.0, dtype, target.device());
    weight = where(ignored, zeros_like(each), each);
  }
  Tensor pick(const Tensor& input) const { return squeeze(gather(input, dim, places), dim); }
  Tensor put(const Tensor& values) const {
    Tensor none = zeros(sizes, values.dtype(), values.device());
    return call<"scatter_add", Tensor>(none, dim, places, unsqueeze(values, dim));
  }
  Tensor per_sample(const Tensor& t) const { return sum(in_rows(t), Shape{1}, false); }
  // A row for each sample.
  Tensor in_rows(const Tensor& t) const {
    return reshape(t, Shape{sizes[0], t.numel() / std::max<int64_t>(sizes[0], 1)});
  }
};

}  // namespace

Tensor as_class_target(const Tensor& input, const Tensor& target) {
  bool single = input.dim() == 1 && target.dim() == 1 && target.numel() == 1;
  return single && !is_floating(target.dtype()) ? reshape(target, Shape{}) : target;
}

void check_classes(const Tensor& target, int64_t classes, std::optional<int64_t> ignored,
                   ErrorKind kind) {
  CHECK(target.dtype() == DType::int64 || target.dtype() == DType::uint8,
        "expected target of dtype int64, got ", dtype_name(target.dtype()), ". Use target.long().");
  if (!target.device().is_cpu() || !has_values(target)) return;
  Tensor flat = prepared(bottom(target), DType::int64);
  for (int64_t i = 0; i < flat.numel(); ++i) {
    int64_t c = flat.data<int64_t>()[i];
    if ((c >= 0 && c < classes) || c == ignored) [[likely]]
      continue;
    Shape at(size_t(flat.dim()));
    for (size_t d = at.size(), rest = size_t(i); d-- > 0; rest /= size_t(flat.sizes()[d]))
      at[d] = int64_t(rest) % flat.sizes()[d];
    CHECK(false, kind, "Target ", c, " is out of bounds: at position ", at, " for ", classes,
          " classes; valid targets are 0 to ", classes - 1, ".");
  }
}

void check_class_sizes(const Shape& sizes, const Tensor& target, const Tensor& weight) {
  CHECK(!sizes.empty(), ErrorKind::kValue,
        "input must have at least one dim: the classes. Got a 0-d tensor");
  int64_t classes = sizes[sizes.size() == 1 ? 0 : 1];
  // A wrong number of samples is a wrong value, other shapes are a wrong call.
  bool other_batch =
      target.dim() == 0 || (sizes.size() == 1 ? target.dim() == 1 : target.size(0) != sizes[0]);
  CHECK(target.sizes() == without_class(sizes),
        other_batch ? ErrorKind::kValue : ErrorKind::kRuntime, "Expected target size ",
        without_class(sizes), " for input ", sizes, ", got ", target.sizes(),
        ". It holds one class for each position of input.");
  check_class_weight(weight, classes);
}

void check_class_weight(const Tensor& weight, int64_t classes) {
  CHECK(!weight.defined() || (weight.dim() == 1 && weight.numel() == classes),
        "weight tensor should be defined either for all ", classes,
        " classes or no classes but got weight tensor of shape: ",
        weight.defined() ? weight.sizes() : Shape());
}

void check_class_loss(const Tensor& input, const Tensor& target, const Tensor& weight,
                      int64_t ignore_index) {
  check_class_sizes(input.sizes(), target, weight);
  check_same_device(input, target, "target");
  check_same_device(input, weight, "weight");
  check_classes(target, input.size(class_dim(input)), ignore_index, ErrorKind::kIndex);
}

OP(nll_loss_kernel,
   "_nll_loss(Tensor input, Tensor target, Tensor? weight, int ignore_index, int reduction) -> "
   "(Tensor output, Tensor total_weight)", {
  .home    = "core",
  .doc     = R"(nll_loss with the sum of the weights, which its gradient needs.

The caller has checked the targets.)",
  .dtypes  = floating,
  .batch   = [](const Batch& batch, const Tensor&, const Tensor&, const Tensor&,
                int64_t ignore_index, int64_t reduction) {
    Tensor input = batch.full("input");
    Targets targets(input.sizes(), input.dtype(), batch.full("target"), batch.full("weight"),
                    ignore_index);
    Tensor losses = neg(targets.pick(input)) * targets.weight;
    Tensor total = targets.per_sample(targets.weight);
    LossReduction how{reduction};
    if (how == LossReduction::none) return std::tuple(losses, total);
    Tensor sum = targets.per_sample(losses);
    return std::tuple(how == LossReduction::sum ? sum : sum / total, total);
  },
  .forward = [](const Tensor& input, const Tensor& target, const Tensor& weight,
                int64_t ignore_index, int64_t reduction) {
    check_class_sizes(input.sizes(), target, weight);
    DType dtype = compute_dtype(input.dtype());
    Device device = input.device();
    LossReduction how{reduction};
    Shape sizes = how == LossReduction::none ? without_class(input.sizes()) : Shape();
    Tensor output = empty(sizes, input.dtype(), device);
    Tensor total_weight = empty(Shape(), dtype, device);
    if (!device.is_meta()) {
      auto run = device.is_cuda() ? nll_loss_cuda : nll_loss_cpu;
      run(to_contiguous(input), prepared(target, DType::int64), prepared(weight, dtype),
          nll_shape(input.sizes()), ignore_index, how, output, total_weight);
    }
    return std::tuple(output, total_weight);
  },
  .saves   = saves<"input.shape", "target", "weight", "total_weight">,
  .grads   = grads(
      d<"input">([](TensorList grads, const Shape& sizes, const Tensor& target,
                    const Tensor& weight, const Tensor& total_weight, int64_t ignore_index,
                    int64_t reduction) {
        return call<"nll_loss_backward", Tensor>(grads[0], target, weight, total_weight,
                                                 ShapeRef(sizes), ignore_index, reduction);
      }),
      no_grad<"target">, no_grad<"weight">),
})

OP(nll_loss_backward,
   "_nll_loss_backward(Tensor grad, Tensor target, Tensor? weight, Tensor total_weight, "
   "int[] sizes, int ignore_index, int reduction) -> Tensor", {
  .home    = "core",
  .doc     = R"(The gradient of nll_loss: -weight / total at each target, 0 elsewhere.)",
  .dtypes  = floating,
  .batch   = [](const Batch& batch, const Tensor&, const Tensor&, const Tensor&,
                const Tensor&, ShapeRef sizes, int64_t ignore_index, int64_t reduction) {
    Tensor g = batch.full("grad");
    Targets targets(batch.with_samples(sizes), g.dtype(), batch.full("target"),
                    batch.full("weight"), ignore_index);
    LossReduction how{reduction};
    if (how == LossReduction::mean) g = g / batch.full("total_weight");
    while (g.dim() < targets.weight.dim()) g = unsqueeze(g, -1);
    return targets.put(neg(g * targets.weight));
  },
  .forward = [](const Tensor& grad, const Tensor& target, const Tensor& weight,
                const Tensor& total_weight, ShapeRef sizes, int64_t ignore_index,
                int64_t reduction) {
    check_class_sizes(Shape(sizes), target, weight);
    DType dtype = compute_dtype(grad.dtype());
    Device device = grad.device();
    Tensor grad_input = zeros(sizes, grad.dtype(), device);
    if (!device.is_meta()) {
      auto run = device.is_cuda() ? nll_loss_backward_cuda : nll_loss_backward_cpu;
      run(to_contiguous(grad), prepared(target, DType::int64), prepared(weight, dtype),
          prepared(total_weight, dtype), nll_shape(Shape(sizes)), ignore_index,
          LossReduction{reduction}, grad_input);
    }
    return grad_input;
  },
  .saves   = saves<"target", "weight">,
  .grads   = grads(
      // Linear in grad: its transpose picks the targets out again, which is nll_loss itself.
      d<"grad">([](const Tensor& g, const Tensor& target, const Tensor& weight, const Shape&,
                   int64_t ignore_index, int64_t reduction) {
        return std::get<0>(nll(g, target, weight, ignore_index, LossReduction{reduction}));
      }),
      no_grad<"target">, no_grad<"weight">, no_grad<"total_weight">),
})

OP(nll_loss,
   "(Tensor input, Tensor target, Tensor? weight=None, bool? size_average=None, "
   "int ignore_index=-100, bool? reduce=None, str reduction='mean') -> Tensor", {
  .home    = "nn.functional",
  .doc     = R"(The negative log likelihood: -weight[target] * input[target], averaged by weight.

input: log-probabilities (C), (N, C) or (N, C, d1, ...); target: classes (), (N) or (N, d1, ...),
int64. Raises IndexError for a class outside [0, C) that is not ignore_index; on CUDA, where that
would wait for the GPU, its loss is NaN instead.)",
  .dtypes  = floating,
  .autocast = autocast::single,
  .forward = [](const Tensor& input, const Tensor& given, const Tensor& weight,
                Legacy size_average, int64_t ignore_index, Legacy reduce,
                std::string_view reduction) {
    LossReduction how = parse_reduction(reduction_of(reduction, size_average, reduce));
    Tensor target = as_class_target(input, given);
    check_class_loss(input, target, weight, ignore_index);
    return std::get<0>(nll(input, target, weight, ignore_index, how));
  },
})

}  // namespace rushlight
