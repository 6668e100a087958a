// Owns the ops in which an index of the result's shape picks the place along one dim, and those
// made of them.
#include "core/ops/gather_scatter.h"

#include "core/ops/op.h"
#include "core/ops/shape.h"

namespace rushlight {
namespace {

Scatter scatter_mode(const std::optional<std::string_view>& reduce) {
  CHECK(!reduce || *reduce == "add" || *reduce == "multiply",
        "reduce argument must be either add or multiply, got ", *reduce);
  return !reduce ? Scatter::write : *reduce == "add" ? Scatter::add : Scatter::multiply;
}

Tensor scatter_into(const Tensor& input, int64_t dim, const Tensor& index, const Tensor& src,
                    std::optional<std::string_view> reduce) {
  return call<"scatter_", Tensor>(input, dim, index, src, reduce);
}

// A number as the values to scatter.
Tensor repeated_value(const Tensor& input, const Tensor& index, const Scalar& value) {
  return expand(rushlight::scalar_tensor(value, input.dtype()), index.sizes());
}

// The gradient of the part of src that the index covers, zero elsewhere.
Tensor scattered_grad(const Tensor& g, int64_t dim, const Tensor& index, const Shape& src_shape) {
  Tensor taken = gather(g, dim, index);
  if (taken.sizes() == src_shape) return taken;
  return window_backward(taken, src_shape, {index.sizes(), contiguous_strides(src_shape), 0});
}

// Largest or smallest values, recorded as one op.
Tensor scatter_extreme(const Tensor& input, int64_t dim, const Tensor& index, const Tensor& src,
                       bool largest) {
  return call<"_scatter_extreme_", Tensor>(clone(input), dim, index, src, largest);
}

Tensor scatter_reduced(const Tensor& input, int64_t dim, const Tensor& index, const Tensor& src,
                       std::string_view reduce, bool include_self) {
  bool largest = reduce == "amax", sums = reduce == "sum" || reduce == "mean";
  CHECK(sums || largest || reduce == "amin" || reduce == "prod",
        "reduce argument must be either sum, prod, mean, amax or amin, got ", reduce);
  Tensor base = input, values = src;
  for (int64_t d = 0; d < std::min(src.dim(), index.dim()); ++d)
    if (src.size(d) > index.size(d)) values = narrow(values, d, 0, index.size(d));
  if (!include_self) {
    double limit = is_floating(input.dtype()) ? INFINITY : 0;
    CHECK(sums || reduce == "prod" || limit, ErrorKind::kNotImplemented,
          "include_self=False with amax or amin needs a floating-point dtype");
    double neutral = sums ? 0 : reduce == "prod" ? 1 : largest ? -limit : limit;
    base = scatter_into(clone(input), dim, index, repeated_value(input, index, neutral), {});
  }
  if (reduce == "prod") return scatter_into(clone(base), dim, index, values, "multiply");
  if (!sums) return scatter_extreme(base, dim, index, values, largest);
  Tensor sum = call<"scatter_add_", Tensor>(clone(base), dim, index, values);
  if (reduce == "sum") return sum;
  Tensor counts = full(input.sizes(), 1.0, input.dtype());
  if (!include_self) scatter_into(counts, dim, index, repeated_value(input, index, 0), {});
  call<"scatter_add_", Tensor>(counts, dim, index, Tensor(repeated_value(input, index, 1)));
  counts = maximum(counts, wrapped_number(1));
  if (is_floating(input.dtype())) return sum / counts;
  return call<"floor_divide", Tensor>(sum, counts);
}

}  // namespace

OP(gather, "(Tensor input, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor", {
  .doc     = R"(Elements of input at places along dim: out[i][j] = input[index[i][j]][j] for dim "
      "0.)",
  .forward = [](const Tensor& input, int64_t dim, const Tensor& index, bool sparse_grad) {
    CHECK(!sparse_grad, ErrorKind::kNotImplemented, "sparse gradients are not supported");
    return gather_along(input, dim, index);
  },
  .saves   = saves<"index", "input.shape">,
  .grads   = grads(d<"input">([](const Tensor& g, const Tensor& index, const Shape& shape,
                                 int64_t dim, bool) {
                     return call<"scatter_add_", Tensor>(zeros(shape, g.dtype()), dim, index, g);
                   }),
                   no_grad<"index">),
})

OP(take_along_dim, "(Tensor input, Tensor indices, int? dim=None) -> Tensor", {
  .doc     = R"(Elements of input at places along dim; without dim, of the flat input.

input and indices broadcast in the other dims.)",
  .forward = [](const Tensor& input, const Tensor& indices, std::optional<int64_t> dim) {
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
    return gather(expand(input, from), *dim, expand(indices, at));
  },
})

OP(scatter_, "(Tensor! input, int dim, Tensor index, Tensor src, *, str? reduce=None) -> Tensor", {
  .doc     = R"(Writes src at places along dim: input[index[i][j]][j] = src[i][j] for dim 0.

reduce='add' or 'multiply' combines the values with those that are there.)",
  .forward = [](const Tensor& input, int64_t dim, const Tensor& index, const Tensor& src,
                std::optional<std::string_view> reduce) {
    bool number = src.impl()->wrapped_number;
    scatter_along(input, dim, index,
                  number ? expand(to_dtype(src, input.dtype()), index.sizes()) : src,
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
                                         expand(zeros({}, g.dtype()), index.sizes()), {});
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
  .forward = [](const Tensor& input, int64_t dim, const Tensor& index, const Tensor& src,
                std::optional<std::string_view> reduce) {
    return scatter_into(clone(input), dim, index, src, reduce);
  },
})

