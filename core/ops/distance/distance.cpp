// Owns distances between points: of all pairs, of rows of the same number, and what bounds a norm.
//
// Distances of all pairs come from the differences of coordinates, or for the Euclidean one from
// |x|^2 - 2 x.y + |y|^2, which is a product of matrices: faster for many points, but less exact for
// points that are near each other.
#include "core/ops/distance/distance.h"

#include "core/autograd/grad_mode.h"
#include "core/ops/joined_samples.h"
#include "core/ops/op.h"
#include "core/ops/real_number.h"
#include "core/tensor/tile_loop.h"

namespace rushlight {

namespace {

Tensor norm_along(const Tensor& input, double p, int64_t dim, bool keepdim) {
  return call<"vector_norm", Tensor>(input, Scalar(p), std::optional<ShapeRef>(ShapeRef(&dim, 1)),
                                     keepdim, std::optional<DType>());
}

// The dtype of a distance of rows: integers count as floats.
DType fractional_result(const Tensor& x1, const Tensor& x2) {
  const Tensor* both[] = {&x1, &x2};
  DType dtype = result_dtype(both);
  return is_integral(dtype) || is_bool(dtype) ? default_dtype() : dtype;
}

// The differences of all pairs, (B, P, R, M).
Tensor gaps(const Tensor& x1, const Tensor& x2) { return unsqueeze(x1, 2) - unsqueeze(x2, 1); }

bool has_kernel(const Tensor& x) { return x.device().is_cpu() && x.numel() != 0; }

Tensor pair_distances(const Tensor& x1, const Tensor& x2, double p) {
  if (x1.device().is_cpu() && x1.numel() != 0 && x2.numel() != 0)
    return distances_cpu(to_contiguous(x1), to_contiguous(x2), p);
  if (x1.size(2) == 0)
    return zeros(Shape{x1.size(0), x1.size(1), x2.size(1)}, x1.dtype(), x1.device());
  return norm_along(gaps(x1, x2), p, -1, false);
}

// The gradient of x1: the sum over x2's points of g times the slopes of the distances.
Tensor pair_distances_grad(const Tensor& g, const Tensor& x1, const Tensor& x2, double p,
                           const Tensor& distances) {
  if (g.numel() == 0) return zeros_like(x1);
  if (p == 2) {
    // Moving all points together changes no distance; near the origin fewer digits are lost.
    Tensor center = call<"detach", Tensor>(mean(x2, Shape{1}, true));
    Tensor equal = distances == 0;
    Tensor weight = select(equal, 0.0, g / select(equal, 1.0, distances));
    return sum(weight, Shape{2}, true) * (x1 - center) - matmul(weight, x2 - center);
  }
  // The kernel, unless this gradient is to have one itself.
  if (!gradients_as_ops() && has_kernel(x1) && has_kernel(x2)) {
    DType compute = dtype_of_compute(compute_of(x1.dtype()));
    auto ready = [&](const Tensor& t) { return to_contiguous(to_dtype(t, compute)); };
    Tensor points = ready(x1), others = ready(x2);
    // Which difference is the largest, a rounded distance does not tell.
    Tensor exact =
        compute == x1.dtype() ? to_contiguous(distances) : distances_cpu(points, others, p);
    return to_dtype(distances_grad_cpu(ready(g), points, others, p, exact), x1.dtype());
  }
  Tensor gap = gaps(x1, x2), along = unsqueeze(distances, -1), size = abs(gap);
  Tensor slope = sign(gap);
  if (p == 0) {
    slope = slope * 0.0;
  } else if (std::isinf(p)) {
    slope = slope * (size == along);
  } else if (p != 1) {
    // Where there is no slope the ratio is 1, so that its own gradient stays finite.
    Tensor flat = size == 0;
    Tensor ratio = select(flat, 1.0, size / select(flat, 1.0, along));
    slope = slope * pow(ratio, p - 1);
  }
  return sum(unsqueeze(g, -1) * slope, Shape{2}, false);
}

// The places of the elements right of the diagonal of a flat square matrix.
Tensor places_of_pairs(int64_t rows, Device device) {
  Tensor places = call<"triu_indices", Tensor>(rows, rows, int64_t(1), std::optional(DType::int64),
                                               std::optional(device));
  return select(places, 0, 0) * rows + select(places, 0, 1);
}

// The symmetric matrix (1, rows, rows) with these elements right of the diagonal and zeros on it.
Tensor square_of_pairs(const Tensor& pairs, int64_t rows) {
  Tensor flat = new_zeros(pairs, Shape{rows * rows});
  const Tensor places[] = {places_of_pairs(rows, pairs.device())};
  Tensor upper = reshape(index_put_(flat, places, pairs, false), Shape{1, rows, rows});
  return upper + transpose(upper, 1, 2);
}

Tensor transposed(const Tensor& t) { return transpose(t, -2, -1); }

enum class Product { where_many, always, never };

Product product_mode(std::string_view mode) {
  if (mode == "use_mm_for_euclid_dist_if_necessary") return Product::where_many;
  if (mode == "use_mm_for_euclid_dist") return Product::always;
  CHECK(mode == "donot_use_mm_for_euclid_dist", ErrorKind::kValue, mode,
        " is not a valid value for compute_mode. Use use_mm_for_euclid_dist_if_necessary, "
        "use_mm_for_euclid_dist or donot_use_mm_for_euclid_dist.");
  return Product::never;
}

void check_points(const Tensor& x, const char* name) {
  CHECK(x.dim() >= 2, "only supports at least 2D tensors, ", name, " got: ", x.dim(), "D");
}

// Points as (B, P, M), with these sizes before the last two.
Tensor as_batch(const Tensor& x, const Shape& batch) {
  Shape sizes = batch;
  sizes.push_back(x.size(-2));
  sizes.push_back(x.size(-1));
  return reshape(expand(x, sizes), Shape{checked_numel(batch), x.size(-2), x.size(-1)});
}

Tensor distances_of(const Tensor& x1, const Tensor& x2, double p, Product mode) {
  constexpr int64_t kMany = 25;  // as in PyTorch
  bool many = x1.size(1) > kMany || x2.size(1) > kMany;
  bool product = mode == Product::always || (mode == Product::where_many && many);
  if (p == 2 && product) return call<"_euclidean_dist", Tensor>(x1, x2);
  return call<"_pair_distances", Tensor>(x1, x2, p);
}

// f for all samples of x1 (n, B, P, M) and x2 (n, B, R, M), as f takes one.
template <class F>
Tensor distance_samples(const Batch& batch, const F& f) {
  Tensor x1 = batch.full("x1"), x2 = batch.full("x2");
  return parted_samples(f(joined_samples(x1), joined_samples(x2)), x1.size(0), x1.size(1));
}

}  // namespace

OP(_pair_distances, "(Tensor x1, Tensor x2, float p) -> Tensor", {
  .home    = "core",
  .doc     = R"(The distances of x1 (B, P, M) to x2 (B, R, M), from the differences.)",
  .dtypes  = floating,
  .batch   = [](const Batch& batch, const Tensor&, const Tensor&, double p) {
    return distance_samples(batch, [&](const Tensor& x1, const Tensor& x2) {
      return call<"_pair_distances", Tensor>(x1, x2, p);
    });
  },
  .forward = [](const Tensor& x1, const Tensor& x2, double p) {
    DType compute = dtype_of_compute(compute_of(x1.dtype()));
    Tensor result = pair_distances(to_dtype(x1, compute), to_dtype(x2, compute), p);
    return to_dtype(result, x1.dtype());
  },
  .saves   = saves<"x1", "x2", "result">,
  .grads   = grads(
      d<"x1">([](const Tensor& g, const Tensor& x1, const Tensor& x2, const Tensor& result,
                 double p) { return pair_distances_grad(g, x1, x2, p, result); }),
      d<"x2">([](const Tensor& g, const Tensor& x1, const Tensor& x2, const Tensor& result,
                 double p) {
        return pair_distances_grad(transposed(g), x2, x1, p, transposed(result));
      })),
})

OP(_euclidean_dist, "(Tensor x1, Tensor x2) -> Tensor", {
  .home    = "core",
  .doc     = R"(The Euclidean distances of x1 (B, P, M) to x2 (B, R, M), from their products.)",
  .dtypes  = floating,
  .batch   = [](const Batch& batch, const Tensor&, const Tensor&) {
    return distance_samples(batch, [](const Tensor& x1, const Tensor& x2) {
      return call<"_euclidean_dist", Tensor>(x1, x2);
    });
  },
  .forward = [](const Tensor& x1, const Tensor& x2) {
    Tensor square1 = sum(x1 * x1, Shape{2}, true);
    Tensor square2 = transposed(sum(x2 * x2, Shape{2}, true));
    return call<"_root_of_gap", Tensor>(matmul(x1, transposed(x2)), square1, square2);
  },
  .saves   = saves<"x1", "x2", "result">,
  .grads   = grads(
      d<"x1">([](const Tensor& g, const Tensor& x1, const Tensor& x2, const Tensor& result) {
        return pair_distances_grad(g, x1, x2, 2, result);
      }),
      d<"x2">([](const Tensor& g, const Tensor& x1, const Tensor& x2, const Tensor& result) {
        return pair_distances_grad(transposed(g), x2, x1, 2, transposed(result));
      })),
})

OP(cdist, "(Tensor x1, Tensor x2, float p=2, "
          "str compute_mode='use_mm_for_euclid_dist_if_necessary') -> Tensor", {
  .doc     = R"(The distances ||x1[i] - x2[j]||_p of all pairs of rows: shape (..., P, R).

x1 is (..., P, M) and x2 (..., R, M); the dims before broadcast. With p = 2 they come from a product
of matrices when there are more than 25 rows, or as compute_mode says:
'use_mm_for_euclid_dist', 'donot_use_mm_for_euclid_dist'.

Example:
    >>> torch.cdist(torch.tensor([[0.0, 0.0]]), torch.tensor([[3.0, 4.0], [1.0, 0.0]]))
    tensor([[5., 1.]]))",
  .dtypes  = floating,
  .autocast = autocast::single,
  .forward = [](const Tensor& x1, const Tensor& x2, double p, std::string_view compute_mode) {
    Product mode = product_mode(compute_mode);
    check_points(x1, "X1");
    check_points(x2, "X2");
    CHECK(is_floating(x2.dtype()), "only supports floating-point dtypes, X2 got: ",
          dtype_name(x2.dtype()));
    CHECK(x1.size(-1) == x2.size(-1), "X1 and X2 must have the same number of columns. X1: ",
          x1.size(-1), " X2: ", x2.size(-1));
    CHECK(p >= 0, "only supports non-negative p values, got ", p);
    DType dtype = promote(x1.dtype(), x2.dtype());
    Shape batch = broadcast_shapes(ShapeRef(x1.sizes()).first(x1.sizes().size() - 2),
                                   ShapeRef(x2.sizes()).first(x2.sizes().size() - 2));
    Tensor distances = distances_of(cast(as_batch(x1, batch), dtype),
                                    cast(as_batch(x2, batch), dtype), p, mode);
    batch.push_back(x1.size(-2));
    batch.push_back(x2.size(-2));
    return reshape(distances, batch);
  },
})

