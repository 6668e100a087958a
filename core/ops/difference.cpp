// Owns differences of neighbors along a dim and the integrals by the trapezoid rule, all made of
// other ops.
#include "core/ops/op.h"

namespace rushlight {
namespace {

Tensor first_to_last_but_one(const Tensor& t, int64_t dim) { return slice(t, dim, 0, -1, 1); }
Tensor second_to_last(const Tensor& t, int64_t dim) { return slice(t, dim, 1, INT64_MAX, 1); }

Tensor difference(const Tensor& t, int64_t dim) {
  Tensor right = second_to_last(t, dim), left = first_to_last_but_one(t, dim);
  return is_bool(t.dtype()) ? right != left : right - left;
}

// The width between two neighbors, in dims that broadcast with those of y along dim.
Tensor widths(const Tensor& y, const Tensor& x, int64_t dim) {
  CHECK(!is_bool(x.dtype()),
        "received a bool input for `x`, but bool is not supported. Convert it ", "with .float().");
  int64_t length = y.size(dim);
  if (x.dim() != 1) {
    int64_t along = x.dim() - (y.dim() - wrap_dim(dim, y.dim()));
    CHECK(along >= 0 && along < x.dim(), "`x` of shape ", x.sizes(), " has no dim for dim ", dim,
          " of `y`, which has shape ", y.sizes(), ". x needs one dim, or dims that broadcast.");
    return difference(x, along);
  }
  CHECK(x.size(0) == length, "There must be one `x` value for each sample point: `x` has ",
        x.size(0), ", `y` has ", length, " along dim ", dim);
  Shape sizes(y.sizes().size(), 1);
  sizes[size_t(wrap_dim(dim, y.dim()))] = length;
  return difference(reshape(x, sizes), dim);
}

// Twice the means of neighbors.
Tensor pair_sums(const Tensor& y, int64_t dim) {
  return second_to_last(y, dim) + first_to_last_but_one(y, dim);
}

Tensor integral(const Tensor& areas, int64_t dim) { return sum(areas, ShapeRef(&dim, 1)) / 2.0; }
Tensor running_integral(const Tensor& areas, int64_t dim) {
  return call<"cumsum", Tensor>(areas, dim, std::optional<DType>()) / 2.0;
}

// The integral over nothing is 0.
bool is_empty_along(const Tensor& y, int64_t dim) { return y.size(dim) == 0; }
Tensor zero_integral(const Tensor& y, int64_t dim) {
  return sum(is_floating(y.dtype()) || is_complex(y.dtype()) ? y : cast(y, default_dtype()),
             ShapeRef(&dim, 1));
}

}  // namespace

OP(diff, "(Tensor input, int n=1, int dim=-1, Tensor? prepend=None, Tensor? append=None) -> "
         "Tensor", {
  .doc     = R"(The n-th differences of neighbors along dim: input[i + 1] - input[i] for n = 1.

prepend and append are joined to the input first. Of bool it is whether neighbors differ.

Example:
    >>> torch.tensor([1, 3, 2]).diff()
    tensor([ 2, -1]))",
  .forward = [](const Tensor& input, int64_t n, int64_t dim, const Tensor& prepend,
                const Tensor& append) {
    CHECK(input.dim() >= 1, "expects input to be at least one-dimensional");
    CHECK(n >= 0, "order must be non-negative but got ", n);
    dim = wrap_dim(dim, input.dim());
    if (n == 0) return clone(input);
    std::vector<Tensor> parts;
    for (const Tensor& part : {prepend, input, append}) {
      if (!part.defined()) continue;
      CHECK(part.dim() == input.dim(), "expects prepend or append to be the same dimension as ",
            "input: shape ", part.sizes(), " against ", input.sizes());
      parts.push_back(part);
    }
    Tensor result = parts.size() > 1 ? cat(parts, dim) : input;
    n = std::min(n, result.size(dim));
    if (result.numel() == 0) return clone(narrow(result, dim, 0, result.size(dim) - n));
    for (int64_t i = 0; i < n; ++i) result = difference(result, dim);
    return result;
  },
})

OP(trapezoid_x, "trapezoid.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor", {
  .doc     = R"(The integral of y along dim by the trapezoid rule, at the places x.

x has one dim, or dims that broadcast with those of y.

Example:
    >>> torch.trapezoid(torch.tensor([1.0, 2.0, 3.0]), torch.tensor([0.0, 1.0, 3.0]))
    tensor(6.5000))",
  .dtypes  = numeric,
  .aliases = "trapz",
  .forward = [](const Tensor& y, const Tensor& x, int64_t dim) {
    if (is_empty_along(y, dim)) return zero_integral(y, dim);
    return integral(pair_sums(y, dim) * widths(y, x, dim), dim);
  },
})

OP(trapezoid, "(Tensor y, *, Scalar dx=1, int dim=-1) -> Tensor", {
  .doc     = R"(The integral of y along dim by the trapezoid rule, for samples dx apart.)",
  .dtypes  = numeric,
  .aliases = "trapz",
  .forward = [](const Tensor& y, Scalar dx, int64_t dim) {
    if (is_empty_along(y, dim)) return zero_integral(y, dim);
    // As sums do, lest two neighbors overflow a small type.
    Tensor samples = is_differentiable(y.dtype()) ? y : cast(y, DType::int64);
    if (y.size(dim) < 3) return integral(pair_sums(samples, dim) * dx, dim);
    // All samples but the two at the ends count twice.
    Tensor ends = select(samples, dim, 0) + select(samples, dim, -1);
    Tensor inner = sum(slice(samples, dim, 1, -1, 1), ShapeRef(&dim, 1));
    return (inner + inner + ends) * dx / 2.0;
  },
})

OP(cumulative_trapezoid_x, "cumulative_trapezoid.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor", {
  .doc     = R"(The integrals of y up to each sample but the first; see trapezoid.)",
  .dtypes  = numeric,
  .forward = [](const Tensor& y, const Tensor& x, int64_t dim) {
    return running_integral(pair_sums(y, dim) * widths(y, x, dim), dim);
  },
})

OP(cumulative_trapezoid, "(Tensor y, *, Scalar dx=1, int dim=-1) -> Tensor", {
  .doc     = R"(The integrals of y up to each sample but the first, for samples dx apart.

Example:
    >>> torch.cumulative_trapezoid(torch.tensor([1.0, 2.0, 3.0]))
    tensor([1.5000, 4.0000]))",
  .dtypes  = numeric,
  .forward = [](const Tensor& y, Scalar dx, int64_t dim) {
    return running_integral(pair_sums(y, dim) * dx, dim);
  },
})

}  // namespace rushlight
