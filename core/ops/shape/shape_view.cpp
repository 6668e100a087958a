// Owns the ops that look at all of a tensor's elements in another layout without copying them.
//
// Their geometry is in shape.h.
#include "core/base/alignment.h"
#include "core/ops/op.h"
#include "core/ops/shape/shape.h"
#include "core/tensor/dims.h"

namespace rushlight {
namespace {

// The gradient of an op that keeps all elements and their order.
constexpr auto in_shape = [](const Tensor& g, const Shape& shape) { return reshape(g, shape); };

Shape flattened_sizes(const Tensor& input, int64_t start_dim, int64_t end_dim) {
  int64_t start = wrap_dim(start_dim, input.dim()), end = wrap_dim(end_dim, input.dim());
  CHECK(start <= end, "has invalid args: start_dim cannot come after end_dim, got ", start_dim,
        " and ", end_dim);
  if (input.dim() == 0) return {1};
  Shape sizes = input.sizes();
  for (; end > start; --end) {
    sizes[size_t(end - 1)] *= sizes[size_t(end)];
    sizes.erase(size_t(end));
  }
  return sizes;
}

// The permutation that brings the dims `source` to the places `destination`.
Shape moved_dims(int64_t ndim, ShapeRef source, ShapeRef destination) {
  CHECK(source.size() == destination.size(),
        "movedim: Invalid source or destination dims: source (", ShapeText{source},
        ") should contain the same number of dims as destination (", ShapeText{destination}, ")");
  Shape from = unique_dims(source, ndim), to = unique_dims(destination, ndim);
  Shape order(size_t(ndim), -1), rest;
  for (size_t i = 0; i < to.size(); ++i) order[size_t(to[i])] = from[i];
  for (int64_t d = 0; d < ndim; ++d)
    if (std::find(from.begin(), from.end(), d) == from.end()) rest.push_back(d);
  size_t next = 0;
  for (int64_t& d : order)
    if (d < 0) d = rest[next++];
  return order;
}

Shape swapped_dims(int64_t ndim, int64_t dim0, int64_t dim1) {
  Shape order;
  for (int64_t d = 0; d < ndim; ++d) order.push_back(d);
  if (ndim == 0) {
    wrap_dim(dim0, 0);
    wrap_dim(dim1, 0);
  } else {
    std::swap(order[size_t(wrap_dim(dim0, ndim))], order[size_t(wrap_dim(dim1, ndim))]);
  }
  return order;
}

Window expanded_window(const Tensor& input, ShapeRef size) {
  CHECK(size.size() >= input.sizes().size(), "the number of sizes provided (", size.size(),
        ") must be greater or equal to the number of dimensions in the tensor (", input.dim(), ")");
  Window window{Shape(size), broadcast_strides(input, size), input.offset()};
  size_t lead = size.size() - input.sizes().size();
  for (size_t d = 0; d < size.size(); ++d) {
    int64_t have = d < lead ? 1 : input.sizes()[d - lead];
    if (size[d] == -1) {
      CHECK(d >= lead,
            "The expanded size of the tensor (-1) isn't allowed in a leading, "
            "non-existing dimension ",
            d);
      window.sizes[d] = have;
      window.strides[d] = input.strides()[d - lead];
      continue;
    }
    CHECK(have == size[d] || have == 1, "The expanded size of the tensor (", size[d],
          ") must match the existing size (", have, ") at non-singleton dimension ", d,
          ". Target sizes: ", ShapeText{size}, ". Tensor sizes: ", input.sizes());
  }
  // New dims of size 1 have the strides that unsqueeze gives them, others of size 1 keep theirs.
  for (size_t d = input.dim() ? size.size() : 0; d-- > 0;) {
    if (size[d] != 1) continue;
    window.strides[d] =
        d < lead ? window.sizes[d + 1] * window.strides[d + 1] : input.strides()[d - lead];
  }
  return window;
}

Tensor squeezed(const Tensor& input, auto drop) {
  Window window{{}, {}, input.offset()};
  for (int64_t d = 0; d < input.dim(); ++d) {
    if (input.size(d) == 1 && drop(d)) continue;
    window.sizes.push_back(input.size(d));
    window.strides.push_back(input.stride(d));
  }
  return alias(input, window);
}

Tensor reinterpreted(const Tensor& input, DType dtype) {
  Tensor bytes = shallow_copy(input);
  TensorImpl& impl = *bytes.impl();
  int64_t from = int64_t(input.itemsize()), to = int64_t(dtype_size(dtype));
  impl.dtype = dtype;
  if (input.device().is_cpu()) check_aligned(impl.storage->data(), dtype);
  if (from == to) return bytes;
  CHECK(input.dim() > 0, "self.dim() cannot be 0 to view ", dtype_name(input.dtype()), " as ",
        dtype_name(dtype), " (different element sizes)");
  int64_t small = std::min(from, to), ratio = std::max(from, to) / small;
  CHECK(impl.strides.back() == 1, "self.stride(-1) must be 1 to view ", dtype_name(input.dtype()),
        " as ", dtype_name(dtype), " (different element sizes), but got ", impl.strides.back());
  auto scale = [&](int64_t value, const char* what) {
    if (from > to) return value * ratio;
    CHECK(value % ratio == 0, what, " (", value, ") must be divisible by ", ratio, " to view ",
          dtype_name(input.dtype()), " as ", dtype_name(dtype), " (different element sizes)");
    return value / ratio;
  };
  impl.sizes.back() = scale(impl.sizes.back(), "self.size(-1)");
  impl.offset = scale(impl.offset, "self.storage_offset()");
  for (size_t d = 0; d + 1 < impl.strides.size(); ++d)
    impl.strides[d] = scale(impl.strides[d], "each stride but the last");
  impl.layout_changed();
  return bytes;
}

}  // namespace

OP(view, "(Tensor input, int[] size) -> Tensor", {
  .doc     = R"(The same elements in another shape, without a copy.

One size may be -1: it is inferred. The new shape must fit the strides; reshape() copies when it
does not.)",
  .variants = method,
  .is_view = true,
  .batch   = by_sizes,
  .forward = [](const Tensor& input, ShapeRef size) {
    Shape sizes = infer_sizes(size, input.numel());
    std::optional<Shape> strides = view_strides(input.sizes(), input.strides(), sizes);
    CHECK(strides, "view size is not compatible with input tensor's size and stride: shape ",
          input.sizes(), " with strides ", input.strides(), " cannot be seen as ", sizes,
          " without a copy. Use .reshape(...) instead.");
    return alias(input, sizes, *strides, input.offset());
  },
  .saves   = saves<"input.shape">,
  .grads   = grads(d<"input">(in_shape)),
})