OP(pdist, "(Tensor input, float p=2) -> Tensor", {
  .home    = "torch nn.functional",
  .doc     = R"(The distances of all pairs of different rows: of row 0 to 1, 2, ..., of 1 to 2, ...

Example:
    >>> torch.pdist(torch.tensor([[0.0], [1.0], [3.0]]))
    tensor([1., 3., 2.]))",
  .dtypes  = floating,
  .variants = function,
  .autocast = autocast::on_cuda(autocast::single),
  .batch   = [](const Batch&, const Tensor& input, double p) {
    CHECK(input.dim() == 3, "only supports 2D tensors, got: ", input.dim() - 1, "D");
    Tensor all = call<"_pair_distances", Tensor>(input, input, p);
    const Tensor places[] = {Tensor(), places_of_pairs(input.size(1), input.device())};
    return index(reshape(all, Shape{input.size(0), -1}), places);
  },
  .forward = [](const Tensor& input, double p) {
    CHECK(input.dim() == 2, "only supports 2D tensors, got: ", input.dim(), "D");
    CHECK(p >= 0, "only supports non-negative p values, got ", p);
    if (has_kernel(input)) {
      DType compute = dtype_of_compute(compute_of(input.dtype()));
      Tensor points = to_contiguous(to_dtype(input, compute));
      return to_dtype(distances_of_rows_cpu(points, p), input.dtype());
    }
    Tensor points = unsqueeze(input, 0);
    Tensor all = reshape(pair_distances(points, points, p), Shape{-1});
    return call<"index_select", Tensor>(all, int64_t(0),
                                        places_of_pairs(input.size(0), input.device()));
  },
  .saves   = saves<"input", "result">,
  .grads   = grads(d<"input">([](const Tensor& g, const Tensor& input, const Tensor& result,
                                 double p) {
                     int64_t rows = input.size(0);
                     Tensor points = unsqueeze(input, 0);
                     return squeeze(pair_distances_grad(square_of_pairs(g, rows), points, points, p,
                                                        square_of_pairs(result, rows)), 0);
                   })),
})

