// Owns sums, means, products, counts and truth over dims, and the sum that undoes broadcasting.
// Extremes are in reduce_extreme.cpp, variances and norms in reduce_moment.cpp.
#include "core/ops/reduce/reduce.h"

#include "core/ops/op.h"

namespace rushlight {
namespace {

Tensor total(Reduction reduction, const Tensor& input, Dims dim, bool keepdim, DType dtype) {
  // A bool holds no sum: count, then compare with zero.
  DType working = is_bool(dtype) ? DType::int64 : dtype;
  const Tensor from = is_bool(dtype) ? to_dtype(input, dtype) : input;
  return to_dtype(reduce(reduction, from, reduced_dims(dim, input.dim()), keepdim, working), dtype);
}

// Whether any or all elements are not zero, as the largest or smallest of the truth values.
Tensor truth(Reduction reduction, const Tensor& input, Dims dim, bool keepdim) {
  DimSet dims = dim && dim->empty() ? DimSet() : reduced_dims(dim, input.dim());
  DType dtype = input.dtype() == DType::uint8 ? DType::uint8 : DType::bool_;  // as in PyTorch
  if (reduced_numel(input.sizes(), dims) == 0)
    return full(reduced_sizes(input.sizes(), dims, keepdim), reduction == Reduction::minimum, dtype,
                input.device());
  Tensor result = reduce(reduction, to_dtype(input, dtype), dims, keepdim, dtype);
  return to_dtype(to_dtype(result, DType::bool_), dtype);
}

// The dims that broadcasting to `from` added to `size`, or repeated.
DimSet broadcast_dims(ShapeRef from, ShapeRef size) {
  CHECK(size.size() <= from.size(), "shape ", ShapeText{from},
        " cannot be summed to the longer shape ", ShapeText{size});
  DimSet dims;
  size_t lead = from.size() - size.size();
  for (size_t d = 0; d < from.size(); ++d) {
    if (d >= lead && size[d - lead] == from[d]) continue;
    CHECK(d < lead || size[d - lead] == 1, "shape ", ShapeText{from}, " cannot be summed to ",
          ShapeText{size}, ": dim ", d, " must become 1 or stay ", from[d]);
    dims.set(d);
  }
  return dims;
}

}  // namespace

OP(sum, "(Tensor input, int[1]? dim=None, bool keepdim=False, *, dtype? dtype=None) -> Tensor", {
  .doc     = R"(The sum over dim, an int or several; over all dims when it is None or empty.

Integers and bool are added in int64, half types in float32. dtype converts the elements first.

Example:
    >>> torch.ones(2, 3).sum(0)
    tensor([2., 2., 2.]))",
  .autocast = autocast::on_cuda(autocast::single),
  .sparse  = sparse_sum,
  .batch   = by_dims,
  .forward = [](const Tensor& input, Dims dim, bool keepdim, std::optional<DType> dtype) {
    return total(Reduction::sum, input, dim, keepdim, sum_dtype(input, dtype));
  },
  .saves   = saves<"input.shape">,
  .grads   = grads(d<"input">([](const Tensor& g, const Shape& shape, const KeptDims& dim,
                                 bool keepdim, std::optional<DType>) {
                     return spread(g, shape, dim, keepdim);
                   })),
})

OP(_sum_to, "(Tensor input, int[] size) -> Tensor", {
  .home    = "private",
  .doc     = R"(The sum over the dims that broadcasting added or repeated, of shape `size`.)",
  .batch   = [](const Batch& batch, const Tensor& input, ShapeRef size) {
    Shape sizes = batch.with_samples(size);
    Shape padded = sizes;
    while (padded.size() < input.sizes().size()) padded.insert(1, 1);
    return reshape(sum_to(input, padded), sizes);
  },
  .forward = [](const Tensor& input, ShapeRef size) {
    DimSet dims = broadcast_dims(input.sizes(), size);
    if (dims.none()) return input;
    Tensor result = reduce(Reduction::sum, input, dims, true, input.dtype());
    if (result.sizes().size() == size.size()) return result;
    return alias(result, size, contiguous_strides(size), 0);
  },
  .saves   = saves<"input.shape">,
  .grads   = grads(
      d<"input">([](const Tensor& g, const Shape& shape) { return expand(g, shape); })),
})

