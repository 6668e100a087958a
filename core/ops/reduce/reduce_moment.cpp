// Owns products, variances, norms and logsumexp over dims.
#include <algorithm>
#include <functional>
#include <sstream>

#include "core/ops/op.h"
#include "core/ops/real_number.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/scan/scan.h"

namespace rushlight {
namespace {

// ---- products -----------------------------------------------------------------------------------

// All elements along one dim, in the order in which they lie: a view where they are dense.
Tensor in_a_row(const Tensor& input) {
  if (input.is_contiguous()) return reshape(input, Shape{-1});
  Shape dims;
  for (int64_t d = 0; d < input.dim(); ++d) dims.push_back(d);
  std::ranges::stable_sort(dims, std::greater(), [&](int64_t d) { return input.stride(d); });
  return reshape(permute(input, dims), Shape{-1});
}

// The products of the elements along dim but one each; division serves unless some are zero, which
// only the CPU tells without waiting.
Tensor products_without_one(const Tensor& input, const Tensor& product, int64_t dim) {
  if (!input.device().is_cpu() || input.is_hollow()) return products_of_others(input, dim);
  Tensor zero = call<"any", Tensor>(input == 0, std::optional<ShapeRef>(), false);
  return item(zero).to<bool>() ? products_of_others(input, dim) : product / input;
}

// ---- variance and standard deviation ------------------------------------------------------------

using Correction = std::optional<Scalar>;

double correction_of(const Correction& correction) {
  return correction ? real_number(*correction, "correction") : 1;
}

// Warns of results that are not finite because each is of too few elements.
void warn_without_freedom(const char* op, const Tensor& input, Dims dim,
                          const Correction& correction) {
  DimSet reduced = reduced_dims(dim, input.dim());
  int64_t count = 1, results = 1;
  for (int64_t d = 0; d < input.dim(); ++d) (reduced[size_t(d)] ? count : results) *= input.size(d);
  double lost = correction_of(correction);
  if ((results > 0 && double(count) > lost) || !warn_user) [[likely]]
    return;
  std::ostringstream text;
  text << op << "(): degrees of freedom is <= 0. Each result is of " << count
       << " elements, and the correction is " << lost
       << ": it should be less than the number of elements.";
  warn_user(text.str());
}

// The variance (or deviation) and the mean. The variance of complex numbers is the sum of those of
// their parts.
std::pair<Tensor, Tensor> moments(Reduction reduction, const Tensor& input, Dims dim,
                                  const Correction& correction, bool keepdim) {
  if (is_complex(input.dtype())) {
    auto of_part = [&](const Tensor& part) {
      return moments(Reduction::variance, part, dim, correction, keepdim);
    };
    auto [real_variance, real_mean] = of_part(call<"real", Tensor>(input));
    auto [imag_variance, imag_mean] = of_part(call<"imag", Tensor>(input));
    Tensor variance = real_variance + imag_variance;
    return {reduction == Reduction::deviation ? sqrt(variance) : variance,
            call<"complex", Tensor>(real_mean, imag_mean)};
  }
  return reduce_pair(reduction, input, reduced_dims(dim, input.dim()), keepdim, input.dtype(),
                     correction_of(correction));
}

// d var / d x = 2 (x - mean) / (count - correction).
Tensor variance_grad(const Tensor& g, const Tensor& input, const KeptDims& dim,
                     const Correction& correction, bool keepdim) {
  double freedom = double(count_of(input.sizes(), dim)) - correction_of(correction);
  Tensor centered = input - mean(input, dim ? ShapeRef(*dim) : ShapeRef(), true);
  return restore_dims(g, input.sizes(), dim, keepdim) * (2 / std::max(freedom, 0.0)) * centered;
}

// Where all elements are equal the root has no slope, and the gradient is 0.
Tensor deviation_grad(const Tensor& g, const Tensor& input, const Tensor& result,
                      const KeptDims& dim, const Correction& correction, bool keepdim) {
  return variance_grad(select(result == 0, 0.0, g / (result * 2)), input, dim, correction, keepdim);
}

// Adds the gradient of a mean, if there is one.
Tensor plus_mean_grad(const Tensor& grad, const Tensor& g, const Shape& shape, const KeptDims& dim,
                      bool keepdim) {
  if (!g.defined()) return grad;
  Tensor of_mean = spread(g / double(count_of(shape, dim)), shape, dim, keepdim);
  return grad.defined() ? grad + of_mean : of_mean;
}

Correction unbiased_correction(bool unbiased) { return Scalar(unbiased ? 1 : 0); }

// ---- norms --------------------------------------------------------------------------------------

Tensor norm_of(const Tensor& input, double ord, DimSet dims, bool keepdim) {
  DType dtype = input.dtype();
  if (ord == 0) {
    Tensor nonzero = to_dtype(input, DType::bool_);
    return to_dtype(reduce(Reduction::sum, nonzero, dims, keepdim, DType::int64), dtype);
  }
  Reduction reduction = std::isinf(ord) ? (ord > 0 ? Reduction::norm_max : Reduction::norm_min)
                        : ord == 1      ? Reduction::norm_1
                        : ord == 2      ? Reduction::norm_2
                                        : Reduction::norm_p;
  return reduce(reduction, input, dims, keepdim, dtype, ord);
}

// d ||x|| / d x_i = sign(x_i) (|x_i| / ||x||)^(p - 1); at ||x|| = 0 the gradient is 0.
Tensor norm_grad(const Tensor& g, const Tensor& input, const Tensor& result, double ord,
                 const KeptDims& dim, bool keepdim) {
  if (ord == 0) return zeros_like(input);
  if (ord == 1) return restore_dims(g, input.sizes(), dim, keepdim) * sign(input);
  if (std::isinf(ord)) {
    Tensor magnitude = abs(input);
    return share_among_equal(g, magnitude, result, dim, keepdim) * sign(input);
  }
  Tensor norm = restore_dims(result, input.sizes(), dim, keepdim);
  Tensor along = restore_dims(g, input.sizes(), dim, keepdim);
  // Its own gradient must not divide by zero either.
  Tensor divisor = select(norm == 0, 1.0, norm);
  if (ord == 2) return select(norm == 0, 0.0, along / divisor) * input;
  Tensor is_flat = (norm == 0) | (input == 0);
  Tensor share = select(is_flat, 1.0, abs(input) / divisor);
  return along * select(is_flat, 0.0, sign(input) * pow(share, ord - 1));
}

// The norm of vectors in the dtype that it is computed in; complex numbers by their magnitude.
Tensor vector_norm_of(const Tensor& input, const Scalar& ord, Dims dim, bool keepdim,
                      std::optional<DType> dtype) {
  mean_dtype(input, dtype);
  Tensor x = is_complex(input.dtype()) ? abs(input) : input;
  if (dtype) x = cast(x, real_dtype(*dtype));
  return call<"vector_norm_kernel", Tensor>(x, real_number(ord, "ord"), dim, keepdim);
}

// The largest real part is taken out; the imaginary part of the result is in [-pi, pi].
Tensor complex_logsumexp(const Tensor& input, ShapeRef dim, bool keepdim) {
  if (input.numel() == 0) return log(sum(exp(input), dim, keepdim));
  Tensor largest =
      call<"amax", Tensor>(call<"real", Tensor>(input), std::optional<ShapeRef>(dim), true);
  largest = select(isfinite(largest), largest, 0.0);
  Tensor total = log(sum(exp(input - largest), dim, keepdim));
  return total + (keepdim ? largest : reshape(largest, total.sizes()));
}

}  // namespace

OP(prod, "(Tensor input, *, dtype? dtype=None) -> Tensor", {
  .doc     = R"(The product of all elements; 1 when there are none.

Integers and bool are multiplied in int64. dtype converts the elements first.)",
  .seen    = Seen::whole_unrecorded,
  .autocast = autocast::single,
  .forward = [](const Tensor& input, std::optional<DType> dtype) {
    return call<"prod_dim", Tensor>(in_a_row(input), int64_t(0), false, dtype);
  },
})

