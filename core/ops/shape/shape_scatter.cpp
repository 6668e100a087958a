// Owns the ops that copy a tensor and write another over a window of the copy: what x[i] = src is
// where nothing may change in place.
#include <limits>

#include "core/ops/op.h"

namespace rushlight {
namespace {

// Writes src over a window of `whole`, which is returned.
Tensor with_window(const Tensor& whole, const Tensor& window, const Tensor& src) {
  CHECK(src.sizes() == window.sizes(),
        "expected src to have a size equal to the slice of self. src size = ", src.sizes(),
        ", slice size = ", window.sizes());
  copy_(window, src);
  return whole;
}

// A copy of input that lies in a copy of its storage, in the same place.
Tensor clone_storage(const Tensor& input) {
  int64_t count = int64_t(input.storage()->bytes() / input.itemsize());
  Tensor all = as_strided(input, Shape{count}, Shape{1}, 0);
  return as_strided(clone(all), input.sizes(), input.strides(), input.offset());
}

}  // namespace

OP(select_scatter, "(Tensor input, Tensor src, int dim, int index) -> Tensor", {
  .doc     = R"(A copy of input with src at one index of dim.)",
  .seen    = Seen::whole_unrecorded,
  .forward = [](const Tensor& input, const Tensor& src, int64_t dim, int64_t index) {
    Tensor out = copy_to_write(input, {src});
    return with_window(out, select(out, dim, index), src);
  },
})

OP(slice_scatter, "(Tensor input, Tensor src, int dim=0, int? start=None, int? end=None, "
                  "int step=1) -> Tensor", {
  .doc     = R"(A copy of input with src at start, start + step, ... before end of dim.)",
  .seen    = Seen::whole_unrecorded,
  .forward = [](const Tensor& input, const Tensor& src, int64_t dim, std::optional<int64_t> start,
                std::optional<int64_t> end, int64_t step) {
    Tensor out = copy_to_write(input, {src});
    return with_window(out, slice(out, dim, start.value_or(0), end.value_or(INT64_MAX), step), src);
  },
})

OP(diagonal_scatter, "(Tensor input, Tensor src, int offset=0, int dim1=0, int dim2=1) -> Tensor", {
  .doc     = R"(A copy of input with src on the diagonal of two dims.)",
  .forward = [](const Tensor& input, const Tensor& src, int64_t offset, int64_t dim1,
                int64_t dim2) {
    Tensor out = copy_to_write(input, {src});
    return with_window(out, call<"diagonal", Tensor>(out, offset, dim1, dim2), src);
  },
})

OP(as_strided_scatter, "(Tensor input, Tensor src, int[] size, int[] stride, "
                       "int? storage_offset=None) -> Tensor", {
  .doc     = R"(A copy of input with src over any window of its storage.)",
  .forward = [](const Tensor& input, const Tensor& src, ShapeRef size, ShapeRef stride,
                std::optional<int64_t> storage_offset) {
    bool lifted = is_lifted(input) || is_lifted(src);  // a sample has no storage of its own
    Tensor out = lifted ? copy_to_write(input, {src}) : clone_storage(input);
    return with_window(out, as_strided(out, size, stride, storage_offset), src);
  },
})

OP(slice_copy, "(Tensor input, int dim=0, int? start=None, int? end=None, int step=1) -> Tensor", {
  .doc     = R"(A copy of the elements start, start + step, ... before end of dim.)",
  .variants = function,
  .forward = [](const Tensor& input, int64_t dim, std::optional<int64_t> start,
                std::optional<int64_t> end, int64_t step) {
    Tensor taken = slice(input, dim, start.value_or(0), end.value_or(INT64_MAX), step);
    return call<"clone", Tensor>(taken, std::optional(MemoryFormat::contiguous));
  },
})

}  // namespace rushlight
