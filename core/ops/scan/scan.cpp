// Owns running sums, products and extremes along a dim, and the recurrence that their gradients
// are made of.
//
// Note [Gradients of scans]
// ~~~~~~~~~~~~~~~~~~~~~~~~~
// The gradient of cumprod is g[i] times the product before i, plus later terms that share a factor:
//   grad[i] = left[i] * S[i],  S[i] = g[i] + x[i + 1] * S[i + 1],  left[i] = x[0] ... x[i - 1].
// So it needs no division and holds where elements are zero. That of logcumsumexp has this form
// too, with factors exp(y[i] - y[i + 1]) <= 1. S is a linear scan, whose own gradients are linear
// scans in the other direction; so gradients of any order exist.
#include "core/ops/scan/scan.h"

#include "core/ops/op.h"
#include "core/ops/reduce/reduce.h"
#include "core/tensor/tile_loop.h"

namespace rushlight {
namespace {

// Element i is t[i + 1], or t[i - 1] when `back`; `fill` stands where there is none.
Tensor shifted(const Tensor& t, int64_t dim, bool back, double fill) {
  if (t.dim() == 0 || t.size(dim) == 0) return full(t.sizes(), fill, t.dtype(), t.device());
  int64_t n = t.size(dim);
  Shape edge = t.sizes();
  edge[size_t(wrap_dim(dim, t.dim()))] = 1;
  Tensor end = full(edge, fill, t.dtype(), t.device());
  Tensor parts[] = {back ? end : narrow(t, dim, 1, n - 1), back ? narrow(t, dim, 0, n - 1) : end};
  return cat(parts, dim);
}

// ---- the choice of the device's kernels ---------------------------------------------------------

Tensor scan_along(Scan scan, const Tensor& input, int64_t dim, bool reverse, DType dtype) {
  dim = wrap_dim(dim, input.dim());
  if (input.device().is_cpu() && !input.is_contiguous()) {
    // Rows that lie in memory as such are scanned there, and only the results are moved.
    Tensor rows = transpose(input, dim, -1);
    if (rows.is_contiguous())
      return to_contiguous(transpose(scan_cpu(scan, rows, -1, reverse, dtype), dim, -1));
  }
  if (input.device().is_cpu()) return scan_cpu(scan, input, dim, reverse, dtype);
  Tensor result = empty(input.sizes(), dtype, input.device());
  if (input.device().is_cuda()) scan_cuda(scan, input, {}, dim, reverse, result, {});
  return result;
}

Tensor linear_scan_along(const Tensor& input, const Tensor& factor, int64_t dim, bool reverse) {
  dim = wrap_dim(dim, input.dim());
  if (input.device().is_cpu()) return linear_scan_cpu(input, factor, dim, reverse);
  Tensor result = empty(input.sizes(), input.dtype(), input.device());
  if (input.device().is_cuda())
    scan_cuda(Scan::linear, input, to_dtype(factor, input.dtype()), dim, reverse, result, {});
  return result;
}

std::pair<Tensor, Tensor> extreme_scan(const Tensor& input, int64_t dim, bool largest) {
  dim = wrap_dim(dim, input.dim());
  if (input.device().is_cpu()) return extreme_scan_cpu(input, dim, largest);
  Tensor values = empty(input.sizes(), input.dtype(), input.device());
  Tensor positions = empty(input.sizes(), DType::int64, input.device());
  if (input.device().is_cuda())
    scan_cuda(largest ? Scan::maximum : Scan::minimum, input, {}, dim, false, values, positions);
  return {values, positions};
}

// ---- gradients ----------------------------------------------------------------------------------

Tensor linear_scan(const Tensor& input, const Tensor& factor, int64_t dim, bool reverse) {
  return call<"_linear_scan", Tensor>(input, factor, dim, reverse);
}

// See Note [Gradients of scans].
Tensor product_grad(const Tensor& g, const Tensor& input, const Tensor& result, int64_t dim,
                    bool reverse) {
  Tensor left = shifted(result, dim, !reverse, 1), factor = shifted(input, dim, reverse, 0);
  return conj(left) * linear_scan(g, conj(factor), dim, !reverse);
}

Tensor extreme_grad(TensorList grads, const Tensor& indices, int64_t dim) {
  Tensor zero = new_zeros(grads[0], indices.sizes());
  return call<"scatter_add_", Tensor>(zero, dim, indices, grads[0]);
}

}  // namespace

Tensor products_of_others(const Tensor& input, int64_t dim) {
  Tensor before = shifted(call<"_cumprod", Tensor>(input, dim, false), dim, true, 1);
  Tensor after = shifted(call<"_cumprod", Tensor>(input, dim, true), dim, false, 1);
  return before * after;
}

OP(cumsum, "(Tensor input, int dim, *, dtype? dtype=None) -> Tensor", {
  .doc     = R"(The sums of the elements up to each one along dim.

Integers and bool are added in int64, floats in float64. dtype converts the elements first.

Example:
    >>> torch.tensor([1, 2, 3]).cumsum(0)
    tensor([1, 3, 6]))",
  .variants = function | method | inplace,
  .autocast = autocast::on_cuda(autocast::single),
  .batch   = by_dims,
  .forward = [](const Tensor& input, int64_t dim, std::optional<DType> dtype) {
    return scan_along(Scan::sum, input, dim, false, sum_dtype(input, dtype));
  },
  .grads   = grads(d<"input">([](const Tensor& g, int64_t dim, std::optional<DType>) {
                     return call<"_cumsum", Tensor>(g, dim, true);
                   })),
})

