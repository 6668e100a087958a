// Owns the ops that answer a question about a tensor, and those that have nothing to do, because
// numbers are never stored conjugated or negated.
#include "core/ops/op.h"

namespace rushlight {

OP(is_nonzero, "(Tensor input) -> bool", {
  .doc     = R"(Whether the one element is not zero.

Raises RuntimeError when there is not exactly one.)",
  .sparse  = by_forward,
  .forward = [](const Tensor& input) {
    CHECK(input.numel() > 0, "Boolean value of Tensor with no values is ambiguous");
    CHECK(input.numel() == 1, "Boolean value of Tensor with more than one value is ambiguous. Use "
                              ".any() or .all().");
    return item(input.is_sparse() ? to_dense(input) : input).to<bool>();
  },
})

OP(is_same_size, "(Tensor input, Tensor other) -> bool", {
  .doc     = R"(Whether two tensors have the same shape.)",
  .forward = [](const Tensor& input, const Tensor& other) {
    return input.sizes() == other.sizes();
  },
})

OP(is_set_to, "(Tensor input, Tensor tensor) -> bool", {
  .doc     = R"(Whether two tensors are the same window of the same memory.)",
  .variants = method,
  .forward = [](const Tensor& input, const Tensor& tensor) {
    return input.storage() == tensor.storage() && input.offset() == tensor.offset() &&
           input.dtype() == tensor.dtype() && input.sizes() == tensor.sizes() &&
           input.strides() == tensor.strides();
  },
})

OP(is_signed, "(Tensor input) -> bool", {
  .doc     = R"(Whether the elements have a sign.)",
  .forward = [](const Tensor& input) {
    return !is_bool(input.dtype()) && !is_unsigned(input.dtype());
  },
})

OP(is_inference, "(Tensor input) -> bool", {
  .doc     = R"(Whether the tensor was made under inference_mode.)",
  .forward = [](const Tensor& input) { return input.impl()->inference; },
})

OP(is_distributed, "(Tensor input) -> bool", {
  .doc     = R"(Always False: a tensor lives in one place.)",
  .forward = [](const Tensor&) { return false; },
})

OP(is_conj, "(Tensor input) -> bool", {
  .doc     = R"(Always False: conjugates are computed at once.)",
  .aliases = "is_neg",
  .forward = [](const Tensor&) { return false; },
})

OP(resolve_conj, "(Tensor input) -> Tensor", {
  .doc     = R"(input itself, whose numbers are stored as they are.)",
  .aliases = "resolve_neg",
  .forward = [](const Tensor& input) { return input; },
})

OP(get_device, "(Tensor input) -> int", {
  .doc     = R"(The number of the GPU that the tensor is on, -1 on the CPU.)",
  .forward = [](const Tensor& input) {
    return input.device().is_cuda() ? int64_t(input.device().index) : int64_t(-1);
  },
})

}  // namespace rushlight
