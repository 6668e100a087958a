// Owns the largest and smallest elements over dims and their positions. NaN is larger and smaller
// than any number; of equal elements the first is found.
#include "core/ops/found_element.h"
#include "core/ops/op.h"
#include "core/ops/reduce/reduce.h"

namespace rushlight {
namespace {

Dims one_dim(const std::optional<int64_t>& dim) {
  return dim ? Dims(ShapeRef(&*dim, 1)) : std::nullopt;
}

Tensor extreme(Reduction reduction, const Tensor& input, Dims dim, bool keepdim) {
  check_extreme_exists(input, dim);
  return reduce(reduction, input, reduced_dims(dim, input.dim()), keepdim, input.dtype());
}

std::tuple<Tensor, Tensor> indexed_extreme(Reduction reduction, const Tensor& input, int64_t dim,
                                           bool keepdim) {
  ShapeRef dims(&dim, 1);
  check_extreme_exists(input, dims);
  return reduce_pair(reduction, input, reduced_dims(dims, input.dim()), keepdim, input.dtype());
}

Tensor position(Reduction reduction, const Tensor& input, const std::optional<int64_t>& dim,
                bool keepdim) {
  CHECK(dim || input.numel() != 0, ErrorKind::kIndex,
        "Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim "
        "with the 'dim' argument.");
  Dims dims = one_dim(dim);
  check_extreme_exists(input, dims);
  DimSet set = reduced_dims(dims, input.dim());
  return reduce_pair(reduction, input, set, keepdim, input.dtype()).second;
}

// The gradient goes to the element that was chosen.
Tensor chosen_grad(TensorList grads, const Shape& shape, const Tensor& indices, int64_t dim,
                   bool keepdim) {
  if (!grads[0].defined()) return {};
  Tensor g = grads[0], zero = new_zeros(g, shape);
  if (shape.empty()) return g;
  Tensor at = keepdim ? indices : unsqueeze(indices, wrap_dim(dim, int64_t(shape.size())));
  if (!keepdim) g = unsqueeze(g, wrap_dim(dim, int64_t(shape.size())));
  return call<"scatter_add_", Tensor>(zero, dim, at, g);
}

// Of the extreme of all elements: those that equal it, or are NaN as it is, share the gradient. The
// others have none, also of a gradient that is NaN.
Tensor extreme_grad(const Tensor& g, const Tensor& input, const Tensor& result) {
  Tensor equal = equals_found(input, result);
  return select(equal, g / sum(equal), 0.0);
}

}  // namespace

OP(max, "(Tensor input) -> Tensor", {
  .doc     = R"(The largest element. Elements that equal it share the gradient.)",
  .dtypes  = real,
  .batch   = [](const Batch& batch, const Tensor& input) {
    return call<"amax", Tensor>(reshape(input, Shape{batch.size(), -1}),
                              std::optional(ShapeRef(Shape{1})), false);
  },
  .forward = [](const Tensor& input) { return extreme(Reduction::maximum, input, {}, false); },
  .saves   = saves<"input", "result">,
  .grads   = grads(d<"input">([](const Tensor& g, const Tensor& input, const Tensor& result) {
                     return extreme_grad(g, input, result);
                   })),
})

OP(max_dim,
   "max.dim(Tensor input, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)", {
  .doc     = R"(The largest elements along dim and their positions.

Example:
    >>> torch.tensor([[1, 5, 2], [7, 3, 7]]).max(1).indices
    tensor([1, 0]))",
  .dtypes  = real,
  .batch   = by_dims,
  .forward = [](const Tensor& input, int64_t dim, bool keepdim) {
    return indexed_extreme(Reduction::indexed_maximum, input, dim, keepdim);
  },
  .saves   = saves<"input.shape", "indices">,
  .grads   = grads(d<"input">([](TensorList grads, const Shape& shape, const Tensor& indices,
                                 int64_t dim, bool keepdim) {
                     return chosen_grad(grads, shape, indices, dim, keepdim);
                   })),
})

OP(max_binary, "max.binary(Tensor input, Tensor other) -> Tensor", {
  .doc     = R"(The larger of two elements: maximum(input, other).)",
  .dtypes  = real,
  .forward = [](const Tensor& input, const Tensor& other) { return maximum(input, other); },
})