OP(_cumsum, "(Tensor input, int dim, bool reverse) -> Tensor", {
  .home    = "core",
  .doc     = R"(cumsum of floats, from the last element backwards when reverse is True.)",
  .dtypes  = floating_or_complex,
  .batch   = by_dims,
  .forward = [](const Tensor& input, int64_t dim, bool reverse) {
    return scan_along(Scan::sum, input, dim, reverse, input.dtype());
  },
  .grads   = grads(d<"input">([](const Tensor& g, int64_t dim, bool reverse) {
                     return call<"_cumsum", Tensor>(g, dim, !reverse);
                   })),
})

OP(cumprod, "(Tensor input, int dim, *, dtype? dtype=None) -> Tensor", {
  .doc     = R"(The products of the elements up to each one along dim.

Integers and bool are multiplied in int64, floats in float64. dtype converts the elements first.)",
  .variants = function | method | inplace,
  .autocast = autocast::on_cuda(autocast::single),
  .batch   = by_dims,
  .forward = [](const Tensor& input, int64_t dim, std::optional<DType> dtype) {
    return scan_along(Scan::product, input, dim, false, sum_dtype(input, dtype));
  },
  .saves   = saves<"input", "result">,
  .grads   = grads(d<"input">([](const Tensor& g, const Tensor& input, const Tensor& result,
                                 int64_t dim, std::optional<DType>) {
                     return product_grad(g, cast(input, result.dtype()), result, dim, false);
                   })),
})

OP(_cumprod, "(Tensor input, int dim, bool reverse) -> Tensor", {
  .home    = "core",
  .doc     = R"(cumprod of floats, from the last element backwards when reverse is True.)",
  .dtypes  = floating_or_complex,
  .batch   = by_dims,
  .forward = [](const Tensor& input, int64_t dim, bool reverse) {
    return scan_along(Scan::product, input, dim, reverse, input.dtype());
  },
  .saves   = saves<"input", "result">,
  .grads   = grads(d<"input">([](const Tensor& g, const Tensor& input, const Tensor& result,
                                 int64_t dim, bool reverse) {
                     return product_grad(g, input, result, dim, reverse);
                   })),
})

OP(_linear_scan, "(Tensor input, Tensor factor, int dim, bool reverse) -> Tensor", {
  .home    = "core",
  .doc     = R"(result[i] = input[i] + factor[i] * result[i - 1] along dim.

When reverse is True it runs from the last element backwards, with result[i + 1].)",
  .dtypes  = floating_or_complex,
  .batch   = by_dims,
  .forward = [](const Tensor& input, const Tensor& factor, int64_t dim, bool reverse) {
    CHECK(input.sizes() == factor.sizes(), "factor has shape ", factor.sizes(), " and input ",
          input.sizes(), "; they must be equal");
    return linear_scan_along(input, factor, dim, reverse);
  },
  .saves   = saves<"factor", "result">,
  .grads   = grads(d<"input", "factor">([](const Tensor& g, const Tensor& factor,
                                           const Tensor& result, int64_t dim, bool reverse,
                                           const GradMask<2>&) {
                     Tensor next = conj(shifted(factor, dim, reverse, 0));
                     Tensor grad = linear_scan(g, next, dim, !reverse);
                     return std::tuple(grad, grad * conj(shifted(result, dim, !reverse, 0)));
                   })),
})

OP(logcumsumexp, "(Tensor input, int dim) -> Tensor", {
  .doc     = R"(log(cumsum(exp(input))) along dim, without overflow.)",
  .dtypes  = floating_or_complex,
  .batch   = by_dims,
  .forward = [](const Tensor& input, int64_t dim) {
    return scan_along(Scan::log_sum_exp, input, dim, false, input.dtype());
  },
  .saves   = saves<"input", "result">,
  .grads   = grads(d<"input">([](const Tensor& g, const Tensor& input, const Tensor& result,
                                 int64_t dim) {
                     // See Note [Gradients of scans]. Where only -inf came yet, weights are 0, as
                     // is the factor behind the end, which no element has.
                     constexpr double inf = std::numeric_limits<double>::infinity();
                     Tensor shift = select(call<"real", Tensor>(result) == -inf, 0.0, result);
                     Tensor factor = exp(result - shifted(shift, dim, false, inf));
                     return exp(conj(input - shift)) * linear_scan(g, conj(factor), dim, true);
                   })),
})

OP(cummax, "(Tensor input, int dim) -> (Tensor values, Tensor indices)", {
  .doc     = R"(The largest elements up to each one along dim and their last positions.

NaN is the largest.)",
  .dtypes  = real,
  .batch   = by_dims,
  .forward = [](const Tensor& input, int64_t dim) -> std::tuple<Tensor, Tensor> {
    return extreme_scan(input, dim, true);
  },
  .saves   = saves<"indices">,
  .grads   = grads(d<"input">([](TensorList grads, const Tensor& indices, int64_t dim) {
                     return extreme_grad(grads, indices, dim);
                   })),
})

OP(cummin, "(Tensor input, int dim) -> (Tensor values, Tensor indices)", {
  .doc     = R"(The smallest elements up to each one along dim and their last positions.

NaN is the smallest.)",
  .dtypes  = real,
  .batch   = by_dims,
  .forward = [](const Tensor& input, int64_t dim) -> std::tuple<Tensor, Tensor> {
    return extreme_scan(input, dim, false);
  },
  .saves   = saves<"indices">,
  .grads   = grads(d<"input">([](TensorList grads, const Tensor& indices, int64_t dim) {
                     return extreme_grad(grads, indices, dim);
                   })),
})

}  // namespace rushlight
