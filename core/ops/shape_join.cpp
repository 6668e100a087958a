// Owns the ops between one tensor and many: joining tensors along a dim, cutting one into views.
#include <limits>

#include "core/ops/op.h"
#include "core/ops/shape.h"

namespace rushlight {
namespace {

void check_list(TensorList tensors) {
  CHECK(!tensors.empty(), "expected a non-empty list of Tensors");
  for (size_t i = 0; i < tensors.size(); ++i)
    CHECK(tensors[i].defined(), ErrorKind::kType, "expected Tensor as element ", i,
          ", but got None");
}

// Shape (0,) joins with everything, as it always has.
bool is_nothing(ShapeRef sizes) { return sizes.size() == 1 && sizes[0] == 0; }

Tensor joined(TensorList tensors, int64_t dim) {
  check_list(tensors);
  const Tensor* like = &tensors[0];
  DType dtype = tensors[0].dtype();
  bool channels_last = true;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& t = tensors[i];
    CHECK(t.dim() > 0, "zero-dimensional tensor (at position ", i,
          ") cannot be concatenated. Use stack.");
    dtype = promote(dtype, t.dtype());
    if (is_nothing(t.sizes())) continue;
    if (is_nothing(like->sizes())) like = &t;
    channels_last &= !t.is_contiguous() && t.is_contiguous(MemoryFormat::channels_last);
  }
  size_t d = is_nothing(like->sizes()) ? 0 : size_t(wrap_dim(dim, like->dim()));
  Shape sizes = like->sizes();
  sizes[d] = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Shape& one = tensors[i].sizes();
    if (is_nothing(one)) continue;
    CHECK(one.size() == sizes.size(), "Tensors must have same number of dimensions: got ",
          sizes.size(), " and ", one.size());
    for (size_t k = 0; k < one.size(); ++k)
      CHECK(k == d || one[k] == sizes[k], "Sizes of tensors must match except in dimension ", d,
            ". Expected size ", sizes[k], " but got size ", one[k], " in dim ", k,
            " for tensor number ", i, " in the list.");
    CHECK(!__builtin_add_overflow(sizes[d], one[d], &sizes[d]), "the size of dim ", d,
          " overflows");
  }
  checked_numel(sizes);
  channels_last &= sizes.size() == 4;
  Shape strides =
      strides_for(sizes, channels_last ? MemoryFormat::channels_last : MemoryFormat::contiguous);
  Tensor out = empty_strided(sizes, strides, dtype, like->device());
  int64_t at = 0;
  for (const Tensor& t : tensors) {
    if (t.numel() == 0) continue;
    copy_into(alias(out, t.sizes(), strides, at * strides[d]), t);
    at += t.sizes()[d];
  }
  return out;
}

Tensor stacked(TensorList tensors, int64_t dim) {
  check_list(tensors);
  std::vector<Tensor> rows;
  for (const Tensor& t : tensors) {
    CHECK(t.sizes() == tensors[0].sizes(), "stack expects each tensor to be equal size, but got ",
          tensors[0].sizes(), " at entry 0 and ", t.sizes(), " at entry ", rows.size());
    rows.push_back(alias(t, unsqueeze_window(window_of(t), dim)));
  }
  return joined(rows, wrap_dim(dim, tensors[0].dim() + 1));
}

// Views of `lengths` elements each, one after the other.
std::vector<Tensor> cut(const Tensor& tensor, ShapeRef lengths, int64_t dim) {
  std::vector<Tensor> pieces;
  int64_t at = 0;
  for (int64_t length : lengths) {
    pieces.push_back(alias(tensor, narrow_window(window_of(tensor), dim, at, length)));
    at += length;
  }
  return pieces;
}

// The gradient of cut(): zeros where none flowed.
Tensor join_grads(TensorList grads, const Shape& shape, ShapeRef lengths, int64_t dim) {
  const Tensor& given = *std::ranges::find_if(grads, &Tensor::defined);
  DType dtype = given.dtype();
  Device device = given.device();
  std::vector<Tensor> all(grads.begin(), grads.end());
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i].defined()) continue;
    Shape sizes = shape;
    sizes[size_t(wrap_dim(dim, int64_t(shape.size())))] = lengths[i];
    all[i] = zeros(sizes, dtype, device);
  }
  return cat(all, dim);
}