OP(prod_dim,
   "prod.int(Tensor input, int dim, bool keepdim=False, *, dtype? dtype=None) -> Tensor", {
  .doc     = R"(The product of the elements along dim.)",
  .seen    = Seen::whole_unrecorded,
  .autocast = autocast::single,
  .batch   = by_dims,
  .forward = [](const Tensor& input, int64_t dim, bool keepdim, std::optional<DType> dtype) {
    DType working = sum_dtype(input, dtype);
    const Tensor from = is_bool(working) ? to_dtype(input, working) : input;
    DimSet dims = reduced_dims(ShapeRef(&dim, 1), input.dim());
    DType accumulated = is_bool(working) ? DType::int64 : working;
    return to_dtype(reduce(Reduction::product, from, dims, keepdim, accumulated), working);
  },
  .saves   = saves<"input", "result">,
  .grads   = grads(d<"input">([](const Tensor& g, const Tensor& input, const Tensor& result,
                                 int64_t dim, bool keepdim, std::optional<DType>) {
                     KeptDims dims(Shape{dim});
                     Tensor along = restore_dims(g, input.sizes(), dims, keepdim);
                     Tensor product = restore_dims(result, input.sizes(), dims, keepdim);
                     return along * conj(products_without_one(input, product, dim));
                   })),
})