OP(scatter_value, "scatter.value(Tensor input, int dim, Tensor index, Scalar value, *, "
                  "str? reduce=None) -> Tensor", {
  .doc     = R"(A copy of input with one value written at places along dim.)",
  .forward = [](const Tensor& input, int64_t dim, const Tensor& index, Scalar value,
                std::optional<std::string_view> reduce) {
    return scatter_into(clone(input), dim, index, repeated_value(input, index, value), reduce);
  },
})

OP(scatter_add_, "(Tensor! input, int dim, Tensor index, Tensor src) -> Tensor", {
  .doc     = R"(Adds src at places along dim: input[index[i][j]][j] += src[i][j] for dim 0.)",
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
  .forward = [](const Tensor& input, int64_t dim, const Tensor& index, const Tensor& src) {
    return call<"scatter_add_", Tensor>(clone(input), dim, index, src);
  },
})

OP(_scatter_extreme_, "(Tensor! input, int dim, Tensor index, Tensor src, bool largest) -> Tensor",
    {
  .home    = "private",
  .doc     = R"(Keeps the larger (or smaller) of input and src at places along dim.)",
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
    // All that equal the result share its gradient.
    Tensor own = cast(input == result, g.dtype()),
        theirs = cast(src == gather(result, dim, index), g.dtype());
    Tensor share = g / call<"scatter_add_", Tensor>(clone(own), dim, index, theirs);
    return std::tuple(own * share, theirs * gather(share, dim, index));
  })),
})

OP(scatter_reduce,
    "(Tensor input, int dim, Tensor index, Tensor src, str reduce, *, bool include_self=True) -> "
    "Tensor", {
  .doc     = R"(Combines src with input at places along dim: sum, prod, mean, amax or amin.

With include_self=False the values of input at these places do not count.)",
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
    return copy_(input, scatter_reduced(input, dim, index, src, reduce, include_self));
  },
})

OP(one_hot, "(Tensor tensor, int num_classes=-1) -> Tensor", {
  .home    = "nn.functional",
  .doc     = R"(Class numbers as vectors with a one in the place of the class: a new last dim.

num_classes is one more than the largest number unless given.)",
  .forward = [](const Tensor& tensor, int64_t num_classes) {
    CHECK(tensor.dtype() == DType::int64,
          "one_hot is only applicable to index tensor of type LongTensor, got ",
          dtype_name(tensor.dtype()));
    Tensor labels = to_contiguous(tensor);
    const int64_t* label = labels.data<int64_t>();
    int64_t largest = -1;
    for (int64_t i = 0; i < labels.numel(); ++i) {
      CHECK(label[i] >= 0 && label[i] < INT64_MAX,
            "Class values must be non-negative and less than 2^63 - 1, got ", label[i]);
      largest = std::max(largest, label[i]);
    }
    CHECK(labels.numel() > 0 || num_classes > 0,
          "Can not infer total number of classes from empty tensor.");
    CHECK(num_classes == -1 || num_classes >= 1, "num_classes should be positive, got ",
          num_classes);
    CHECK(num_classes == -1 || largest < num_classes,
          "Class values must be smaller than num_classes: got ",
          largest, " with num_classes ", num_classes);
    Shape sizes = tensor.sizes();
    sizes.push_back(num_classes == -1 ? largest + 1 : num_classes);
    Tensor out = zeros(sizes, DType::int64);
    int64_t* to = out.data<int64_t>();
    for (int64_t i = 0; i < labels.numel(); ++i) to[i * sizes.back() + label[i]] = 1;
    return out;
  },
})

OP(bincount, "(Tensor input, Tensor? weights=None, int minlength=0) -> Tensor", {
  .doc     = R"(How often each number occurs in a vector of non-negative integers, or the sum of "
      "its weights.)",
  .dtypes  = integral_or_bool,
  .forward = [](const Tensor& input, const Tensor& weights, int64_t minlength) {
    CHECK(input.dim() == 1 || input.numel() == 0,
          "only supports 1-d non-negative integral inputs, got shape ",
          input.sizes());
    CHECK(minlength >= 0, "minlength should be >= 0, got ", minlength);
    CHECK(!weights.defined() || weights.sizes() == input.sizes(),
          "weights should be 1-d and have the same length as "
          "input");
    Tensor numbers = to_contiguous(to_dtype(input, DType::int64));
    const int64_t* number = numbers.data<int64_t>();
    int64_t length = minlength;
    for (int64_t i = 0; i < numbers.numel(); ++i) {
      CHECK(number[i] >= 0 && number[i] < INT64_MAX,
            "only supports 1-d non-negative integral inputs, got ", number[i]);
      length = std::max(length, number[i] + 1);
    }
    if (!weights.defined()) {
      Tensor out = zeros(Shape{length}, DType::int64);
      for (int64_t i = 0; i < numbers.numel(); ++i) ++out.data<int64_t>()[number[i]];
      return out;
    }
    DType dtype = weights.dtype() == DType::float32 ? DType::float32 : DType::float64;
    Tensor out = zeros(Shape{length}, dtype);
    scatter_along(out, 0, numbers, to_dtype(weights, dtype), Scatter::add);
    return out;
  },
})

}  // namespace rushlight