int64_t cut_size(const Tensor& tensor, int64_t dim) {
  CHECK(tensor.dim() > 0, "split expects at least a 1-dimensional tensor");
  return tensor.size(dim);
}

std::vector<Tensor> split(const Tensor& tensor, ShapeRef sizes, int64_t dim) {
  return call<"split_with_sizes", std::vector<Tensor>>(tensor, sizes, dim);
}

Shape section_lengths(int64_t size, int64_t sections) {
  CHECK(sections > 0, "number of sections must be larger than 0, got ", sections);
  CHECK(sections <= std::numeric_limits<int32_t>::max(), ErrorKind::kOutOfMemory, "no memory for ",
        sections, " sections");
  Shape lengths;
  for (int64_t i = 0; i < sections; ++i) lengths.push_back(size / sections + (i < size % sections));
  return lengths;
}

// The pieces between the places where array_split of NumPy cuts; they may be out of order.
std::vector<Tensor> cut_at(const Tensor& input, ShapeRef places, int64_t dim) {
  cut_size(input, dim);
  std::vector<Tensor> pieces;
  int64_t start = 0;
  for (int64_t place : places) {
    pieces.push_back(slice(input, dim, start, place, 1));
    start = place;
  }
  pieces.push_back(slice(input, dim, start, INT64_MAX, 1));
  return pieces;
}

Tensor at_least(const Tensor& input, int64_t ndim) {
  Tensor out = input;
  if (out.dim() == 0 && ndim > 0) out = reshape(out, Shape{1});
  if (out.dim() == 1 && ndim > 1) out = unsqueeze(out, 0);
  if (out.dim() == 2 && ndim > 2) out = unsqueeze(out, 2);
  return out;
}
std::vector<Tensor> all_at_least(TensorList tensors, int64_t ndim) {
  std::vector<Tensor> out;
  for (const Tensor& t : tensors) out.push_back(at_least(t, ndim));
  return out;
}

Tensor stacked_sideways(TensorList tensors) {
  check_list(tensors);
  std::vector<Tensor> parts = all_at_least(tensors, 1);
  return cat(parts, parts[0].dim() == 1 ? 0 : 1);
}

std::vector<Tensor> broadcast_all(TensorList tensors) {
  check_list(tensors);
  Shape sizes;
  for (const Tensor& t : tensors) sizes = broadcast_shapes(sizes, t.sizes());
  std::vector<Tensor> out;
  for (const Tensor& t : tensors) out.push_back(expand(t, sizes));
  return out;
}

}  // namespace

OP(cat, "(Tensor[] tensors, int dim=0) -> Tensor", {
  .doc     = R"(Joins tensors along a dim; all other sizes must be equal.

The dtype of the result is the common one.)",
  .aliases = "concat concatenate",
  .forward = [](TensorList tensors, int64_t dim) { return joined(tensors, dim); },
  .saves   = saves<"tensors.shape">,
  .grads   = grads(d<"tensors">([](const Tensor& g, const std::vector<Shape>& shapes, int64_t dim) {
    std::vector<Tensor> pieces;
    int64_t at = 0;
    for (const Shape& shape : shapes) {
      if (is_nothing(shape)) {
        pieces.push_back(zeros(shape, g.dtype(), g.device()));
        continue;
      }
      int64_t length = shape[size_t(wrap_dim(dim, g.dim()))];
      pieces.push_back(narrow(g, dim, at, length));
      at += length;
    }
    return pieces;
  })),
})

OP(stack, "(Tensor[] tensors, int dim=0) -> Tensor", {
  .doc     = R"(Joins tensors of one shape along a new dim.)",
  .forward = [](TensorList tensors, int64_t dim) { return stacked(tensors, dim); },
  .grads   = grads(d<"tensors">([](const Tensor& g, int64_t dim) {
    return call<"unbind", std::vector<Tensor>>(g, dim);
  })),
})

OP(hstack, "(Tensor[] tensors) -> Tensor", {
  .doc     = R"(Joins tensors side by side: along dim 1, or dim 0 when they have one dim.)",
  .forward = [](TensorList tensors) { return stacked_sideways(tensors); },
})