OP(pairwise_distance,
   "(Tensor x1, Tensor x2, float p=2, float eps=1e-6, bool keepdim=False) -> Tensor", {
  .home    = "torch nn.functional",
  .doc     = R"(The norms of the differences along the last dim: ||x1 - x2 + eps||_p.

x1 and x2 broadcast; eps gives equal points a gradient.

Example:
    >>> torch.pairwise_distance(torch.tensor([[3.0, 4.0]]), torch.zeros(1, 2), eps=0.0)
    tensor([5.]))",
  .dtypes  = numeric,
  .forward = [](const Tensor& x1, const Tensor& x2, double p, double eps, bool keepdim) {
    // Integers as floats, so that unsigned ones have differences below zero.
    return norm_along(cast(x1, fractional_result(x1, x2)) - x2 + eps, p, -1, keepdim);
  },
})

OP(cosine_similarity, "(Tensor x1, Tensor x2, int dim=1, float eps=1e-8) -> Tensor", {
  .home    = "torch nn.functional",
  .doc     = R"(The cosines of the angles of vectors along dim: x1 . x2 / (||x1|| ||x2||).

x1 and x2 broadcast. Norms below eps count as eps. Integers count as floats.

Example:
    >>> torch.cosine_similarity(torch.tensor([3.0, 4.0]), torch.tensor([4.0, -3.0]), dim=0)
    tensor(0.))",
  .dtypes  = real,
  .autocast = autocast::on_cuda(autocast::single),
  .forward = [](const Tensor& x1, const Tensor& x2, int64_t dim, double eps) {
    CHECK(eps >= 0, "eps must be non-negative, got: ", eps, ".");
    DType dtype = fractional_result(x1, x2);
    Shape sizes = broadcast_shapes(x1.sizes(), x2.sizes());
    // Each is divided by its norm before the product, which could overflow in half types.
    auto unit = [&](const Tensor& x) {
      Tensor whole = expand(cast(x, dtype), sizes);
      return whole / max(norm_along(whole, 2, dim, true), eps);
    };
    return sum(unit(x1) * unit(x2), ShapeRef(&dim, 1));
  },
})

