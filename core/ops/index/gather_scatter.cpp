// Owns the ops in which an index of the result's shape picks the place along one dim, and those
// made of them.
#include "core/ops/index/gather_scatter.h"

#include "core/ops/found_element.h"
#include "core/ops/index/index.h"
#include "core/ops/op.h"
#include "core/ops/same_device.h"
#include "core/ops/shape/shape.h"
#include "core/tensor/tile_loop.h"
#include "core/tensor/values.h"

namespace rushlight {
namespace {

Tensor as_vector(const Tensor& tensor) {
  return tensor.dim() ? tensor : alias(tensor, Shape{1}, Shape{1}, tensor.offset());
}

Tensor checked_index(const Tensor& input, const Tensor& index) {
  check_same_device(input, index, "index");
  CHECK(index.dtype() == DType::int64 || index.dtype() == DType::int32 || index.numel() == 0,
        "Expected dtype int32 or int64 for index, got ", dtype_name(index.dtype()));
  return to_dtype(as_vector(index), DType::int64);
}

void check_fits(const Shape& index, const Shape& other, size_t but, const char* name) {
  CHECK(index.size() == other.size(), "Index tensor must have the same number of dimensions as ",
        name, " tensor: got ", index.size(), " and ", other.size());
  for (size_t d = 0; d < index.size(); ++d)
    CHECK(d == but || index[d] <= other[d], "Size does not match at dimension ", d,
          ": expected index ", index, " to be no larger than ", name, " ", other,
          " apart from dimension ", but);
}

Scatter scatter_mode(const std::optional<std::string_view>& reduce) {
  CHECK(!reduce || *reduce == "add" || *reduce == "multiply",
        "reduce argument must be either add or multiply, got '", *reduce, "'.");
  return !reduce ? Scatter::write : *reduce == "add" ? Scatter::add : Scatter::multiply;
}

Tensor scatter_into(const Tensor& input, int64_t dim, const Tensor& index, const Tensor& src,
                    std::optional<std::string_view> reduce) {
  return call<"scatter_", Tensor>(input, dim, index, src, reduce);
}

// A number as the values to scatter.
Tensor repeated_value(const Tensor& input, const Tensor& index, const Scalar& value) {
  return expand(full({}, value, input.dtype(), input.device()), index.sizes());
}

// What loses against every value of a dtype.
Scalar neutral_extreme(DType dtype, bool largest) {
  return visit_dtype(dtype, [&]<class T>(Tag<T>) -> Scalar {
    if constexpr (std::is_same_v<T, bool>) return !largest;
    else if constexpr (std::is_same_v<T, uint64_t>) return largest ? uint64_t(0) : UINT64_MAX;
    else if constexpr (std::is_integral_v<T>)
      return int64_t(largest ? std::numeric_limits<T>::min() : std::numeric_limits<T>::max());
    else return largest ? -INFINITY : INFINITY;
  });
}

// The gradient of the part of src that the index covers, zero elsewhere.
Tensor scattered_grad(const Tensor& g, int64_t dim, const Tensor& index, const Shape& src_shape) {
  Tensor taken = gather(g, dim, index);
  if (taken.sizes() == src_shape) return taken;
  return window_backward(taken, src_shape, {index.sizes(), contiguous_strides(src_shape), 0});
}

// The gradient of what gather read, with an entry for each element that it read.
Tensor sparse_gather_grad(const Tensor& g, int64_t dim, const Tensor& index, const Shape& shape) {
  Shape flat{index.numel()};
  Tensor places = empty(Shape{int64_t(shape.size()), flat[0]}, DType::int64, index.device());
  if (!shape.empty()) {
    copy_into(places, transpose(nonzero(ones_like(as_vector(index))), 0, 1));
    copy_into(select(places, 0, wrap_dim(dim, int64_t(shape.size()))), reshape(index, flat));
  }
  return sparse_coo(places, reshape(g, flat), shape, false);
}

// Largest or smallest values, recorded as one op.
Tensor scatter_extreme(const Tensor& input, int64_t dim, const Tensor& index, const Tensor& src,
                       bool largest) {
  return call<"_scatter_extreme_", Tensor>(copy_to_write(in_row_major(input), {index, src}), dim,
                                           index, src, largest);
}

Tensor scatter_reduced(const Tensor& input, int64_t dim, const Tensor& index, const Tensor& src,
                       std::string_view reduce, bool include_self) {
  bool largest = reduce == "amax" || reduce == "max", sums = reduce == "sum" || reduce == "mean";
  CHECK(sums || largest || reduce == "amin" || reduce == "min" || reduce == "prod",
        "reduce argument must be either sum, prod, mean, amax or amin, got '", reduce, "'.");
  Tensor base = input, values = src;
  for (int64_t d = 0; d < std::min(src.dim(), index.dim()); ++d)
    if (src.size(d) > index.size(d)) values = narrow(values, d, 0, index.size(d));
  if (!include_self) {
    Scalar neutral = sums               ? Scalar(0)
                     : reduce == "prod" ? Scalar(1)
                                        : neutral_extreme(input.dtype(), largest);
    base = scatter_into(copy_to_write(in_row_major(input), {index}), dim, index,
                        repeated_value(input, index, neutral), {});
  }
  if (reduce == "prod") return call<"_scatter_product", Tensor>(base, dim, index, values);
  if (!sums) return scatter_extreme(base, dim, index, values, largest);
  Tensor sum = call<"scatter_add_", Tensor>(copy_to_write(in_row_major(base), {index, values}), dim,
                                            index, values);
  if (reduce == "sum") return sum;
  // Where the index repeats itself over all of a dim, one count does for that dim.
  Tensor places = index, counts = sum;
  for (int64_t d = 0; d < index.dim(); ++d) {
    if (d == wrap_dim(dim, index.dim()) || index.stride(d) != 0 || index.size(d) != sum.size(d))
      continue;
    places = narrow(places, d, 0, 1);
    counts = narrow(counts, d, 0, 1);
  }
  counts = cast(ones_like(counts), real_dtype(sum.dtype()));
  if (!include_self) scatter_into(counts, dim, places, repeated_value(counts, places, 0), {});
  call<"scatter_add_", Tensor>(counts, dim, places, Tensor(repeated_value(counts, places, 1)));
  counts = maximum(counts, wrapped_number(1));
  if (is_differentiable(input.dtype())) return sum / counts;
  return call<"floor_divide", Tensor>(sum, counts);
}

// The input of a reduction in place. The gradient of a product reads what will be written over.
Tensor kept(const Tensor& input, std::string_view reduce) {
  return reduce == "prod" ? clone(input) : input;
}

// scatter_reduced by whole slices: index is a vector.
Tensor index_reduced(const Tensor& input, int64_t dim, const Tensor& index, const Tensor& source,
                     std::string_view reduce, bool include_self) {
  CHECK(reduce == "prod" || reduce == "mean" || reduce == "amax" || reduce == "amin",
        "reduce argument must be either prod, mean, amax or amin, got '", reduce, "'.");
  check_index_vector(index);
  Tensor target = input.dim() ? input : view(input, Shape{1});
  Tensor slices = source.dim() ? source : view(source, Shape{1});
  int64_t d = wrap_dim(dim, target.dim());
  Shape wanted = target.sizes(), along(target.sizes().size(), 1);
  wanted[size_t(d)] = along[size_t(d)] = index.numel();
  CHECK(slices.sizes() == wanted, "source has shape ", source.sizes(), ", but an index of ",
        index.numel(), " in dim ", d, " of shape ", input.sizes(), " needs ", wanted);
  if (has_values(index) && index.numel() > 0)
    check_bounds(contiguous(cast(bottom(index), DType::int64)), 0, target.size(d), size_t(d),
                 target.size(d));
  Tensor places = expand(reshape(cast(index, DType::int64), along), wanted);
  Tensor out = scatter_reduced(target, d, places, slices, reduce, include_self);
  return input.dim() ? out : view(out, Shape{});
}

Tensor gather_along(const Tensor& input, int64_t dim, const Tensor& index) {
  Tensor self = as_vector(input), places = checked_index(input, index);
  size_t d = size_t(wrap_dim(dim, self.dim()));
  Tensor out = empty(index.sizes(), input.dtype(), input.device());
  if (out.numel() == 0) return out;
  check_fits(places.sizes(), self.sizes(), d, "input");
  if (out.device().is_meta()) return out;
  (out.device().is_cuda() ? gather_cuda : gather_cpu)(self, d, places, as_vector(out));
  return out;
}

}  // namespace

void scatter_along(const Tensor& input, int64_t dim, const Tensor& index, const Tensor& src,
                   Scatter how) {
  Tensor self = as_vector(input), places = checked_index(input, index);
  size_t d = size_t(wrap_dim(dim, self.dim()));
  CHECK(src.dtype() == input.dtype(), "Expected self.dtype to be equal to src.dtype, got ",
        dtype_name(input.dtype()), " and ", dtype_name(src.dtype()));
  check_same_device(input, src, "src");
  if (index.numel() == 0) return;
  Tensor values = as_vector(may_overlap(input, src) ? clone_dense(src) : src);
  check_fits(places.sizes(), self.sizes(), d, "self");
  check_fits(places.sizes(), values.sizes(), places.sizes().size(), "src");
  if (input.device().is_meta()) return;
  (input.device().is_cuda() ? scatter_cuda : scatter_cpu)(self, d, places, values, how);
}

OP(gather, "(Tensor input, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor", {
  .doc     = R"(Elements of input at places along dim.

For dim 0 of a matrix, out[i][j] = input[index[i][j]][j]. sparse_grad makes the gradient of
input a sparse tensor of the places that were read.)",
  .batch   = [](const Batch& batch, const Tensor&, int64_t dim, const Tensor&, bool sparse_grad) {
    // A number counts as a vector of one element.
    auto samples = [&](std::string_view name) {
      return batch.rank(name) == 0 ? unsqueeze(batch.full(name), 1) : batch.full(name);
    };
    Tensor input = samples("input"), index = samples("index");
    Tensor picked = call<"gather", Tensor>(input, wrap_dim(dim, input.dim() - 1) + 1, index,
                                           sparse_grad);
    return batch.rank("index") == 0 ? squeeze(picked, 1) : picked;
  },
  .forward = [](const Tensor& input, int64_t dim, const Tensor& index, bool) {
    return gather_along(input, dim, index);
  },
  .saves   = saves<"index", "input.shape">,
  .grads   = grads(d<"input">([](const Tensor& g, const Tensor& index, const Shape& shape,
                                 int64_t dim, bool sparse_grad) {
                     if (sparse_grad) return sparse_gather_grad(g, dim, index, shape);
                     Tensor sums = new_zeros(g, shape);
                     return call<"scatter_add_", Tensor>(sums, dim, index, g);
                   }),
                   no_grad<"index">),
})