OP(var,
   "(Tensor input, int[1]? dim=None, *, Scalar? correction=1, bool keepdim=False) -> Tensor", {
  .doc     = R"(The variance over dim: sum((x - mean)^2) / max(0, count - correction).

correction=1 gives the unbiased estimate of a sample, 0 the variance of a population. For complex
numbers it is real: the square is that of the magnitude.

Example:
    >>> torch.tensor([1.0, 2.0, 3.0]).var()
    tensor(1.))",
  .dtypes  = floating_or_complex,
  .batch   = by_dims,
  .forward = [](const Tensor& input, Dims dim, Correction correction, bool keepdim) {
    warn_without_freedom("var", input, dim, correction);
    return moments(Reduction::variance, input, dim, correction, keepdim).first;
  },
  .saves   = saves<"input">,
  .grads   = grads(d<"input">([](const Tensor& g, const Tensor& input, const KeptDims& dim,
                                 const Correction& correction, bool keepdim) {
                     return variance_grad(g, input, dim, correction, keepdim);
                   })),
})

OP(var_unbiased,
   "var.unbiased(Tensor input, int[1]? dim=None, bool unbiased=True, bool keepdim=False) "
   "-> Tensor", {
  .doc     = R"(The variance over dim with correction 1, or 0 when unbiased is False.)",
  .dtypes  = floating_or_complex,
  .forward = [](const Tensor& input, Dims dim, bool unbiased, bool keepdim) {
    return call<"var", Tensor>(input, dim, unbiased_correction(unbiased), keepdim);
  },
})

OP(var_all, "var.all(Tensor input, bool unbiased) -> Tensor", {
  .doc     = R"(The variance over all dims, with correction 1 or 0.)",
  .dtypes  = floating_or_complex,
  .forward = [](const Tensor& input, bool unbiased) {
    return call<"var", Tensor>(input, Dims(), unbiased_correction(unbiased), false);
  },
})

OP(std,
   "(Tensor input, int[1]? dim=None, *, Scalar? correction=1, bool keepdim=False) -> Tensor", {
  .doc     = R"(The standard deviation over dim: the square root of var.)",
  .dtypes  = floating_or_complex,
  .batch   = by_dims,
  .forward = [](const Tensor& input, Dims dim, Correction correction, bool keepdim) {
    warn_without_freedom("std", input, dim, correction);
    return moments(Reduction::deviation, input, dim, correction, keepdim).first;
  },
  .saves   = saves<"input", "result">,
  .grads   = grads(d<"input">([](const Tensor& g, const Tensor& input, const Tensor& result,
                                 const KeptDims& dim, const Correction& correction, bool keepdim) {
                     return deviation_grad(g, input, result, dim, correction, keepdim);
                   })),
})

OP(std_unbiased,
   "std.unbiased(Tensor input, int[1]? dim=None, bool unbiased=True, bool keepdim=False) "
   "-> Tensor", {
  .doc     = R"(The standard deviation over dim with correction 1, or 0 when unbiased is False.)",
  .dtypes  = floating_or_complex,
  .forward = [](const Tensor& input, Dims dim, bool unbiased, bool keepdim) {
    return call<"std", Tensor>(input, dim, unbiased_correction(unbiased), keepdim);
  },
})