OP(dist, "(Tensor input, Tensor other, Scalar p=2) -> Tensor", {
  .doc     = R"(The p-norm of the difference of two tensors, which broadcast.)",
  .dtypes  = numeric,
  .autocast = autocast::on_cuda(autocast::single),
  .forward = [](const Tensor& input, const Tensor& other, Scalar p) {
    return call<"vector_norm", Tensor>(input - other, p, std::optional<ShapeRef>(), false,
                                       std::optional<DType>());
  },
})

OP(renorm_, "(Tensor! input, Scalar p, int dim, Scalar maxnorm) -> Tensor", {
  .doc     = R"(Scales slices along dim down so that no p-norm is above maxnorm.)",
  .dtypes  = floating_or_complex,
  .variants = method,
  .forward = [](const Tensor& input, Scalar p, int64_t dim, Scalar maxnorm) {
    // The gradient reads what is written over.
    Tensor before = is_grad_enabled() && input.requires_grad() ? clone(input) : input;
    return copy_(input, call<"renorm", Tensor>(before, p, dim, maxnorm));
  },
})

OP(renorm, "(Tensor input, Scalar p, int dim, Scalar maxnorm) -> Tensor", {
  .doc     = R"(Slices along dim scaled down so that no p-norm is above maxnorm.

Example:
    >>> torch.renorm(torch.tensor([[3.0, 4.0], [0.0, 1.0]]), 2, 0, 1).round(decimals=4)
    tensor([[0.6000, 0.8000],
            [0.0000, 1.0000]]))",
  .dtypes  = floating_or_complex,
  .variants = function | method,
  .seen    = Seen::whole_unrecorded,
  .autocast = autocast::on_cuda(autocast::single),
  .forward = [](const Tensor& input, Scalar p, int64_t dim, Scalar maxnorm) {
    double limit = real_number(maxnorm, "maxnorm");
    CHECK(real_number(p, "p") > 0, "non-positive-norm not supported: p is ", p.to<double>());
    CHECK(limit >= 0, "expected maxnorm to be >= 0 but got ", limit);
    CHECK(input.dim() > 1, "input needs at least 2 dimensions, got ", input.dim(), " dimensions");
    Shape others;
    for (int64_t d = 0; d < input.dim(); ++d)
      if (d != wrap_dim(dim, input.dim())) others.push_back(d);
    Tensor norm = call<"vector_norm", Tensor>(input, p, std::optional<ShapeRef>(others), true,
                                              std::optional<DType>());
    return input * select(norm > limit, limit / (norm + 1e-7), 1.0);
  },
})

}  // namespace rushlight