OP(view_dtype, "view.dtype(Tensor input, dtype? dtype) -> Tensor", {
  .doc     = R"(The same bytes read as another dtype.

With elements of another size the last dim grows or shrinks to match.)",
  .variants = method,
  .batch   = [](const Batch& batch, const Tensor& input, std::optional<DType> dtype) {
    CHECK(batch.rank("input") > 0 || !dtype || input.itemsize() == dtype_size(*dtype),
          "self.dim() cannot be 0 to view ", dtype_name(input.dtype()), " as ",
          dtype_name(*dtype), " (different element sizes)");
    return call<"view_dtype", Tensor>(input, dtype);
  },
  .forward = [](const Tensor& input, std::optional<DType> dtype) {
    CHECK(dtype, ErrorKind::kType, "expected a dtype, not None");
    return *dtype == input.dtype() ? view(input, input.sizes()) : reinterpreted(input, *dtype);
  },
})

OP(view_as, "(Tensor input, Tensor other) -> Tensor", {
  .doc     = R"(The same elements in the shape of other, without a copy.)",
  .variants = method,
  .forward = [](const Tensor& input, const Tensor& other) { return view(input, other.sizes()); },
})

OP(reshape, "(Tensor input, int[] shape) -> Tensor", {
  .doc     = R"(The same elements in another shape: a view where the strides allow it, else a copy.

One size may be -1: it is inferred.)",
  .is_view = true,
  .node    = "view",
  .batch   = by_sizes,
  .forward = [](const Tensor& input, ShapeRef shape) {
    Shape sizes = infer_sizes(shape, input.numel());
    if (std::optional<Shape> strides = view_strides(input.sizes(), input.strides(), sizes))
      return alias(input, sizes, *strides, input.offset());
    return alias(clone_dense(input), row_major(sizes));
  },
  .saves   = saves<"input.shape">,
  .grads   = grads(d<"input">(in_shape)),
})

OP(reshape_as, "(Tensor input, Tensor other) -> Tensor", {
  .doc     = R"(The same elements in the shape of other.)",
  .variants = method,
  .forward = [](const Tensor& input, const Tensor& other) { return reshape(input, other.sizes()); },
})

