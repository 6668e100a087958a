// Owns the losses that ask scores or distances to differ by a margin. They are made of other ops,
// but for a loop of multilabel_margin_loss on the CPU.
#include "core/ops/batch.h"
#include "core/ops/lift.h"
#include "core/ops/loss/loss.h"
#include "core/ops/op.h"
#include "core/ops/operands.h"
#include "core/ops/same_device.h"
#include "core/tensor/values.h"

namespace rushlight {
namespace {

// max(x, 0), which has the gradient 1 at 0.
Tensor at_least_zero(const Tensor& x) { return call<"clamp_min", Tensor>(x, wrapped_number(0.0)); }
// The same with the gradient 0 at 0.
Tensor positive_part(const Tensor& x) { return call<"relu", Tensor>(x, false); }

// Integers as floats, so that differences and products of theirs do not wrap around.
Tensor as_floats(const Tensor& t) {
  return is_differentiable(t.dtype()) ? t : cast(t, default_dtype());
}

// 0, 1, 2, ..., size - 1 as classes.
Tensor classes_up_to(int64_t size, Device device) {
  return call<"arange", Tensor>(Scalar(size), std::optional(DType::int64), std::optional(device));
}

// How many targets the row with most of them has; inside vmap, where that is different for each
// sample, how many there may be. `valid` (N, C) says which entries are targets, the first ones.
int64_t most_targets(const Tensor& valid) {
  if (valid.numel() == 0 || !has_values(valid)) return 0;
  if (inside_batch_level()) return valid.size(1);
  return item(call<"max", Tensor>(sum(valid, Shape{1}))).to<int64_t>();
}

// Which classes are among the targets of their row; entries that are not one are -1: (N, C).
Tensor is_named(const Tensor& targets, int64_t count) {
  Tensor classes = classes_up_to(targets.size(1), targets.device()), named = targets != targets;
  for (int64_t t = 0; t < count; ++t)
    named = logical_or(named, narrow(targets, 1, t, 1) == classes);
  return named;
}

// How far the scores of the classes that count come near that of one target of each row: (N, C).
struct Excess {
  Tensor target, counts, value;
  Excess(const Tensor& x, const Tensor& targets, const Tensor& others, int64_t t)
      : target(narrow(targets, 1, t, 1)), counts(logical_and(others, target >= 0)) {
    Tensor score = gather(x, 1, call<"clamp_min", Tensor>(target, wrapped_number(int64_t(0))));
    value = 1 - score + x;
  }
};

}  // namespace

// ---- of pairs -----------------------------------------------------------------------------------

OP(hinge_embedding_loss,
   "(Tensor input, Tensor target, float margin=1.0, bool? size_average=None, bool? reduce=None, "
   "str reduction='mean') -> Tensor", {
  .home    = "nn.functional",
  .doc     = R"(The loss of distances of pairs: input where target is 1, and where it is -1
max(0, margin - input).

Example:
    >>> x, y = torch.tensor([0.5, 0.25]), torch.tensor([1.0, -1.0])
    >>> torch.nn.functional.hinge_embedding_loss(x, y, reduction="none")
    tensor([0.5000, 0.7500]))",
  .dtypes  = real_numeric,
  .autocast = autocast::single,
  .forward = [](const Tensor& input, const Tensor& target, double margin, Legacy size_average,
                Legacy reduce, std::string_view reduction) {
    // Integers stay what they are, and round the margin, as in PyTorch.
    Tensor zero = zeros({}, input.dtype(), input.device());
    Tensor limit = full({}, margin, input.dtype(), input.device());
    Tensor below = where(input > limit, zero, limit - input);
    // Any other target counts both.
    Tensor close = where(target != -1, input, zero);
    Tensor apart = where(target != 1, below, zero);
    return reduce_loss(close + apart, reduction_of(reduction, size_average, reduce));
  },
})