OP(take_along_dim, "(Tensor input, Tensor indices, int? dim=None) -> Tensor", {
  .doc     = R"(Elements of input at places along dim; without dim, of the flat input.

input and indices broadcast in the other dims.)",
  .forward = [](const Tensor& input, const Tensor& indices, std::optional<int64_t> dim) {
    CHECK(indices.dtype() == DType::int64, "dtype of indices should be int64, but got ",
          dtype_name(indices.dtype()), ". Use indices.long().");
    if (!dim) return gather(reshape(input, Shape{-1}), 0, reshape(indices, Shape{-1}));
    CHECK(input.dim() == indices.dim(),
          "input and indices should have the same number of dimensions, but got ",
          input.dim(), " dimensions for input, and ", indices.dim(), " dimensions for indices");
    size_t d = size_t(wrap_dim(*dim, input.dim()));
    Shape own = input.sizes(), wanted = indices.sizes();
    if (!own.empty()) own[d] = wanted[d] = 1;
    Shape common = broadcast_shapes(own, wanted), from = common, at = common;
    if (!own.empty()) {
      from[d] = input.sizes()[d];
      at[d] = indices.sizes()[d];
    }
    // Negative places count from the end.
    Tensor places = select(indices < 0, indices + int64_t(from.empty() ? 1 : from[d]), indices);
    return gather(expand(input, from), *dim, expand(places, at));
  },
})