OP(sum_to_size, "(Tensor input, int[] size) -> Tensor", {
  .doc     = R"(The sum over the dims that expanding a tensor of shape `size` to input adds.)",
  .variants = method,
  .forward = [](const Tensor& input, ShapeRef size) {
    bool fits = size.size() <= input.sizes().size();
    for (size_t d = 1; fits && d <= size.size(); ++d)
      fits = size.end()[-int64_t(d)] == 1 || size.end()[-int64_t(d)] == input.size(-int64_t(d));
    CHECK(fits, "size {", ShapeText{size}, "} is not expandable to size {", input.sizes(), "}.");
    if (same_shape(size, input.sizes()) && !size.empty()) return input;
    bool counts = is_integral(input.dtype()) || is_bool(input.dtype());
    return sum_to(counts ? to_dtype(input, DType::int64) : input, size);
  },
})

OP(nansum,
   "(Tensor input, int[1]? dim=None, bool keepdim=False, *, dtype? dtype=None) -> Tensor", {
  .doc     = R"(The sum in which NaN counts as zero.)",
  .dtypes  = real,
  .batch   = by_dims,
  .forward = [](const Tensor& input, Dims dim, bool keepdim, std::optional<DType> dtype) {
    bool has_nan = is_floating(input.dtype());
    return total(has_nan ? Reduction::nan_sum : Reduction::sum, input, dim, keepdim,
                 sum_dtype(input, dtype));
  },
  .saves   = saves<"input">,
  .grads   = grads(d<"input">([](const Tensor& g, const Tensor& input, const KeptDims& dim,
                                 bool keepdim, std::optional<DType>) {
                     Tensor along = restore_dims(g, input.sizes(), dim, keepdim);
                     return select(isnan(input), 0.0, along);
                   })),
})

OP(mean, "(Tensor input, int[1]? dim=None, bool keepdim=False, *, dtype? dtype=None) -> Tensor", {
  .doc     = R"(The mean over dim, an int or several; over all dims when it is None or empty.

It is NaN where there are no elements. Half types are added in float32. Integers need a dtype,
which converts them first.

Example:
    >>> torch.tensor([[1.0, 2.0], [3.0, 4.0]]).mean(1)
    tensor([1.5000, 3.5000]))",
  .batch   = by_dims,
  .forward = [](const Tensor& input, Dims dim, bool keepdim, std::optional<DType> dtype) {
    return total(Reduction::mean, input, dim, keepdim, mean_dtype(input, dtype));
  },
  .saves   = saves<"input.shape">,
  .grads   = grads(d<"input">([](const Tensor& g, const Shape& shape, const KeptDims& dim,
                                 bool keepdim, std::optional<DType>) {
                     return spread(g / double(count_of(shape, dim)), shape, dim, keepdim);
                   })),
})

OP(nanmean,
   "(Tensor input, int[1]? dim=None, bool keepdim=False, *, dtype? dtype=None) -> Tensor", {
  .doc     = R"(The arithmetic mean of the elements that are not NaN.)",
  .dtypes  = floating,
  .forward = [](const Tensor& input, Dims dim, bool keepdim, std::optional<DType> dtype) {
    Tensor count = sum(logical_not(isnan(input)), dim.value_or(ShapeRef()), keepdim);
    return call<"nansum", Tensor>(input, dim, keepdim, dtype) / count;
  },
})

OP(any, "(Tensor input, int[1]? dim=None, bool keepdim=False) -> Tensor", {
  .doc     = R"(Whether some element is not zero; False when there are none.

The result is bool, but uint8 for uint8. An empty dim asks each element by itself.)",
  .sparse  = [](const Tensor& input, Dims dim, bool keepdim) {
    CHECK(!dim && !keepdim, ErrorKind::kNotImplemented,
          "not implemented along dims of a sparse tensor. Use to_dense().");
    return call<"any", Tensor>(sparse_values(coalesced(input)), dim, keepdim);
  },
  .batch   = by_dims,
  .forward = [](const Tensor& input, Dims dim, bool keepdim) {
    return truth(Reduction::maximum, input, dim, keepdim);
  },
})

OP(all, "(Tensor input, int[1]? dim=None, bool keepdim=False) -> Tensor", {
  .doc     = R"(Whether no element is zero; True when there are none.

The result is bool, but uint8 for uint8. An empty dim asks each element by itself.)",
  .batch   = by_dims,
  .forward = [](const Tensor& input, Dims dim, bool keepdim) {
    return truth(Reduction::minimum, input, dim, keepdim);
  },
})

OP(count_nonzero, "(Tensor input, int[1]? dim=None) -> Tensor", {
  .doc     = R"(How many elements are not zero; int64.)",
  .batch   = by_dims,
  .forward = [](const Tensor& input, Dims dim) {
    return count_nonzero(input, reduced_dims(dim, input.dim()));
  },
})

}  // namespace rushlight
