// Owns sorting and what is made of it. All sorts are stable; NaN is greater than every number.
#include "core/ops/sort/sort.h"

#include "core/autograd/grad_mode.h"
#include "core/ops/index/index.h"
#include "core/ops/op.h"
#include "core/tensor/memory_order.h"
#include "core/tensor/reduce.h"
#include "core/tensor/tile_loop.h"

namespace rushlight {

Sorted empty_sorted(const Tensor& input, int64_t dim, int64_t keep) {
  Shape sizes = input.sizes();
  if (input.dim()) sizes[size_t(dim)] = keep;
  Shape strides = input.sizes() == sizes ? strides_after(input) : contiguous_strides(sizes);
  return {empty_strided(sizes, strides, input.dtype(), input.device()),
          empty_strided(sizes, strides, DType::int64, input.device())};
}

static int64_t row_length(const Tensor& input, int64_t dim) {
  return input.dim() ? input.size(dim) : 1;
}

Sorted sort_rows(const Tensor& input, int64_t dim, int64_t keep, bool descending) {
  size_t d = size_t(wrap_dim(dim, input.dim()));
  Shape sizes = input.sizes();
  if (input.dim()) sizes[d] = keep;
  else keep = 1;  // its one element is the result, even where none is to be kept
  if (checked_numel(sizes) == 0 || input.device().is_meta())
    return empty_sorted(input, int64_t(d), keep);
  if (row_length(input, int64_t(d)) == 1) {
    Sorted sorted = empty_sorted(input, int64_t(d), keep);
    copy_into(sorted.values, input);
    call<"zero_", Tensor>(sorted.indices);
    return sorted;
  }
  return (input.device().is_cuda() ? sort_rows_cuda : sort_rows_cpu)(input, int64_t(d), keep,
                                                                     descending);
}

Tensor taken_backward(const Tensor& g, const Tensor& indices, const Shape& shape, int64_t dim) {
  return call<"scatter_add_", Tensor>(new_zeros(g, shape), dim, indices, g);
}

namespace {

// The first k of each sorted row.
Sorted first_along(const Tensor& input, int64_t dim, int64_t k, bool descending) {
  int64_t length = row_length(input, dim);
  CHECK(k >= 0 && k <= length, "selected index k out of range: k = ", k, " for ", length,
        " elements along dim ", dim);
  // To find one of them takes no order; where NaN is the smallest as well, that is another one.
  if (k == 1 && input.dim() && (descending || is_integral(input.dtype()))) {
    DimSet dims = reduced_dims(ShapeRef(&dim, 1), input.dim());
    auto [values, indices] =
        reduce_pair(descending ? Reduction::indexed_maximum : Reduction::indexed_minimum, input,
                    dims, true, input.dtype());
    return {values, indices};
  }
  return sort_rows(input, dim, k, descending);
}

Sorted sort_along(const Tensor& input, int64_t dim, bool descending) {
  return sort_rows(input, dim, row_length(input, dim), descending);
}

using Pair = std::tuple<Tensor, Tensor>;

}  // namespace

OP(sort, "(Tensor input, int dim=-1, bool descending=False, *, "
         "bool? stable=None) -> (Tensor values, Tensor indices)", {
  .doc     = R"(The elements along dim in order, and where they were.

Equal elements keep their order.)",
  .dtypes  = real,
  .batch   = by_dims,
  .forward = [](const Tensor& input, int64_t dim, bool descending, std::optional<bool>) {
    Sorted sorted = sort_along(input, dim, descending);
    return Pair(sorted.values, sorted.indices);
  },
  .saves   = saves<"indices", "input.shape">,
  .grads   = grads(d<"input">([](TensorList g, const Tensor& indices, const Shape& shape,
                                 int64_t dim, bool, std::optional<bool>) {
    return taken_backward(g[0], indices, shape, dim);
  })),
})

OP(argsort, "(Tensor input, int dim=-1, bool descending=False, *, bool stable=False) -> Tensor", {
  .doc     = R"(Where the elements along dim are, in order. Equal elements keep their order.)",
  .dtypes  = real,
  .batch   = by_dims,
  .forward = [](const Tensor& input, int64_t dim, bool descending, bool) {
    return sort_along(input, dim, descending).indices;
  },
})

OP(msort, "(Tensor input) -> Tensor", {
  .doc     = R"(The elements along the first dim in order.)",
  .dtypes  = real,
  .forward = [](const Tensor& input) {
    return std::get<0>(call<"sort", Pair>(input, int64_t(0), false, std::optional(true)));
  },
})

OP(topk, "(Tensor input, int k, int dim=-1, bool largest=True, "
         "bool sorted=True) -> (Tensor values, Tensor indices)", {
  .doc     = R"(The k largest (or smallest) elements along dim in order, and where they were.)",
  .dtypes  = real,
  .batch   = by_dims,
  .forward = [](const Tensor& input, int64_t k, int64_t dim, bool largest, bool) {
    Sorted first = first_along(input, dim, k, largest);
    return Pair(first.values, first.indices);
  },
  .saves   = saves<"indices", "input.shape">,
  .grads   = grads(d<"input">([](TensorList g, const Tensor& indices, const Shape& shape, int64_t,
                                 int64_t dim,
                                 bool, bool) {
    return taken_backward(g[0], indices, shape, dim);
  })),
})

}  // namespace rushlight
