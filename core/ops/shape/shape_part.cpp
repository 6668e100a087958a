// Owns the ops that look at a part of a tensor's elements without copying them, and the gradient of
// that: zeros with a window to which it is added.
//
// Their geometry is in shape.h.
#include "core/autograd/needs.h"
#include "core/base/alignment.h"
#include "core/ops/op.h"
#include "core/ops/shape/shape.h"

namespace rushlight {
namespace {

// target += src, where elements of target may share memory: in slices that do not.
void add_window(const Tensor& target, const Tensor& src) {
  if (!may_self_overlap(target.sizes(), target.strides())) return needs::add_(target, src);
  int64_t shortest = -1;
  for (int64_t d = 0; d < target.dim(); ++d)
    if (target.size(d) > 1 && (shortest < 0 || target.size(d) < target.size(shortest)))
      shortest = d;
  for (int64_t i = 0; i < target.size(shortest); ++i)
    add_window(alias(target, select_window(window_of(target), shortest, i)),
               alias(src, select_window(window_of(src), shortest, i)));
}

}  // namespace

OP(select, "(Tensor input, int dim, int index) -> Tensor", {
  .doc     = R"(The slice of input at one index of dim, which is dropped.)",
  .is_view = true,
  .sparse  = sparse_select,
  .batch   = by_dims,
  .forward = [](const Tensor& input, int64_t dim, int64_t index) {
    return alias(input, select_window(window_of(input), dim, index));
  },
  .saves   = saves<"input.shape">,
  .grads   = grads(d<"input">([](const Tensor& g, const Shape& shape, int64_t dim, int64_t index) {
    return window_backward(g, shape, select_window(row_major(shape), dim, index));
  })),
})

OP(_slice, "(Tensor input, int dim, int start, int end, int step) -> Tensor", {
  .home    = "core",
  .doc     = R"(input[start:end:step] along dim.)",
  .is_view = true,
  .batch   = by_dims,
  .forward = [](const Tensor& input, int64_t dim, int64_t start, int64_t end, int64_t step) {
    return alias(input, slice_window(window_of(input), dim, start, end, step));
  },
  .saves   = saves<"input.shape">,
  .grads   = grads(d<"input">([](const Tensor& g, const Shape& shape, int64_t dim, int64_t start,
                                 int64_t end, int64_t step) {
    return window_backward(g, shape, slice_window(row_major(shape), dim, start, end, step));
  })),
})

OP(narrow, "(Tensor input, int dim, int start, int length) -> Tensor", {
  .doc     = R"(The `length` slices of dim from start on.)",
  .is_view = true,
  .node    = "slice",
  .sparse  = [](const Tensor& input, int64_t dim, int64_t start, int64_t length) {
    narrow_window(row_major(input.sizes()), dim, start, length);  // checks the range
    if (start < 0) start += input.sizes()[size_t(wrap_dim(dim, input.dim()))];
    Tensor places = call<"arange_start", Tensor>(Scalar(start), Scalar(start + length), Scalar(1),
                                                 std::optional(DType::int64),
                                                 std::optional(input.device()));
    return sparse_index_select(input, dim, places);
  },
  .batch   = by_dims,
  .forward = [](const Tensor& input, int64_t dim, int64_t start, int64_t length) {
    return alias(input, narrow_window(window_of(input), dim, start, length));
  },
  .saves   = saves<"input.shape">,
  .grads   = grads(d<"input">([](const Tensor& g, const Shape& shape, int64_t dim, int64_t start,
                                 int64_t length) {
    return window_backward(g, shape, narrow_window(row_major(shape), dim, start, length));
  })),
})

OP(diagonal, "(Tensor input, int offset=0, int dim1=0, int dim2=1) -> Tensor", {
  .doc     = R"(The diagonal of two dims, as the last dim of the result.

offset > 0 lies above the main diagonal, offset < 0 below.)",
  .is_view = true,
  .batch   = by_dims,
  .forward = [](const Tensor& input, int64_t offset, int64_t dim1, int64_t dim2) {
    return alias(input, diagonal_window(window_of(input), offset, dim1, dim2));
  },
  .saves   = saves<"input.shape">,
  .grads   = grads(d<"input">([](const Tensor& g, const Shape& shape, int64_t offset, int64_t dim1,
                                 int64_t dim2) {
    return window_backward(g, shape, diagonal_window(row_major(shape), offset, dim1, dim2));
  })),
})