OP(scatter_, "(Tensor! input, int dim, Tensor index, Tensor src, *, str? reduce=None) -> Tensor", {
  .doc     = R"(Writes src at places along dim: input[index[i][j]][j] = src[i][j] for dim 0.

reduce='add' or 'multiply' combines the values with those that are there.)",
  .batch   = by_dims,
  .forward = [](const Tensor& input, int64_t dim, const Tensor& index, const Tensor& src,
                std::optional<std::string_view> reduce) {
    bool number = src.impl()->wrapped_number;
    scatter_along(input, dim, index,
                  number ? repeated_value(input, index, item(src)) : src,
                  scatter_mode(reduce));
    return input;
  },
  .saves   = saves<"index", "src.shape">,
  .grads   = grads(d<"input">([](const Tensor& g, const Tensor& index, const Shape&, int64_t dim,
                                 const std::optional<std::string>& reduce) {
                     CHECK(reduce != "multiply", ErrorKind::kNotImplemented,
                           "reduce='multiply' has no gradient");
                     if (reduce) return g;
                     return scatter_into(clone(g), dim, index,
                                         repeated_value(g, index, 0), {});
                   }),
                   no_grad<"index">,
                   d<"src">([](const Tensor& g, const Tensor& index, const Shape& shape,
                               int64_t dim,
                               const std::optional<std::string>& reduce) {
                     CHECK(reduce != "multiply", ErrorKind::kNotImplemented,
                           "reduce='multiply' has no gradient");
                     return scattered_grad(g, dim, index, shape);
                   })),
})