OP(std_all, "std.all(Tensor input, bool unbiased) -> Tensor", {
  .doc     = R"(The standard deviation over all dims, with correction 1 or 0.)",
  .dtypes  = floating_or_complex,
  .forward = [](const Tensor& input, bool unbiased) {
    return call<"std", Tensor>(input, Dims(), unbiased_correction(unbiased), false);
  },
})

OP(var_mean,
   "(Tensor input, int[1]? dim=None, *, Scalar? correction=1, bool keepdim=False) "
   "-> (Tensor, Tensor)", {
  .doc     = R"(The variance and the mean over dim, computed in one pass.)",
  .dtypes  = floating_or_complex,
  .variants = function,
  .batch   = by_dims,
  .forward = [](const Tensor& input, Dims dim, Correction correction,
                bool keepdim) -> std::tuple<Tensor, Tensor> {
    warn_without_freedom("var_mean", input, dim, correction);
    return moments(Reduction::variance, input, dim, correction, keepdim);
  },
  .saves   = saves<"input">,
  .grads   = grads(d<"input">([](TensorList g, const Tensor& input, const KeptDims& dim,
                                 const Correction& correction, bool keepdim) {
                     Tensor grad;
                     if (g[0].defined())
                       grad = variance_grad(g[0], input, dim, correction, keepdim);
                     return plus_mean_grad(grad, g[1], input.sizes(), dim, keepdim);
                   })),
})

OP(var_mean_unbiased,
   "var_mean.unbiased(Tensor input, int[1]? dim=None, bool unbiased=True, "
   "bool keepdim=False) -> (Tensor, Tensor)", {
  .doc     = R"(The mean and the variance with correction 1, or 0 when unbiased is False.)",
  .dtypes  = floating_or_complex,
  .variants = function,
  .forward = [](const Tensor& input, Dims dim, bool unbiased, bool keepdim) {
    return call<"var_mean", std::tuple<Tensor, Tensor>>(input, dim, unbiased_correction(unbiased),
                                                        keepdim);
  },
})

OP(var_mean_all, "var_mean.all(Tensor input, bool unbiased) -> (Tensor, Tensor)", {
  .doc     = R"(The variance and the mean over all dims, with correction 1 or 0.)",
  .dtypes  = floating_or_complex,
  .variants = function,
  .forward = [](const Tensor& input, bool unbiased) {
    Correction correction = unbiased_correction(unbiased);
    return call<"var_mean", std::tuple<Tensor, Tensor>>(input, Dims(), correction, false);
  },
})

OP(std_mean,
   "(Tensor input, int[1]? dim=None, *, Scalar? correction=1, bool keepdim=False) "
   "-> (Tensor, Tensor)", {
  .doc     = R"(The standard deviation and the mean over dim, computed in one pass.)",
  .dtypes  = floating_or_complex,
  .variants = function,
  .batch   = by_dims,
  .forward = [](const Tensor& input, Dims dim, Correction correction,
                bool keepdim) -> std::tuple<Tensor, Tensor> {
    warn_without_freedom("std_mean", input, dim, correction);
    return moments(Reduction::deviation, input, dim, correction, keepdim);
  },
  .saves   = saves<"input">,
  .grads   = grads(d<"input">([](TensorList g, const Tensor& input, const KeptDims& dim,
                                 const Correction& correction, bool keepdim) {
                     Tensor grad;
                     if (g[0].defined()) {
                       Tensor result = call<"std", Tensor>(input, as_ref(dim), correction, keepdim);
                       grad = deviation_grad(g[0], input, result, dim, correction, keepdim);
                     }
                     return plus_mean_grad(grad, g[1], input.sizes(), dim, keepdim);
                   })),
})

OP(std_mean_unbiased,
   "std_mean.unbiased(Tensor input, int[1]? dim=None, bool unbiased=True, "
   "bool keepdim=False) -> (Tensor, Tensor)", {
  .doc     = R"(The mean and the deviation with correction 1, or 0 when unbiased is False.)",
  .dtypes  = floating_or_complex,
  .variants = function,
  .forward = [](const Tensor& input, Dims dim, bool unbiased, bool keepdim) {
    return call<"std_mean", std::tuple<Tensor, Tensor>>(input, dim, unbiased_correction(unbiased),
                                                        keepdim);
  },
})