OP(margin_ranking_loss,
   "(Tensor input1, Tensor input2, Tensor target, float margin=0, bool? size_average=None, "
   "bool? reduce=None, str reduction='mean') -> Tensor", {
  .home    = "nn.functional",
  .doc     = R"(max(0, -target * (input1 - input2) + margin), where target is 1 if input1 should
be larger, and -1 if input2 should.

Example:
    >>> one = torch.ones(1)
    >>> torch.nn.functional.margin_ranking_loss(one, 3 * one, one).item()
    2.0)",
  .dtypes  = real_numeric,
  .autocast = autocast::single,
  .forward = [](const Tensor& input1, const Tensor& input2, const Tensor& target, double margin,
                Legacy size_average, Legacy reduce, std::string_view reduction) {
    CHECK(input1.dim() == input2.dim() && input1.dim() == target.dim(),
          "All input tensors should have same dimension but got sizes: input1: ", input1.sizes(),
          ", input2: ", input2.sizes(), ", target: ", target.sizes(), ".");
    bool whole = is_integral(input1.dtype()) && is_integral(input2.dtype());
    Tensor difference = whole ? as_floats(input1) - as_floats(input2) : input1 - input2;
    return reduce_loss(at_least_zero(margin - target * difference),
                       reduction_of(reduction, size_average, reduce));
  },
})

OP(cosine_embedding_loss,
   "(Tensor input1, Tensor input2, Tensor target, float margin=0, bool? size_average=None, "
   "bool? reduce=None, str reduction='mean') -> Tensor", {
  .home    = "nn.functional",
  .doc     = R"(1 - cos(input1, input2) where target is 1, and max(0, cos - margin) where it is -1.

The inputs are (N, D) with target (N), or (D) with target ().

Example:
    >>> x, y = torch.tensor([1.0, 0.0]), torch.tensor([0.0, 1.0])
    >>> torch.nn.functional.cosine_embedding_loss(x, y, torch.tensor(1.0)).item()
    1.0)",
  .dtypes  = real,
  .autocast = autocast::single,
  .forward = [](const Tensor& input1, const Tensor& input2, const Tensor& target, double margin,
                Legacy size_average, Legacy reduce, std::string_view reduction) {
    CHECK(target.dim() <= 1 && input1.dim() == target.dim() + 1 && input2.dim() == input1.dim(),
          "inputs ", input1.sizes(), " and ", input2.sizes(), " do not fit target ",
          target.sizes(), ". Two (N, D) take (N), and two (D) take ().");
    constexpr double kEps = 1e-12;
    auto product = [](const Tensor& a, const Tensor& b) { return sum(a * b, Shape{-1}); };
    Tensor x = as_floats(input1), y = as_floats(input2);
    Tensor cosine = product(x, y) / sqrt((product(x, x) + kEps) * (product(y, y) + kEps));
    Tensor close = select(target == 1, 1 - cosine, 0.0);
    Tensor apart = select(target == -1, at_least_zero(cosine - margin), 0.0);
    return reduce_loss(close + apart, reduction_of(reduction, size_average, reduce));
  },
})

OP(triplet_margin_loss,
   "(Tensor anchor, Tensor positive, Tensor negative, float margin=1.0, float p=2, "
   "float eps=1e-6, bool swap=False, bool? size_average=None, bool? reduce=None, "
   "str reduction='mean') -> Tensor", {
  .home    = "nn.functional",
  .doc     = R"(max(0, d(anchor, positive) - d(anchor, negative) + margin) (Balntas et al. 2016).

d(x, y) = ||x - y + eps||_p along the last dim. With swap the negative's distance is the smaller one
of those to anchor and to positive.

Example:
    >>> a, p, n = torch.tensor([[0.0]]), torch.tensor([[2.0]]), torch.tensor([[1.0]])
    >>> torch.nn.functional.triplet_margin_loss(a, p, n, eps=0.0).item()
    2.0)",
  .dtypes  = numeric,
  .autocast = autocast::single,
  .forward = [](const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                double margin, double p, double eps, bool swap, Legacy size_average, Legacy reduce,
                std::string_view reduction) {
    CHECK(margin > 0, ErrorKind::kValue, "margin must be greater than 0, got ", margin);
    CHECK(anchor.dim() == positive.dim() && anchor.dim() == negative.dim(),
          "The anchor, positive, and negative tensors are expected to have the same number of "
          "dimensions, but got: anchor ", anchor.dim(), "D, positive ", positive.dim(),
          "D, and negative ", negative.dim(), "D inputs");
    auto distance = [&](const Tensor& a, const Tensor& b) {
      return call<"pairwise_distance", Tensor>(a, b, p, eps, false);
    };
    Tensor near = distance(anchor, positive), far = distance(anchor, negative);
    if (swap) far = minimum(far, distance(positive, negative));
    return reduce_loss(at_least_zero(margin + near - far),
                       reduction_of(reduction, size_average, reduce));
  },
})

// ---- of classes ---------------------------------------------------------------------------------