OP(flatten, "(Tensor input, int start_dim=0, int end_dim=-1) -> Tensor", {
  .doc     = R"(Joins the dims from start_dim to end_dim into one.)",
  .forward = [](const Tensor& input, int64_t start_dim, int64_t end_dim) {
    Shape sizes = flattened_sizes(input, start_dim, end_dim);
    return sizes == input.sizes() ? input : reshape(input, sizes);
  },
})

OP(ravel, "(Tensor input) -> Tensor", {
  .doc     = R"(All elements in one dim.)",
  .forward = [](const Tensor& input) { return reshape(contiguous(input), Shape{-1}); },
})

OP(unflatten, "(Tensor input, int dim, int[] sizes) -> Tensor", {
  .doc     = R"(Splits one dim into several; one of the sizes may be -1.)",
  .forward = [](const Tensor& input, int64_t dim, ShapeRef sizes) {
    CHECK(!sizes.empty(), "sizes must be non-empty");
    CHECK(input.dim() > 0, ErrorKind::kIndex, "a 0-d tensor has no dim to split");
    size_t d = size_t(wrap_dim(dim, input.dim()));
    Shape parts = infer_sizes(sizes, input.sizes()[d]), whole;
    for (size_t i = 0; i < d; ++i) whole.push_back(input.sizes()[i]);
    for (int64_t part : parts) whole.push_back(part);
    for (size_t i = d + 1; i < input.sizes().size(); ++i) whole.push_back(input.sizes()[i]);
    return view(input, whole);
  },
})

OP(permute, "(Tensor input, int[] dims) -> Tensor", {
  .doc     = R"(Reorders the dims: dim i of the result is dim dims[i] of input.)",
  .is_view = true,
  .sparse  = sparse_permute,
  .batch   = [](const Batch& batch, const Tensor& input, ShapeRef dims) {
    Shape all = Batch::dims(dims, batch.rank("input"));
    all.insert(0, 0);
    return permute(input, all);
  },
  .forward = [](const Tensor& input, ShapeRef dims) {
    return alias(input, permute_window(window_of(input), dims));
  },
  .grads   = grads(d<"input">([](const Tensor& g, const Shape& dims) {
    Shape inverse(dims.size());
    for (size_t i = 0; i < dims.size(); ++i)
      inverse[size_t(wrap_dim(dims[i], g.dim()))] = int64_t(i);
    return permute(g, inverse);
  })),
})

OP(transpose, "(Tensor input, int dim0, int dim1) -> Tensor", {
  .doc     = R"(Swaps two dims.)",
  .aliases = "swapdims",
  .is_view = true,
  .sparse  = sparse_transpose,
  .batch   = by_dims,
  .forward = [](const Tensor& input, int64_t dim0, int64_t dim1) {
    return alias(input, permute_window(window_of(input), swapped_dims(input.dim(), dim0, dim1)));
  },
  .grads   = grads(d<"input">([](const Tensor& g, int64_t dim0, int64_t dim1) {
    return transpose(g, dim0, dim1);
  })),
})

OP(swapaxes, "(Tensor input, int axis0, int axis1) -> Tensor", {
  .doc     = R"(Swaps two dims; NumPy's name for transpose.)",
  .forward = [](const Tensor& input, int64_t axis0, int64_t axis1) {
    return transpose(input, axis0, axis1);
  },
})

OP(t, "(Tensor input) -> Tensor", {
  .doc     = R"(The transpose of a matrix; tensors of fewer dims are returned as they are.)",
  .sparse  = by_forward,
  .forward = [](const Tensor& input) {
    CHECK(input.dim() <= 2, "expects a tensor with <= 2 dimensions, but self is ", input.dim(),
          "D");
    return transpose(input, 0, input.dim() < 2 ? 0 : 1);
  },
})

OP(adjoint, "(Tensor input) -> Tensor", {
  .doc     = R"(Swaps the last two dims and takes the complex conjugate.)",
  .sparse  = by_forward,
  .forward = [](const Tensor& input) {
    CHECK(input.dim() != 1,
          "tensor.adjoint() is only supported on matrices or batches of matrices. Got 1-D tensor.");
    Tensor swapped = input.dim() == 0 ? input : transpose(input, -2, -1);
    return is_complex(input.dtype()) ? conj(swapped) : swapped;
  },
})

OP(movedim, "(Tensor input, int[] source, int[] destination) -> Tensor", {
  .doc     = R"(Moves dims to other places; the rest keep their order.)",
  .aliases = "moveaxis",
  .forward = [](const Tensor& input, ShapeRef source, ShapeRef destination) {
    return permute(input, moved_dims(input.dim(), source, destination));
  },
})

