// Owns non-maximum suppression: of boxes that overlap, those with lower scores go.
#include "core/ops/vision/nms.h"

#include <algorithm>

#include "core/ops/op.h"
#include "core/ops/operands.h"
#include "core/ops/same_device.h"
#include "core/ops/sort/sort.h"

namespace rushlight {
namespace {

[[noreturn, gnu::cold]] void refuse_samples() {
  CHECK(false, "the number of boxes that stay depends on the sample of vmap.");
  __builtin_unreachable();
}

void check_for_each_box(const Tensor& boxes, const Tensor& numbers, const char* name) {
  CHECK(numbers.dim() == 1, name, " should be a 1d tensor, got ", numbers.dim(), "D");
  CHECK(numbers.size(0) == boxes.size(0), "boxes and ", name, " should have same number of ",
        "elements in dimension 0, got ", boxes.size(0), " and ", numbers.size(0));
  check_same_device(boxes, numbers, name, "boxes");
}

void check_boxes(const Tensor& boxes, const Tensor& scores, const Tensor& classes) {
  CHECK(boxes.dim() == 2, "boxes should be a 2d tensor, got ", boxes.dim(), "D");
  CHECK(boxes.size(1) == 4, "boxes should have 4 elements in dimension 1, got ", boxes.size(1));
  check_for_each_box(boxes, scores, "scores");
  if (classes.defined()) check_for_each_box(boxes, classes, "idxs");
  CHECK(scores.dtype() == boxes.dtype(), "boxes should have the same type as scores, but are ",
        dtype_name(boxes.dtype()), " and ", dtype_name(scores.dtype()), ".");
  CHECK(!boxes.device().is_meta(), ErrorKind::kNotImplemented,
        "how many boxes stay depends on their values, which meta tensors do not have.");
}

Tensor suppressed(const Tensor& boxes, const Tensor& scores, const Tensor& classes,
                  double threshold) {
  check_boxes(boxes, scores, classes);
  Tensor order = sort_rows(scores, 0, scores.size(0), true).indices;
  auto in_order = [&](const Tensor& t) {
    return t.defined() ? to_contiguous(call<"index_select", Tensor>(t, int64_t(0), order)) : t;
  };
  auto kept_boxes = boxes.device().is_cuda() ? kept_boxes_cuda : kept_boxes_cpu;
  std::vector<char> kept = kept_boxes(in_order(boxes), in_order(classes), threshold);
  Tensor flags = empty(Shape{int64_t(kept.size())}, DType::bool_);
  std::copy(kept.begin(), kept.end(), flags.data<char>());
  Tensor mask = call<"_to", Tensor>(flags, std::optional(order.device()), false);
  return call<"masked_select", Tensor>(order, mask);
}

}  // namespace

OP(nms, "(Tensor boxes, Tensor scores, float iou_threshold) -> Tensor", {
  .home    = "vision.ops",
  .doc     = R"(The boxes that stay when each removes those of lower scores that overlap it.

Two boxes overlap by the area that they share over the area that either covers.

Args:
    boxes: (N, 4) of (x1, y1, x2, y2), with x1 <= x2 and y1 <= y2.
    scores: (N,), of the dtype of boxes.
    iou_threshold: boxes that overlap by more than this do so too much.

Returns:
    The indices of the boxes that stay, int64, from the highest score to the lowest.)",
  .dtypes  = floating,
  .variants = function,
  .autocast = autocast::single,
  .batch   = [](const Batch&, const Tensor&, const Tensor&, double) -> Tensor { refuse_samples(); },
  .forward = [](const Tensor& boxes, const Tensor& scores, double iou_threshold) {
    return suppressed(boxes, scores, {}, iou_threshold);
  },
  .grads   = grads(no_grad<"boxes">, no_grad<"scores">),
})

OP(batched_nms, "(Tensor boxes, Tensor scores, Tensor idxs, float iou_threshold) -> Tensor", {
  .home    = "vision.ops",
  .doc     = R"(nms where only boxes of the same class remove each other.

Args:
    boxes: (N, 4) of (x1, y1, x2, y2), with x1 <= x2 and y1 <= y2.
    scores: (N,), of the dtype of boxes.
    idxs: (N,), the class of each box.
    iou_threshold: boxes that overlap by more than this do so too much.

Returns:
    The indices of the boxes that stay, int64, from the highest score to the lowest.)",
  .dtypes  = floating,
  .variants = function,
  .autocast = autocast::single,
  .batch   = [](const Batch&, const Tensor&, const Tensor&, const Tensor&, double) -> Tensor {
    refuse_samples();
  },
  .forward = [](const Tensor& boxes, const Tensor& scores, const Tensor& idxs,
                double iou_threshold) {
    return suppressed(boxes, scores, to_dtype(idxs, DType::int64), iou_threshold);
  },
  .grads   = grads(no_grad<"boxes">, no_grad<"scores">, no_grad<"idxs">),
})

}  // namespace rushlight