OP(min, "(Tensor input) -> Tensor", {
  .doc     = R"(The smallest element. Elements that equal it share the gradient.)",
  .dtypes  = real,
  .batch   = [](const Batch& batch, const Tensor& input) {
    return call<"amin", Tensor>(reshape(input, Shape{batch.size(), -1}),
                              std::optional(ShapeRef(Shape{1})), false);
  },
  .forward = [](const Tensor& input) { return extreme(Reduction::minimum, input, {}, false); },
  .saves   = saves<"input", "result">,
  .grads   = grads(d<"input">([](const Tensor& g, const Tensor& input, const Tensor& result) {
                     return extreme_grad(g, input, result);
                   })),
})

OP(min_dim,
   "min.dim(Tensor input, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)", {
  .doc     = R"(The smallest elements along dim and their positions.)",
  .dtypes  = real,
  .batch   = by_dims,
  .forward = [](const Tensor& input, int64_t dim, bool keepdim) {
    return indexed_extreme(Reduction::indexed_minimum, input, dim, keepdim);
  },
  .saves   = saves<"input.shape", "indices">,
  .grads   = grads(d<"input">([](TensorList grads, const Shape& shape, const Tensor& indices,
                                 int64_t dim, bool keepdim) {
                     return chosen_grad(grads, shape, indices, dim, keepdim);
                   })),
})

OP(min_binary, "min.binary(Tensor input, Tensor other) -> Tensor", {
  .doc     = R"(The smaller of two elements: minimum(input, other).)",
  .dtypes  = real,
  .forward = [](const Tensor& input, const Tensor& other) { return minimum(input, other); },
})

OP(amax, "(Tensor input, int[1]? dim=None, bool keepdim=False) -> Tensor", {
  .doc     = R"(The largest elements over dim, an int or several.

Elements that equal them share the gradient.)",
  .dtypes  = real,
  .batch   = by_dims,
  .forward = [](const Tensor& input, Dims dim, bool keepdim) {
    return extreme(Reduction::maximum, input, dim, keepdim);
  },
  .saves   = saves<"input", "result">,
  .grads   = grads(d<"input">([](const Tensor& g, const Tensor& input, const Tensor& result,
                                 const KeptDims& dim, bool keepdim) {
                     return share_among_equal(g, input, result, dim, keepdim);
                   })),
})

OP(amin, "(Tensor input, int[1]? dim=None, bool keepdim=False) -> Tensor", {
  .doc     = R"(The smallest elements over dim, an int or several.

Elements that equal them share the gradient.)",
  .dtypes  = real,
  .batch   = by_dims,
  .forward = [](const Tensor& input, Dims dim, bool keepdim) {
    return extreme(Reduction::minimum, input, dim, keepdim);
  },
  .saves   = saves<"input", "result">,
  .grads   = grads(d<"input">([](const Tensor& g, const Tensor& input, const Tensor& result,
                                 const KeptDims& dim, bool keepdim) {
                     return share_among_equal(g, input, result, dim, keepdim);
                   })),
})

OP(aminmax,
   "(Tensor input, *, int? dim=None, bool keepdim=False) -> (Tensor min, Tensor max)", {
  .doc     = R"(The smallest and the largest elements along dim, or of all.)",
  .dtypes  = real,
  .forward = [](const Tensor& input, std::optional<int64_t> dim, bool keepdim) {
    Dims dims = one_dim(dim);
    return std::tuple(call<"amin", Tensor>(input, dims, keepdim),
                      call<"amax", Tensor>(input, dims, keepdim));
  },
})

OP(argmax, "(Tensor input, int? dim=None, bool keepdim=False) -> Tensor", {
  .doc     = R"(The position of the first largest element along dim, or in the flat input.)",
  .dtypes  = real,
  .batch   = by_dims,
  .forward = [](const Tensor& input, std::optional<int64_t> dim, bool keepdim) {
    return position(Reduction::indexed_maximum, input, dim, keepdim);
  },
})

OP(argmin, "(Tensor input, int? dim=None, bool keepdim=False) -> Tensor", {
  .doc     = R"(The position of the first smallest element along dim, or in the flat input.)",
  .dtypes  = real,
  .batch   = by_dims,
  .forward = [](const Tensor& input, std::optional<int64_t> dim, bool keepdim) {
    return position(Reduction::indexed_minimum, input, dim, keepdim);
  },
})

}  // namespace rushlight
