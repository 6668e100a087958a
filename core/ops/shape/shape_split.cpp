// Owns the ops that cut a tensor into views along a dim.
#include "core/autograd/needs.h"
#include "core/ops/op.h"
#include "core/ops/shape/shape.h"

namespace rushlight {
namespace {

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
  CHECK(tensor.dim() > 0, "expects at least a 1-dimensional tensor");
  return tensor.size(dim);
}

std::vector<Tensor> split(const Tensor& tensor, ShapeRef sizes, int64_t dim) {
  return call<"split_with_sizes", std::vector<Tensor>>(tensor, sizes, dim);
}

Shape section_lengths(int64_t size, int64_t sections) {
  CHECK(sections > 0, "number of sections must be larger than 0, got ", sections);
  check_piece_count(sections);
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

// Views that autograd takes for views of one each, so that they may be written in place.
std::vector<Tensor> cut_singly(const Tensor& input, ShapeRef lengths, int64_t dim) {
  std::vector<Tensor> pieces;
  int64_t at = 0;
  for (int64_t length : lengths) {
    pieces.push_back(narrow(input, dim, at, length));
    at += length;
  }
  return pieces;
}

// Numbers that decide shapes are needed here, wherever they are.
Shape read_numbers(const Tensor& numbers) {
  CHECK(numbers.dtype() == DType::int64,
        "expected tensor_indices_or_sections to have dtype of long, but got ",
        dtype_name(numbers.dtype()));
  CHECK(numbers.dim() <= 1,
        "expected tensor_indices_or_sections to be a "
        "zero-dimensional or one-dimensional tensor, but got a tensor with ",
        numbers.dim(), " dims");
  CHECK(!numbers.device().is_meta(), ErrorKind::kNotImplemented,
        "not implemented for numbers on meta, which have no values.");
  Tensor here = to_contiguous(needs::to_device(numbers, {}));
  return Shape(ShapeRef(here.data<int64_t>(), size_t(here.numel())));
}

// hsplit and its kin: into equal parts, which must be even.
std::vector<Tensor> split_evenly(const Tensor& input, int64_t sections, int64_t dim) {
  CHECK(sections > 0, "number of sections must be larger than 0, got ", sections);
  CHECK(input.size(dim) % sections == 0, "attempted to split along dimension ", dim,
        ", but the size of the dimension ", input.size(dim), " is not divisible by the split_size ",
        sections, "!");
  return cut_singly(input, section_lengths(input.size(dim), sections), dim);
}
int64_t horizontal_dim(const Tensor& input) {
  CHECK(input.dim() >= 1,
        "torch.hsplit requires a tensor with at least 1 dimension, but got a "
        "tensor with 0 dimensions!");
  return input.dim() == 1 ? 0 : 1;
}
void check_dims(const Tensor& input, int64_t least) {
  CHECK(input.dim() >= least, "requires a tensor with at least ", least,
        " dimension, but got a tensor with ", input.dim(), " dimensions!");
}

// The lengths of pieces of `split_size` elements.
Shape split_lengths(const Tensor& tensor, int64_t split_size, int64_t dim) {
  int64_t size = cut_size(tensor, dim);
  CHECK(split_size >= 0, "expects split_size be non-negative, but got split_size=", split_size);
  CHECK(split_size > 0 || size == 0,
        "split_size can only be 0 if dimension size is 0, but got dimension size of ", size);
  return piece_lengths(size, split_size);
}
// The lengths of at most `chunks` equal pieces.
Shape chunk_lengths(const Tensor& input, int64_t chunks, int64_t dim) {
  CHECK(chunks > 0, "expects `chunks` to be greater than 0, got: ", chunks);
  int64_t size = cut_size(input, dim);
  return size == 0 ? section_lengths(0, chunks) : piece_lengths(size, (size - 1) / chunks + 1);
}
void check_lengths(const Tensor& input, ShapeRef split_sizes, int64_t dim) {
  int64_t size = cut_size(input, dim), sum = 0;
  for (int64_t length : split_sizes) {
    CHECK(length >= 0, "expects split_sizes have only non-negative entries, but got ",
          ShapeText{split_sizes});
    CHECK(!__builtin_add_overflow(sum, length, &sum),
          "split_sizes overflow: ", ShapeText{split_sizes});
  }
  CHECK(sum == size, "expects split_sizes to sum exactly to ", size,
        " (input tensor's size at dimension ", dim,
        "), but got split_sizes=", ShapeText{split_sizes});
}

}  // namespace

OP(split_with_sizes, "(Tensor input, int[] split_sizes, int dim=0) -> Tensor[]", {
  .doc     = R"(Views of the given lengths along dim, one after the other.)",
  .is_view = true,
  .node    = "split",
  .batch   = by_dims,
  .forward = [](const Tensor& input, ShapeRef split_sizes, int64_t dim) {
    check_lengths(input, split_sizes, dim);
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
    return split(tensor, split_lengths(tensor, split_size, dim), dim);
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
    return split(input, chunk_lengths(input, chunks, dim), dim);
  },
})

// It is asked first: where a vector of one element is given, it is an index, not a number of parts.
OP(tensor_split, "(Tensor input, Tensor indices_or_sections, int dim=0) -> Tensor[]", {
  .doc     = R"(Views along dim, as many as a 0-d tensor says or cut where a vector says.)",
  .forward = [](const Tensor& input, const Tensor& numbers, int64_t dim) {
    Shape read = read_numbers(numbers);
    if (numbers.dim() == 1) return cut_at(input, read, dim);
    return cut_singly(input, section_lengths(cut_size(input, dim), read[0]), dim);
  },
})

OP(tensor_split_count, "tensor_split.count(Tensor input, int indices_or_sections, "
                       "int dim=0) -> Tensor[]", {
  .doc     = R"(Views along dim whose lengths differ by one at most.)",
  .forward = [](const Tensor& input, int64_t sections, int64_t dim) {
    return cut_singly(input, section_lengths(cut_size(input, dim), sections), dim);
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
  .sparse  = sparse_unbind,
  .batch   = by_dims,
  .forward = [](const Tensor& input, int64_t dim) {
    CHECK(input.dim() > 0, ErrorKind::kIndex, "Dimension specified as ", dim,
          " but tensor has no dimensions");
    check_piece_count(input.size(dim));
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

OP(hsplit, "(Tensor input, int indices_or_sections) -> Tensor[]", {
  .doc     = R"(Views of equal length along dim 1, or dim 0 of a vector.)",
  .forward = [](const Tensor& input, int64_t sections) {
    return split_evenly(input, sections, horizontal_dim(input));
  },
})

OP(hsplit_indices, "hsplit.indices(Tensor input, int[] indices_or_sections) -> Tensor[]", {
  .doc     = R"(Views of the parts of dim 1, or dim 0 of a vector, between the given indices.)",
  .forward = [](const Tensor& input, ShapeRef indices) {
    return cut_at(input, indices, horizontal_dim(input));
  },
})

OP(vsplit, "(Tensor input, int indices_or_sections) -> Tensor[]", {
  .doc     = R"(Views of equal length along dim 0.)",
  .forward = [](const Tensor& input, int64_t sections) {
    check_dims(input, 2);
    return split_evenly(input, sections, 0);
  },
})

OP(vsplit_indices, "vsplit.indices(Tensor input, int[] indices_or_sections) -> Tensor[]", {
  .doc     = R"(Views of the parts of dim 0 between the given indices.)",
  .forward = [](const Tensor& input, ShapeRef indices) {
    check_dims(input, 2);
    return cut_at(input, indices, 0);
  },
})

OP(dsplit, "(Tensor input, int indices_or_sections) -> Tensor[]", {
  .doc     = R"(Views of equal length along dim 2.)",
  .forward = [](const Tensor& input, int64_t sections) {
    check_dims(input, 3);
    return split_evenly(input, sections, 2);
  },
})

OP(dsplit_indices, "dsplit.indices(Tensor input, int[] indices_or_sections) -> Tensor[]", {
  .doc     = R"(Views of the parts of dim 2 between the given indices.)",
  .forward = [](const Tensor& input, ShapeRef indices) {
    check_dims(input, 3);
    return cut_at(input, indices, 2);
  },
})

OP(unsafe_split_with_sizes, "(Tensor input, int[] split_sizes, int dim=0) -> Tensor[]", {
  .doc     = R"(As split_with_sizes, of views that may be written in place.)",
  .forward = [](const Tensor& input, ShapeRef split_sizes, int64_t dim) {
    check_lengths(input, split_sizes, dim);
    return cut_singly(input, split_sizes, dim);
  },
})

OP(unsafe_split, "(Tensor tensor, int split_size, int dim=0) -> Tensor[]", {
  .doc     = R"(As split, of views that may be written in place.)",
  .variants = function | method,
  .forward = [](const Tensor& tensor, int64_t split_size, int64_t dim) {
    return cut_singly(tensor, split_lengths(tensor, split_size, dim), dim);
  },
})

OP(unsafe_chunk, "(Tensor input, int chunks, int dim=0) -> Tensor[]", {
  .doc     = R"(As chunk, of views that may be written in place.)",
  .forward = [](const Tensor& input, int64_t chunks, int64_t dim) {
    return cut_singly(input, chunk_lengths(input, chunks, dim), dim);
  },
})

}  // namespace rushlight