OP(vstack, "(Tensor[] tensors) -> Tensor", {
  .doc     = R"(Joins tensors row by row: along dim 0, after 1-d ones became rows.)",
  .aliases = "row_stack",
  .forward = [](TensorList tensors) {
    check_list(tensors);
    return cat(all_at_least(tensors, 2), 0);
  },
})

OP(dstack, "(Tensor[] tensors) -> Tensor", {
  .doc     = R"(Joins tensors along dim 2, after all got three dims.)",
  .forward = [](TensorList tensors) {
    check_list(tensors);
    return cat(all_at_least(tensors, 3), 2);
  },
})

OP(column_stack, "(Tensor[] tensors) -> Tensor", {
  .doc     = R"(Joins tensors side by side, after 1-d ones became columns.)",
  .forward = [](TensorList tensors) {
    check_list(tensors);
    std::vector<Tensor> columns;
    for (const Tensor& t : tensors)
      columns.push_back(t.dim() < 2 ? reshape(t, Shape{t.numel(), 1}) : t);
    return stacked_sideways(columns);
  },
})

OP(split_with_sizes, "(Tensor input, int[] split_sizes, int dim=0) -> Tensor[]", {
  .doc     = R"(Views of the given lengths along dim, one after the other.)",
  .is_view = true,
  .forward = [](const Tensor& input, ShapeRef split_sizes, int64_t dim) {
    int64_t size = cut_size(input, dim), sum = 0;
    for (int64_t length : split_sizes) {
      CHECK(length >= 0, "split_with_sizes expects split_sizes have only non-negative entries, "
                         "but got ",
            ShapeText{split_sizes});
      CHECK(!__builtin_add_overflow(sum, length, &sum), "split_sizes overflow: ",
            ShapeText{split_sizes});
    }
    CHECK(sum == size, "split_with_sizes expects split_sizes to sum exactly to ", size,
          " (input tensor's size at dimension ", dim,
          "), but got split_sizes=", ShapeText{split_sizes});
    return cut(input, split_sizes, dim);
  },
  .saves   = saves<"input.shape">,
  .grads   = grads(d<"input">([](TensorList g, const Shape& shape, const Shape& split_sizes,
                                 int64_t dim) {
    return join_grads(g, shape, split_sizes, dim);
  })),
})

OP(split, "(Tensor tensor, int split_size_or_sections, int dim=0) -> Tensor[]", {
  .doc     = R"(Views of split_size elements each along dim; the last may be shorter.)",
  .variants = function | method,
  .forward = [](const Tensor& tensor, int64_t split_size, int64_t dim) {
    int64_t size = cut_size(tensor, dim);
    CHECK(split_size >= 0, "split expects split_size be non-negative, but got split_size=",
          split_size);
    CHECK(split_size > 0 || size == 0, "split_size can only be 0 if dimension size is 0, but got "
          "dimension size of ", size);
    return split(tensor, piece_lengths(size, split_size), dim);
  },
})

OP(split_sizes, "split.sizes(Tensor tensor, int[] split_size_or_sections, int dim=0) -> Tensor[]", {
  .doc     = R"(Views of the given lengths along dim, one after the other.)",
  .variants = function | method,
  .forward = [](const Tensor& tensor, ShapeRef sizes, int64_t dim) {
    return split(tensor, sizes, dim);
  },
})

OP(chunk, "(Tensor input, int chunks, int dim=0) -> Tensor[]", {
  .doc     = R"(At most `chunks` views of equal length along dim; the last may be shorter.)",
  .forward = [](const Tensor& input, int64_t chunks, int64_t dim) {
    CHECK(chunks > 0, "chunk expects `chunks` to be greater than 0, got: ", chunks);
    int64_t size = cut_size(input, dim);
    if (size == 0) return split(input, Shape(size_t(chunks)), dim);
    return split(input, piece_lengths(size, (size - 1) / chunks + 1), dim);
  },
})

OP(tensor_split, "(Tensor input, int indices_or_sections, int dim=0) -> Tensor[]", {
  .doc     = R"(Views along dim whose lengths differ by one at most.)",
  .forward = [](const Tensor& input, int64_t sections, int64_t dim) {
    return split(input, section_lengths(cut_size(input, dim), sections), dim);
  },
})

