// Defines by ops what autograd needs, see autograd/needs.h.
#include "core/autograd/needs.h"

#include "core/autograd/grad_mode.h"
#include "core/ops/ops.h"
#include "core/ops/shape/shape.h"
#include "core/ops/sparse/sparse.h"

namespace rushlight::needs {
namespace {

// The elements of a storage that a layout spans.
struct Span {
  int64_t begin, end;
};
Span span_of(ShapeRef sizes, ShapeRef strides, int64_t offset) {
  return {offset, std::max(offset, storage_bytes_needed(sizes, strides, offset, 1))};
}

}  // namespace

Tensor add(const Tensor& input, const Tensor& other) { return rushlight::add(input, other); }

void add_(const Tensor& input, const Tensor& other) {
  static const OpEntry& entry = entry_of("add");
  GradModeGuard unrecorded(false);
  const Value args[] = {&input, &other, Scalar(1)};
  entry.call_inplace(args);
}

Tensor clone(const Tensor& input) { return rushlight::clone(input); }
Tensor clone_strided(const Tensor& input, ShapeRef strides) {
  return call<"_clone_strided", Tensor>(input, strides);
}
Tensor sum_to(const Tensor& input, ShapeRef sizes) { return rushlight::sum_to(input, sizes); }
Tensor to_dtype(const Tensor& input, DType dtype) { return rushlight::cast(input, dtype); }
Tensor to_device(const Tensor& input, Device device) {
  return call<"_to", Tensor>(input, std::optional(device), false);
}
bool has_nan(const Tensor& input) {
  GradModeGuard unrecorded(false);
  if (!is_differentiable(input.dtype()) || input.device().is_meta()) return false;
  const Tensor& elements = input.is_sparse() ? sparse_values(input) : input;
  Tensor found =
      call<"any", Tensor>(call<"isnan", Tensor>(elements), std::optional<ShapeRef>(), false);
  return item(found).to<bool>();
}
Tensor ones_like(const Tensor& input) { return rushlight::ones_like(input); }
Tensor zeros_like(const Tensor& input) { return rushlight::zeros_like(input); }

Tensor as_strided(const Tensor& input, ShapeRef sizes, ShapeRef strides, int64_t offset) {
  return rushlight::as_strided(input, sizes, strides, offset);
}

// The gradient is put into a line of memory in the place of the window and read back in the place
// of the base. Where several elements of the base are one place, each gets an equal part.
Tensor as_strided_backward(const Tensor& grad, ShapeRef base_sizes, ShapeRef base_strides,
                           int64_t base_offset, ShapeRef strides, int64_t offset) {
  Span base = span_of(base_sizes, base_strides, base_offset);
  Span window = span_of(grad.sizes(), strides, offset);
  int64_t begin = std::min(base.begin, window.begin);
  Shape line{std::max(base.end, window.end) - begin};
  Tensor sums = window_backward(grad, line, {grad.sizes(), Shape(strides), offset - begin});
  if (may_self_overlap(base_sizes, base_strides)) {
    Tensor ones = full(base_sizes, 1.0, real_dtype(grad.dtype()), grad.device());
    Tensor counts =
        window_backward(ones, line, {Shape(base_sizes), Shape(base_strides), base_offset - begin});
    sums = sums / maximum(counts, wrapped_number(1.0));
  }
  return rushlight::as_strided(sums, base_sizes, base_strides, sums.offset() + base_offset - begin);
}

Tensor view_as_real(const Tensor& input) { return call<"view_as_real", Tensor>(input); }
Tensor view_as_complex(const Tensor& input) { return call<"view_as_complex", Tensor>(input); }

void copy_(const Tensor& window, const Tensor& src) { rushlight::copy_(window, src); }

}  // namespace rushlight::needs