OP(multi_margin_loss,
   "(Tensor input, Tensor target, int p=1, float margin=1.0, Tensor? weight=None, "
   "bool? size_average=None, bool? reduce=None, str reduction='mean') -> Tensor", {
  .home    = "nn.functional",
  .doc     = R"(How far other classes come near the target's score x[y]: the sum over all c != y of
weight[y] * max(0, margin - x[y] + x[c])^p, divided by the number of classes.

input: scores (N, C) or (C); target: classes (N) or (), int64; weight: (C).

Example:
    >>> x = torch.tensor([[0.0, 0.5, 2.0]])
    >>> torch.nn.functional.multi_margin_loss(x, torch.tensor([2]), margin=1.75).item()
    0.0833333358168602)",
  .dtypes  = floating,
  .autocast = autocast::single,
  .forward = [](const Tensor& input, const Tensor& target, int64_t p, double margin,
                const Tensor& weight, Legacy size_average, Legacy reduce,
                std::string_view reduction) {
    CHECK(p == 1 || p == 2, ErrorKind::kValue, "only p == 1 and p == 2 supported, got ", p, ".");
    std::string_view how = reduction_of(reduction, size_average, reduce);
    parse_reduction(how);  // which is refused before what it is of
    CHECK(input.dim() <= 1 || (input.dim() == 2 && input.size(1) > 0),
          "Expected non-empty vector or matrix with optional 0-dim batch size, but got: ",
          input.sizes());
    Tensor x = input.dim() == 2 ? input : reshape(input, Shape{1, -1});  // (N, C)
    int64_t classes = x.size(1);
    CHECK(target.dim() <= 1 && target.numel() == x.size(0), "inconsistent target size: expected (",
          x.size(0), ",) for input ", input.sizes(), ", got ", target.sizes());
    Tensor y = reshape(target, Shape{x.size(0)});
    check_classes(y, classes, {}, ErrorKind::kRuntime);
    CHECK(!weight.defined() || weight.dim() == 1, ErrorKind::kValue,
          "weight must be one-dimensional, got ", weight.defined() ? weight.sizes() : Shape());
    CHECK(!weight.defined() || weight.numel() == classes, "inconsistent weight size, expected ",
          classes, " but got ", weight.defined() ? weight.sizes() : Shape());
    Tensor column = unsqueeze(y, 1);
    Tensor excess = positive_part(margin - gather(x, 1, column) + x);
    if (p == 2) excess = excess * excess;
    if (weight.defined()) {
      Tensor scale = call<"index_select", Tensor>(weight, int64_t(0), y);  // (N)
      excess = excess * unsqueeze(scale, 1);
    }
    Tensor others = column != classes_up_to(classes, x.device());
    Tensor losses = sum(select(others, excess, 0.0), Shape{1}) / double(classes);
    return reduce_loss(reshape(losses, target.sizes()), how);
  },
})

OP(_label_margins, "(Tensor input, Tensor targets, Tensor others, int count) -> Tensor", {
  .home    = "private",
  .doc     = R"(The losses of multilabel_margin_loss of rows, times the number of classes.

input: (N, C); targets: int64 (N, C), in each row at most `count` classes, then -1; others: bool
(N, C), the classes that are no targets. One target is looked at after the other, so that memory for
N * C numbers is enough, also for backward.)",
  .dtypes  = floating,
  .batch   = [](const Batch& batch, const Tensor&, const Tensor&, const Tensor&, int64_t count) {
    auto rows = [&](const char* name) {
      return call<"flatten", Tensor>(batch.full(name), int64_t(0), int64_t(1));
    };
    Shape sizes(batch.full("input").sizes());
    sizes.pop_back();
    return reshape(call<"_label_margins", Tensor>(rows("input"), rows("targets"), rows("others"),
                                                  count), sizes);
  },
  .forward = [](const Tensor& input, const Tensor& targets, const Tensor& others, int64_t count) {
    if (input.device().is_cpu() && input.numel() > 0) {
      Tensor losses = empty(Shape{input.size(0)}, input.dtype());
      label_margins_cpu(to_contiguous(input), to_contiguous(targets), to_contiguous(others), count,
                        losses);
      return losses;
    }
    Tensor x = cast(input, compute_dtype(input.dtype()));
    Tensor losses = zeros(Shape{x.size(0)}, x.dtype(), x.device());
    for (int64_t t = 0; t < count; ++t) {
      Excess excess(x, targets, others, t);
      losses = losses + sum(select(excess.counts, positive_part(excess.value), 0.0), Shape{1});
    }
    return cast(losses, input.dtype());
  },
  .saves   = saves<"input", "targets", "others">,
  .grads   = grads(d<"input">([](const Tensor& g, const Tensor& input, const Tensor& targets,
                                 const Tensor& others, int64_t count) {
    Tensor x = cast(input, compute_dtype(input.dtype())), each = unsqueeze(g, 1);
    Tensor classes = classes_up_to(x.size(1), x.device()), grad = zeros_like(x);
    for (int64_t t = 0; t < count; ++t) {
      Excess excess(x, targets, others, t);
      Tensor slope = select(logical_and(excess.counts, excess.value > 0), each, 0.0);  // (N, C)
      Tensor total = sum(slope, Shape{1}, true);
      grad = grad + slope - select(excess.target == classes, total, 0.0);
    }
    return grad;
  }), no_grad<"targets">, no_grad<"others">),
})