OP(scatter_value_, "scatter_.value(Tensor! input, int dim, Tensor index, Scalar value, *, "
                   "str? reduce=None) -> Tensor", {
  .doc     = R"(Writes one value at places along dim.)",
  .forward = [](const Tensor& input, int64_t dim, const Tensor& index, Scalar value,
                std::optional<std::string_view> reduce) {
    return scatter_into(input, dim, index, repeated_value(input, index, value), reduce);
  },
})

OP(scatter, "(Tensor input, int dim, Tensor index, Tensor src, *, str? reduce=None) -> Tensor", {
  .doc     = R"(A copy of input with src written at places along dim, as scatter_ does.)",
  .seen    = Seen::whole_unrecorded,
  .forward = [](const Tensor& input, int64_t dim, const Tensor& index, const Tensor& src,
                std::optional<std::string_view> reduce) {
    return scatter_into(copy_to_write(in_row_major(input), {index, src}), dim, index, src, reduce);
  },
})

OP(scatter_value, "scatter.value(Tensor input, int dim, Tensor index, Scalar value, *, "
                  "str? reduce=None) -> Tensor", {
  .doc     = R"(A copy of input with one value written at places along dim.)",
  .seen    = Seen::whole_unrecorded,
  .forward = [](const Tensor& input, int64_t dim, const Tensor& index, Scalar value,
                std::optional<std::string_view> reduce) {
    return scatter_into(copy_to_write(in_row_major(input), {index}), dim, index,
                        repeated_value(input, index, value), reduce);
  },
})

OP(scatter_add_, "(Tensor! input, int dim, Tensor index, Tensor src) -> Tensor", {
  .doc     = R"(Adds src at places along dim: input[index[i][j]][j] += src[i][j] for dim 0.)",
  .batch   = by_dims,
  .forward = [](const Tensor& input, int64_t dim, const Tensor& index, const Tensor& src) {
    scatter_along(input, dim, index, src, Scatter::add);
    return input;
  },
  .saves   = saves<"index", "src.shape">,
  .grads   = grads(d<"input">([](const Tensor& g, const Tensor&, const Shape&) { return g; }),
                   no_grad<"index">,
                   d<"src">([](const Tensor& g, const Tensor& index, const Shape& shape,
                               int64_t dim) {
                     return scattered_grad(g, dim, index, shape);
                   })),
})

OP(scatter_add, "(Tensor input, int dim, Tensor index, Tensor src) -> Tensor", {
  .doc     = R"(input with src added at places along dim, as scatter_add_ does.)",
  .seen    = Seen::whole_unrecorded,
  .autocast = autocast::on_cuda(autocast::widest),
  .forward = [](const Tensor& input, int64_t dim, const Tensor& index, const Tensor& src) {
    Tensor out = copy_to_write(in_row_major(input), {index, src});
    return call<"scatter_add_", Tensor>(out, dim, index, src);
  },
})