OP(std_mean_all, "std_mean.all(Tensor input, bool unbiased) -> (Tensor, Tensor)", {
  .doc     = R"(The deviation and the mean over all dims, with correction 1 or 0.)",
  .dtypes  = floating_or_complex,
  .variants = function,
  .forward = [](const Tensor& input, bool unbiased) {
    Correction correction = unbiased_correction(unbiased);
    return call<"std_mean", std::tuple<Tensor, Tensor>>(input, Dims(), correction, false);
  },
})

OP(vector_norm_kernel,
   "_vector_norm(Tensor input, float ord, int[1]? dim, bool keepdim) -> Tensor", {
  .home    = "core",
  .doc     = R"(vector_norm of real numbers in their own dtype.)",
  .dtypes  = floating,
  .node    = "linalg_vector_norm",
  .batch   = by_dims,
  .forward = [](const Tensor& input, double ord, Dims dim, bool keepdim) {
    if (std::isinf(ord) || ord < 0) check_extreme_exists(input, dim, ErrorKind::kRuntime);
    return norm_of(input, ord, reduced_dims(dim, input.dim()), keepdim);
  },
  .saves   = saves<"input", "result">,
  .grads   = grads(d<"input">([](const Tensor& g, const Tensor& input, const Tensor& result,
                                 double ord, const KeptDims& dim, bool keepdim) {
                     return norm_grad(g, input, result, ord, dim, keepdim);
                   })),
})

OP(vector_norm,
   "(Tensor x, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, dtype? dtype=None) "
   "-> Tensor", {
  .home    = "linalg",
  .doc     = R"(The norm of vectors over dim: sum(|x|^ord)^(1 / ord).

ord inf is the largest magnitude, -inf the smallest, 0 the number of elements that are not zero.)",
  .dtypes  = floating_or_complex,
  .forward = [](const Tensor& x, Scalar ord, Dims dim, bool keepdim,
                std::optional<DType> dtype) {
    return vector_norm_of(x, ord, dim, keepdim, dtype);
  },
})

OP(norm,
   "(Tensor input, Scalar? p=2, int[1]? dim=None, bool keepdim=False, dtype? dtype=None) "
   "-> Tensor", {
  .doc     = R"(The vector norm over dim, or of all elements: see linalg.vector_norm.)",
  .dtypes  = floating_or_complex,
  .autocast = autocast::on_cuda(autocast::single),
  .sparse  = sparse_norm,
  .forward = [](const Tensor& input, std::optional<Scalar> p, Dims dim, bool keepdim,
                std::optional<DType> dtype) {
    return vector_norm_of(input, p.value_or(Scalar(2)), dim, keepdim, dtype);
  },
})

OP(logsumexp, "(Tensor input, int[1] dim, bool keepdim=False) -> Tensor", {
  .home    = "torch special",
  .doc     = R"(log(sum(exp(input))) over dim, without overflow; -inf when there are no elements.)",
  .autocast = autocast::on_cuda(autocast::single),
  .batch   = by_dims,
  .forward = [](const Tensor& input, ShapeRef dim, bool keepdim) {
    if (is_complex(input.dtype())) return complex_logsumexp(input, dim, keepdim);
    DType dtype = is_floating(input.dtype()) ? input.dtype() : default_dtype();
    return reduce(Reduction::log_sum_exp, input, reduced_dims(dim, input.dim()), keepdim, dtype);
  },
  .saves   = saves<"input", "result">,
  .grads   = grads(d<"input">([](const Tensor& g, const Tensor& input, const Tensor& result,
                                 const Shape& dim, bool keepdim) {
                     constexpr double inf = std::numeric_limits<double>::infinity();
                     KeptDims dims(dim);
                     // Where all elements are -inf, weights are 0, not the exponential of a NaN.
                     Tensor shift = select(call<"real", Tensor>(result) == -inf, 0.0, result);
                     shift = restore_dims(shift, input.sizes(), dims, keepdim);
                     return restore_dims(g, input.sizes(), dims, keepdim) *
                            exp(conj(input - shift));
                   })),
})

}  // namespace rushlight