OP(multilabel_margin_loss,
   "(Tensor input, Tensor target, bool? size_average=None, bool? reduce=None, "
   "str reduction='mean') -> Tensor", {
  .home    = "nn.functional",
  .doc     = R"(How far classes that are no targets come near those that are: the sum over targets y
and other classes c of max(0, 1 - (x[y] - x[c])), divided by the number of classes.

input: scores (N, C), (C) or (); target: int64 of the same shape, in each row the classes up to the
first -1.

Example:
    >>> x, y = torch.tensor([[0.1, 0.2, 0.4, 0.8]]), torch.tensor([[3, 0, -1, 1]])
    >>> round(torch.nn.functional.multilabel_margin_loss(x, y).item(), 4)
    0.85)",
  .dtypes  = floating,
  .autocast = autocast::single,
  .forward = [](const Tensor& input, const Tensor& target, Legacy size_average, Legacy reduce,
                std::string_view reduction) {
    std::string_view how = reduction_of(reduction, size_average, reduce);
    parse_reduction(how);  // which is refused before what it is of
    CHECK(input.dim() <= 1 || (input.dim() == 2 && input.size(1) > 0),
          "Expected non-empty vector or matrix with optional 0-dim batch size, but got: ",
          input.sizes());
    CHECK(target.sizes() == input.sizes() || (input.dim() < 2 && target.dim() < 2 &&
                                              target.numel() == input.numel()),
          "inconsistent target size: ", target.sizes(), " for input of size: ", input.sizes());
    check_same_device(input, target, "target");
    int64_t classes = input.dim() ? input.size(-1) : 1;
    Shape rows{input.dim() == 2 ? input.size(0) : 1, classes};
    Tensor x = reshape(input, rows), y = reshape(target, rows);
    check_classes(y, classes, -1, ErrorKind::kRuntime);
    Tensor valid = call<"cumprod", Tensor>(y >= 0, int64_t(1), std::optional(DType::int64)) == 1;
    Tensor targets = select(valid, cast(y, DType::int64), wrapped_number(int64_t(-1)));
    int64_t count = most_targets(valid);
    Tensor others = logical_not(is_named(targets, count));
    Tensor losses = call<"_label_margins", Tensor>(x, targets, others, count) / double(classes);
    return reduce_loss(input.dim() == 2 ? losses : reshape(losses, Shape{}), how);
  },
})

OP(multilabel_soft_margin_loss,
   "(Tensor input, Tensor target, Tensor? weight=None, bool? size_average=None, "
   "bool? reduce=None, str reduction='mean') -> Tensor", {
  .home    = "nn.functional",
  .doc     = R"(The mean over classes, the last dim, of the cross entropy of sigmoid(input).

target holds 1 for the classes that apply and 0 for others; weight, which broadcasts, multiplies the
losses of classes.

Example:
    >>> loss = torch.nn.functional.multilabel_soft_margin_loss
    >>> round(loss(torch.zeros(1, 3), torch.tensor([[1.0, 0.0, 1.0]])).item(), 4)
    0.6931)",
  .dtypes  = floating,
  .forward = [](const Tensor& input, const Tensor& target, const Tensor& weight,
                Legacy size_average, Legacy reduce, std::string_view reduction) {
    Tensor losses = call<"_logits_loss", Tensor>(input, target);
    if (weight.defined()) losses = losses * weight;
    return reduce_loss(mean(losses, Shape{-1}), reduction_of(reduction, size_average, reduce));
  },
})

}  // namespace rushlight