OP(_scatter_extreme_, "(Tensor! input, int dim, Tensor index, Tensor src, bool largest) -> Tensor",
    {
  .home    = "core",
  .doc     = R"(Keeps the larger (or smaller) of input and src at places along dim.)",
  .batch   = by_dims,
  .forward = [](const Tensor& input, int64_t dim, const Tensor& index, const Tensor& src,
                bool largest) {
    scatter_along(input, dim, index, src, largest ? Scatter::maximum : Scatter::minimum);
    return input;
  },
  .saves   = saves<"input", "index", "src", "result">,
  .grads   = grads(no_grad<"index">,
                   d<"input", "src">([](const Tensor& g, const Tensor& input, const Tensor& index,
                                        const Tensor& src, const Tensor& result, int64_t dim, bool,
                                        GradMask<2>) {
    Tensor own = cast(equals_found(input, result), g.dtype()),
        theirs = cast(equals_found(src, gather(result, dim, index)), g.dtype());
    Tensor share =
        g / call<"scatter_add_", Tensor>(copy_to_write(own, {index, theirs}), dim, index, theirs);
    return std::tuple(own * share, theirs * gather(share, dim, index));
  })),
})

OP(scatter_reduce,
    "(Tensor input, int dim, Tensor index, Tensor src, str reduce, *, bool include_self=True) -> "
    "Tensor", {
  .doc     = R"(Combines src with input at places along dim: sum, prod, mean, amax or amin.

With include_self=False the values of input at these places do not count.)",
  .seen    = Seen::whole_unrecorded,
  .forward = [](const Tensor& input, int64_t dim, const Tensor& index, const Tensor& src,
                std::string_view reduce, bool include_self) {
    return scatter_reduced(input, dim, index, src, reduce, include_self);
  },
})

OP(scatter_reduce_,
    "(Tensor! input, int dim, Tensor index, Tensor src, str reduce, *, bool include_self=True) -> "
    "Tensor", {
  .doc     = R"(Combines src with the tensor itself at places along dim, as scatter_reduce does.)",
  .variants = method,
  .forward = [](const Tensor& input, int64_t dim, const Tensor& index, const Tensor& src,
                std::string_view reduce, bool include_self) {
    Tensor before = kept(input, reduce);
    return copy_(input, scatter_reduced(before, dim, index, src, reduce, include_self));
  },
})

OP(index_reduce, "(Tensor input, int dim, Tensor index, Tensor source, str reduce, *, "
                 "bool include_self=True) -> Tensor", {
  .doc     = R"(Combines slice i of source with slice index[i] of input: prod, mean, amax or amin.

With include_self=False the values of input at these places do not count.)",
  .dtypes  = numeric,
  .forward = [](const Tensor& input, int64_t dim, const Tensor& index, const Tensor& source,
                std::string_view reduce, bool include_self) {
    return index_reduced(input, dim, index, source, reduce, include_self);
  },
})

OP(index_reduce_, "(Tensor! input, int dim, Tensor index, Tensor source, str reduce, *, "
                  "bool include_self=True) -> Tensor", {
  .doc     = R"(Combines slices of source with those of the tensor itself, as index_reduce does.)",
  .dtypes  = numeric,
  .variants = method,
  .forward = [](const Tensor& input, int64_t dim, const Tensor& index, const Tensor& source,
                std::string_view reduce, bool include_self) {
    Tensor before = kept(input, reduce);
    return copy_(input, index_reduced(before, dim, index, source, reduce, include_self));
  },
})