OP(movedim_int, "movedim.int(Tensor input, int source, int destination) -> Tensor", {
  .doc     = R"(Moves one dim to another place; the rest keep their order.)",
  .aliases = "moveaxis",
  .forward = [](const Tensor& input, int64_t source, int64_t destination) {
    return permute(input, moved_dims(input.dim(), {&source, 1}, {&destination, 1}));
  },
})

OP(expand, "(Tensor input, int[] size) -> Tensor", {
  .doc     = R"(Repeats dims of size 1, and new leading dims, without copying; -1 keeps a size.)",
  .variants = method,
  .is_view = true,
  .batch   = [](const Batch& batch, const Tensor& input, ShapeRef size) {
    return expand(batch.padded(input, int64_t(size.size())), batch.with_samples(size));
  },
  .forward = [](const Tensor& input, ShapeRef size) {
    return alias(input, expanded_window(input, size));
  },
  .grads   = grads(d<"input">([](const Tensor& g) { return g; })),
})

OP(expand_as, "(Tensor input, Tensor other) -> Tensor", {
  .doc     = R"(Expands to the shape of other.)",
  .variants = method,
  .forward = [](const Tensor& input, const Tensor& other) { return expand(input, other.sizes()); },
})

OP(broadcast_to, "(Tensor input, int[] size) -> Tensor", {
  .doc     = R"(Expands to a shape; NumPy's name for expand.)",
  .forward = [](const Tensor& input, ShapeRef size) { return expand(input, size); },
})

OP(squeeze, "(Tensor input) -> Tensor", {
  .doc     = R"(Drops all dims of size 1.)",
  .is_view = true,
  .batch   = [](const Batch&, const Tensor& input) {
    Shape single;
    for (int64_t d = 1; d < input.dim(); ++d)
      if (input.size(d) == 1) single.push_back(d);
    return call<"squeeze_dims", Tensor>(input, ShapeRef(single));
  },
  .forward = [](const Tensor& input) { return squeezed(input, [](int64_t) { return true; }); },
  .saves   = saves<"input.shape">,
  .grads   = grads(d<"input">(in_shape)),
})

OP(squeeze_dim, "squeeze.dim(Tensor input, int dim) -> Tensor", {
  .doc     = R"(Drops a dim when its size is 1.)",
  .is_view = true,
  .batch   = by_dims,
  .forward = [](const Tensor& input, int64_t dim) {
    int64_t only = wrap_dim(dim, input.dim());
    return squeezed(input, [=](int64_t d) { return d == only; });
  },
  .saves   = saves<"input.shape">,
  .grads   = grads(d<"input">(in_shape)),
})

OP(squeeze_dims, "squeeze.dims(Tensor input, int[] dim) -> Tensor", {
  .doc     = R"(Drops those of the given dims whose size is 1.)",
  .is_view = true,
  .batch   = by_dims,
  .forward = [](const Tensor& input, ShapeRef dim) {
    Shape dims = unique_dims(dim, input.dim());
    return squeezed(input, [&](int64_t d) { return std::find(dims.begin(), dims.end(),
                                                             d) != dims.end(); });
  },
  .saves   = saves<"input.shape">,
  .grads   = grads(d<"input">(in_shape)),
})

OP(unsqueeze, "(Tensor input, int dim) -> Tensor", {
  .doc     = R"(Inserts a dim of size 1 before dim.)",
  .is_view = true,
  .sparse  = sparse_unsqueeze,
  .batch   = by_new_dim,
  .forward = [](const Tensor& input, int64_t dim) {
    return alias(input, unsqueeze_window(window_of(input), dim));
  },
  .saves   = saves<"input.shape">,
  .grads   = grads(d<"input">(in_shape)),
})

OP(alias, "(Tensor input) -> Tensor", {
  .home    = "private",
  .doc     = R"(The same elements as another tensor: what as_subclass makes an instance of.)",
  .is_view = true,
  .batch   = by_elements,
  .forward = [](const Tensor& input) { return shallow_copy(input); },
  .grads   = grads(d<"input">([](const Tensor& g) { return g; })),
})

OP(detach, "(Tensor input) -> Tensor", {
  .doc     = R"(The same memory without the history: gradients stop here.)",
  .seen    = Seen::whole,
  .sparse  = by_forward,
  .forward = [](const Tensor& input) { return rushlight::detach(input); },
})

}  // namespace rushlight