OP(tensor_split_indices, "tensor_split.indices(Tensor input, int[] indices_or_sections, "
                         "int dim=0) -> Tensor[]", {
  .doc     = R"(Views of the parts of dim between the given indices.)",
  .forward = [](const Tensor& input, ShapeRef indices, int64_t dim) {
    return cut_at(input, indices, dim);
  },
})

OP(unbind, "(Tensor input, int dim=0) -> Tensor[]", {
  .doc     = R"(The slices along dim, as views without that dim.)",
  .is_view = true,
  .forward = [](const Tensor& input, int64_t dim) {
    CHECK(input.dim() > 0, ErrorKind::kIndex, "Dimension specified as ", dim,
          " but tensor has no dimensions");
    std::vector<Tensor> slices;
    for (int64_t i = 0; i < input.size(dim); ++i)
      slices.push_back(alias(input, select_window(window_of(input), dim, i)));
    return slices;
  },
  .saves   = saves<"input.shape">,
  .grads   = grads(d<"input">([](TensorList g, const Shape& shape, int64_t dim) {
    std::vector<Tensor> rows;
    for (const Tensor& row : g) rows.push_back(row.defined() ? unsqueeze(row, dim) : row);
    return join_grads(rows, shape, Shape(g.size(), 1), dim);
  })),
})

OP(atleast_1d, "(Tensor input) -> Tensor", {
  .doc     = R"(input with at least one dim.)",
  .variants = function,
  .forward = [](const Tensor& input) { return at_least(input, 1); },
})

OP(atleast_1d_list, "atleast_1d.list(Tensor[] tensors) -> Tensor[]", {
  .doc     = R"(The tensors with at least one dim each.)",
  .forward = [](TensorList tensors) { return all_at_least(tensors, 1); },
})

OP(atleast_2d, "(Tensor input) -> Tensor", {
  .doc     = R"(input with at least two dims.)",
  .variants = function,
  .forward = [](const Tensor& input) { return at_least(input, 2); },
})

OP(atleast_2d_list, "atleast_2d.list(Tensor[] tensors) -> Tensor[]", {
  .doc     = R"(The tensors with at least two dims each.)",
  .forward = [](TensorList tensors) { return all_at_least(tensors, 2); },
})

OP(atleast_3d, "(Tensor input) -> Tensor", {
  .doc     = R"(input with at least three dims.)",
  .variants = function,
  .forward = [](const Tensor& input) { return at_least(input, 3); },
})

OP(atleast_3d_list, "atleast_3d.list(Tensor[] tensors) -> Tensor[]", {
  .doc     = R"(The tensors with at least three dims each.)",
  .forward = [](TensorList tensors) { return all_at_least(tensors, 3); },
})

OP(broadcast_tensors, "(Tensor[] tensors) -> Tensor[]", {
  .doc     = R"(The tensors expanded to their common shape, as views.)",
  .forward = [](TensorList tensors) { return broadcast_all(tensors); },
})

OP(meshgrid, "(Tensor[] tensors, *, str? indexing=None) -> Tensor[]", {
  .doc     = R"(Grids of coordinates: result i holds tensors[i] along dim i, and repeats it.

indexing='xy' swaps the first two dims, as NumPy does; 'ij' is the default.)",
  .forward = [](TensorList tensors, std::optional<std::string_view> indexing) {
    check_list(tensors);
    bool swap = indexing == "xy" && tensors.size() > 1;
    CHECK(!indexing || indexing == "xy" || indexing == "ij",
          "indexing must be one of \"xy\" or \"ij\", but received: ", *indexing);
    std::vector<Tensor> grids;
    Shape sizes;
    for (const Tensor& t : tensors) {
      CHECK(t.dim() <= 1, "Expected 0D or 1D tensor in the tensor list but got shape ", t.sizes());
      CHECK(t.dtype() == tensors[0].dtype(), "expects all tensors to have the same dtype");
      sizes.push_back(t.numel());
    }
    if (swap) std::swap(sizes[0], sizes[1]);
    for (size_t i = 0; i < tensors.size(); ++i) {
      Shape one(tensors.size(), 1);
      size_t place = swap && i < 2 ? 1 - i : i;
      one[place] = tensors[i].numel();
      grids.push_back(expand(reshape(tensors[i], one), sizes));
    }
    return grids;
  },
})

}  // namespace rushlight