OP(one_hot, "(Tensor tensor, int num_classes=-1) -> Tensor", {
  .home    = "nn.functional",
  .doc     = R"(Class numbers as vectors with a one in the place of the class: a new last dim.

num_classes is one more than the largest number unless given, inside vmap that of all samples.)",
  .batch   = [](const Batch&, const Tensor& tensor, int64_t num_classes) {
    return call<"one_hot", Tensor>(tensor, num_classes);
  },
  .forward = [](const Tensor& tensor, int64_t num_classes) {
    CHECK(tensor.dtype() == DType::int64,
          "is only applicable to index tensor of type LongTensor, got ",
          dtype_name(tensor.dtype()));
    CHECK(tensor.numel() > 0 || num_classes > 0,
          "Can not infer total number of classes from empty tensor.");
    CHECK(num_classes == -1 || num_classes >= 1, "num_classes should be positive, got ",
          num_classes);
    if (num_classes == -1) check_has_values(tensor);
    int64_t largest = -1;
    Tensor numbers = to_contiguous(tensor);
    bool is_left = num_classes > 0 && tensor.numel() > 0 &&
                   leaves_check_to_device(numbers, 0, num_classes);
    if (tensor.numel() > 0 && !is_left && has_values(tensor)) {
      Bounds bounds = bounds_of(numbers);
      largest = bounds.greatest;
      CHECK(bounds.least >= 0 && bounds.greatest < INT64_MAX,
            "Class values must be non-negative and less than 2^63 - 1, got ",
            bounds.least < 0 ? bounds.least : bounds.greatest);
    }
    CHECK(num_classes == -1 || largest < num_classes,
          "Class values must be smaller than num_classes: got ",
          largest, " with num_classes ", num_classes);
    Shape sizes = tensor.sizes();
    sizes.push_back(num_classes == -1 ? largest + 1 : num_classes);
    Tensor out = zeros(sizes, DType::int64, tensor.device());
    Tensor places = unsqueeze(tensor, -1);
    scatter_along(out, -1, places, repeated_value(out, places, 1), Scatter::write);
    return out;
  },
})

OP(bincount, "(Tensor input, Tensor? weights=None, int minlength=0) -> Tensor", {
  .doc     = R"(How often each number occurs in a vector of non-negative integers, or the sum of
its weights.)",
  .dtypes  = integral_or_bool,
  .batch   = [](const Batch& batch, const Tensor&, const Tensor&, int64_t minlength) {
    // The numbers of sample n are counted from n * length on.
    Tensor input = batch.full("input"), weights = batch.full("weights");
    CHECK(input.dim() == 2, "only supports 1-d non-negative integral inputs");
    int64_t length = minlength;
    if (input.numel() > 0)
      length = std::max(length, item(call<"max", Tensor>(input)).to<int64_t>() + 1);
    Tensor numbers = cast(input, DType::int64) + batch.numbers(input) * Scalar(length);
    if (weights.defined()) weights = reshape(weights, Shape{-1});
    Tensor counts = call<"bincount", Tensor>(reshape(numbers, Shape{-1}), weights,
                                             batch.size() * length);
    return reshape(counts, Shape{batch.size(), length});
  },
  .forward = [](const Tensor& input, const Tensor& weights, int64_t minlength) {
    CHECK(input.dim() == 1 || input.numel() == 0,
          "only supports 1-d non-negative integral inputs, got shape ",
          input.sizes());
    CHECK(minlength >= 0, "minlength should be >= 0, got ", minlength);
    CHECK(!weights.defined() || weights.sizes() == input.sizes(),
          "weights should be 1-d and have the same length as "
          "input");
    Tensor numbers = to_contiguous(to_dtype(input, DType::int64));
    int64_t length = minlength;
    check_has_values(input);
    if (numbers.numel() > 0) {
      Bounds bounds = bounds_of(numbers);
      CHECK(bounds.least >= 0, "only supports 1-d non-negative integral inputs, got ",
            bounds.least);
      CHECK(bounds.greatest < INT64_MAX, "only supports 1-d non-negative integral inputs, got ",
            bounds.greatest);
      length = std::max(length, bounds.greatest + 1);
    }
    if (!weights.defined()) {
      if (input.device().is_cpu()) return occurrences_cpu(numbers, length);
      Tensor out = zeros(Shape{length}, DType::int64, input.device());
      scatter_along(out, 0, numbers, repeated_value(out, numbers, 1), Scatter::add);
      return out;
    }
    DType dtype = weights.dtype() == DType::float32 ? DType::float32 : DType::float64;
    Tensor out = zeros(Shape{length}, dtype, input.device());
    scatter_along(out, 0, numbers, to_dtype(weights, dtype), Scatter::add);
    return out;
  },
  .saves   = saves<"input">,
  .grads   = grads(no_grad<"input">, d<"weights">([](const Tensor& g, const Tensor& input) {
                     return gather(g, 0, to_dtype(input, DType::int64));
                   })),
})

}  // namespace rushlight