OP(unfold, "(Tensor input, int dimension, int size, int step) -> Tensor", {
  .doc     = R"(All slices of `size` elements along dimension, `step` apart, as a new last dim.)",
  .variants = method,
  .is_view = true,
  .batch   = by_dims,
  .forward = [](const Tensor& input, int64_t dimension, int64_t size, int64_t step) {
    return alias(input, unfold_window(window_of(input), dimension, size, step));
  },
  .saves   = saves<"input.shape">,
  .grads   = grads(d<"input">([](const Tensor& g, const Shape& shape, int64_t dimension,
                                 int64_t size,
                                 int64_t step) {
    return window_backward(g, shape, unfold_window(row_major(shape), dimension, size, step));
  })),
})

OP(_window_backward, "(Tensor input, int[] size, int[] stride, int offset) -> Tensor", {
  .home    = "core",
  .doc     = R"(A row-major tensor of zeros of shape `size` to whose window input is added.

The window has the shape of input; stride and offset place it.)",
  .batch   = [](const Batch& batch, const Tensor& input, ShapeRef size, ShapeRef stride,
                int64_t offset) {
    Shape strides(stride);
    strides.insert(0, checked_numel(size));
    return call<"_window_backward", Tensor>(input, ShapeRef(batch.with_samples(size)),
                                            ShapeRef(strides), offset);
  },
  .forward = [](const Tensor& input, ShapeRef size, ShapeRef stride, int64_t offset) {
    Tensor out = zeros(size, input.dtype(), input.device());
    if (input.numel() == 0) return out;
    Tensor window = alias(out, input.sizes(), stride, offset);
    if (may_self_overlap(input.sizes(), stride)) add_window(window, input);
    else copy_into(window, input);
    return out;
  },
  .saves   = saves<"input.shape">,
  .grads   = grads(d<"input">([](const Tensor& g, const Shape& shape, const Shape&,
                                 const Shape& stride,
                                 int64_t offset) {
    Tensor whole = contiguous(g);
    return as_strided(whole, shape, stride, whole.offset() + offset);
  })),
})

OP(as_strided, "(Tensor input, int[] size, int[] stride, int? storage_offset=None) -> Tensor", {
  .doc     = R"(A view on the storage of input: any sizes, strides and offset inside it.)",
  .forward = [](const Tensor& input, ShapeRef size, ShapeRef stride,
                std::optional<int64_t> storage_offset) {
    return call<"_as_strided", Tensor>(input, size, stride, storage_offset.value_or(input.offset()),
                                       ShapeRef(input.strides()), input.offset());
  },
})

OP(_as_strided, "(Tensor input, int[] size, int[] stride, int offset, int[] base_stride, "
                "int base_offset) -> Tensor", {
  .home    = "core",
  .doc     = R"(as_strided with the layout of input as arguments, for the gradient.)",
  .is_view = true,
  .batch   = [](const Batch& batch, const Tensor& input, ShapeRef size, ShapeRef stride,
                int64_t offset, ShapeRef, int64_t base_offset) {
    Shape strides(stride);
    strides.insert(0, input.stride(0));
    return as_strided(input, batch.with_samples(size), strides,
                      input.offset() + offset - base_offset);
  },
  .forward = [](const Tensor& input, ShapeRef size, ShapeRef stride, int64_t offset, ShapeRef,
                int64_t) {
    return alias(input, size, stride, offset);
  },
  .saves   = saves<"input.shape">,
  .grads   = grads(d<"input">([](const Tensor& g, const Shape& shape, const Shape&,
                                 const Shape& stride,
                                 int64_t offset, const Shape& base_stride, int64_t base_offset) {
    return needs::as_strided_backward(g, shape, base_stride, base_offset, stride, offset);
  })),
})

}  // namespace rushlight
