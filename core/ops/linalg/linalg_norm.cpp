// Owns the norms of matrices and what is made of them; those of vectors are in reduce_moment.cpp.
#include <cmath>

#include "core/ops/linalg/linalg.h"
#include "core/ops/real_number.h"

namespace rushlight {
namespace {

using Pair = std::tuple<Tensor, Tensor>;
using Dims = std::optional<ShapeRef>;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

Tensor vector_norm(const Tensor& A, double ord, Dims dim, bool keepdim,
                   std::optional<DType> dtype = {}) {
  return call<"vector_norm", Tensor>(A, Scalar(ord), dim, keepdim, dtype);
}
Tensor extreme(const Tensor& t, int64_t dim, bool largest) {
  std::optional<ShapeRef> dims(ShapeRef(&dim, 1));
  return largest ? call<"amax", Tensor>(t, dims, true) : call<"amin", Tensor>(t, dims, true);
}

// Two different dims, counted from the front.
std::pair<int64_t, int64_t> matrix_dims(const Tensor& A, ShapeRef dim) {
  CHECK(dim.size() == 2, "dim must be a 2-tuple. Got ", ShapeText{dim});
  int64_t rows = wrap_dim(dim[0], A.dim()), columns = wrap_dim(dim[1], A.dim());
  CHECK(rows != columns, "dims must be different. Got ", ShapeText{dim});
  return {rows, columns};
}

// The singular values of the matrices in two dims, which go to the last one.
Tensor singular_values(const Tensor& A, int64_t rows, int64_t columns) {
  const int64_t from[] = {rows, columns}, to[] = {-2, -1};
  Tensor moved = call<"movedim", Tensor>(A, ShapeRef(from), ShapeRef(to));
  return call<"linalg_svdvals", Tensor>(moved, std::optional<std::string_view>());
}

// Takes dims of size 1 away, or puts the last one back as both.
Tensor finish_reduced(const Tensor& t, int64_t rows, int64_t columns, bool keepdim) {
  if (keepdim) return t;
  return squeeze(squeeze(t, std::max(rows, columns)), std::min(rows, columns));
}
Tensor finish_spectral(const Tensor& t, int64_t rows, int64_t columns, bool keepdim) {
  if (!keepdim) return squeeze(t, -1);
  return unsqueeze(unsqueeze(squeeze(t, -1), std::min(rows, columns)), std::max(rows, columns));
}

// For complex matrices dtype may also be that of the norm, which is real, as an out= is.
Tensor as_dtype(const Tensor& A, std::optional<DType> dtype) {
  if (!dtype) return A;
  CHECK(is_differentiable(*dtype), "dtype should be floating point or complex. Got ",
        dtype_name(*dtype));
  CHECK(is_complex(A.dtype()) || !is_complex(*dtype),
        "dtype should be real for real inputs, but got ", dtype_name(*dtype));
  DType wide = is_complex(A.dtype()) ? complex_dtype(*dtype) : *dtype;
  CHECK(promote(A.dtype(), wide) == wide, "the dtype of the input ", dtype_name(A.dtype()),
        " should be convertible without narrowing to the specified dtype ", dtype_name(*dtype));
  return cast(A, wide);
}

// ord 1 is the largest sum of a column, inf that of a row, 2 the largest singular value; negative
// ones are the smallest.
Tensor matrix_norm(const Tensor& input, double ord, ShapeRef dim, bool keepdim,
                   std::optional<DType> dtype) {
  double size = std::abs(ord);
  CHECK(size == 1 || size == 2 || std::isinf(size), "Order ", ord,
        " not supported. It is 1, -1, 2, -2, inf, -inf, 'fro' or 'nuc'.");
  check_matrices(input, "A");
  auto [rows, columns] = matrix_dims(input, dim);
  Tensor A = as_dtype(input, dtype);
  if (A.numel() == 0) {
    int64_t compared = size == 1 ? A.size(columns) : A.size(rows);
    if (size == 2) compared = std::min(A.size(rows), A.size(columns));
    CHECK(ord > 0 || compared > 0, ErrorKind::kIndex, "ord ", ord,
          " is the smallest of no sums in input of shape ", input.sizes(),
          ". Pass matrices with elements, or a positive ord.");
    return vector_norm(A, 2, dim, keepdim);
  }
  if (size == 2) {
    Tensor S = singular_values(A, rows, columns);
    return finish_spectral(extreme(S, -1, ord > 0), rows, columns, keepdim);
  }
  auto [summed, compared] = size == 1 ? std::pair(rows, columns) : std::pair(columns, rows);
  Tensor sums = vector_norm(A, 1, ShapeRef(&summed, 1), true);
  return finish_reduced(extreme(sums, compared, ord > 0), rows, columns, keepdim);
}

Tensor matrix_norm(const Tensor& input, std::string_view ord, ShapeRef dim, bool keepdim,
                   std::optional<DType> dtype) {
  CHECK(ord == "fro" || ord == "nuc", "Order ", ord,
        " not supported. It is 1, -1, 2, -2, inf, -inf, 'fro' or 'nuc'.");
  check_matrices(input, "A");
  auto [rows, columns] = matrix_dims(input, dim);
  if (ord == "fro") return vector_norm(input, 2, dim, keepdim, dtype);
  Tensor S = singular_values(as_dtype(input, dtype), rows, columns);
  return finish_spectral(sum(S, Shape{-1}, true), rows, columns, keepdim);
}

Shape all_dims(const Tensor& t) {
  Shape dims;
  for (int64_t d = 0; d < t.dim(); ++d) dims.push_back(d);
  return dims;
}

// norm(A) * norm(A^-1), infinity for singular matrices.
template <class Ord>
Tensor condition(const Tensor& A, Ord ord) {
  check_square(A, "A");
  constexpr int64_t kLastTwo[] = {-2, -1};
  if (A.numel() == 0) return zeros(batch_sizes(A), real_dtype(A.dtype()), A.device());
  auto [inverse, info] = call<"linalg_inv_ex", Pair>(A, false);
  Tensor product =
      matrix_norm(A, ord, kLastTwo, false, {}) *
      matrix_norm(select(unsqueeze(unsqueeze(info, -1), -1) == 0, inverse, zeros_like(inverse)),
                  ord, kLastTwo, false, {});
  return select(info == 0, product, full({}, kInfinity, product.dtype(), product.device()));
}

Tensor spectral_condition(const Tensor& A, bool largest_first) {
  check_matrices(A, "A");
  Tensor S = call<"linalg_svdvals", Tensor>(A, std::optional<std::string_view>());
  if (S.size(-1) == 0) return zeros(batch_sizes(A), S.dtype(), S.device());
  Tensor first = select(S, -1, 0), last = select(S, -1, -1);
  return largest_first ? first / last : last / first;
}

}  // namespace

OP(linalg_matrix_norm,
   "matrix_norm(Tensor A, Scalar ord, int[] dim=(-2, -1), bool keepdim=False, *, "
   "dtype? dtype=None) -> Tensor", {
  .home    = "linalg",
  .doc     = R"(The norm of the matrices in two dims.

ord 1 is the largest sum of magnitudes of a column, inf that of a row, 2 the largest singular value;
-1, -inf and -2 are the smallest.

Example:
    >>> torch.linalg.matrix_norm(torch.tensor([[1.0, -2.0], [3.0, 4.0]]), 1)
    tensor(6.))",
  .dtypes  = floating_or_complex,
  .forward = [](const Tensor& A, Scalar ord, ShapeRef dim, bool keepdim,
                std::optional<DType> dtype) {
    return matrix_norm(A, real_number(ord, "ord"), dim, keepdim, dtype);
  },
})

OP(linalg_matrix_norm_str,
   "matrix_norm.str_ord(Tensor A, str ord='fro', int[] dim=(-2, -1), bool keepdim=False, *, "
   "dtype? dtype=None) -> Tensor", {
  .home    = "linalg",
  .doc     = R"('fro' is the root of the sum of squares, 'nuc' the sum of singular values.)",
  .dtypes  = floating_or_complex,
  .forward = [](const Tensor& A, std::string_view ord, ShapeRef dim, bool keepdim,
                std::optional<DType> dtype) {
    return matrix_norm(A, ord, dim, keepdim, dtype);
  },
})

OP(linalg_norm,
   "norm(Tensor input, Scalar? ord=None, int[1]? dim=None, bool keepdim=False, *, "
   "dtype? dtype=None) -> Tensor", {
  .home    = "linalg",
  .doc     = R"(The norm of vectors or matrices.

With ord and two dims (or a matrix and no dim) it is linalg.matrix_norm, with one dim or without ord
linalg.vector_norm, of all elements when there is no dim either.

Example:
    >>> torch.linalg.norm(torch.tensor([3.0, 4.0]))
    tensor(5.))",
  .dtypes  = floating_or_complex,
  .forward = [](const Tensor& input, std::optional<Scalar> ord, Dims dim, bool keepdim,
                std::optional<DType> dtype) {
    CHECK(!dim || dim->size() == 1 || dim->size() == 2,
          "If dim is specified, it must be of length 1 or 2. Got ", ShapeText{*dim});
    CHECK(dim || !ord || input.dim() == 1 || input.dim() == 2,
          "If dim is not specified but ord is, the input must be 1D or 2D. Got ", input.dim(),
          "D.");
    if (ord && (dim ? dim->size() == 2 : input.dim() == 2)) {
      constexpr int64_t kBoth[] = {0, 1};
      return matrix_norm(input, real_number(*ord, "ord"), dim.value_or(ShapeRef(kBoth)), keepdim,
                         dtype);
    }
    return vector_norm(input, ord ? real_number(*ord, "ord") : 2, dim, keepdim, dtype);
  },
})

OP(linalg_norm_str,
   "norm.ord_str(Tensor input, str ord, int[1]? dim=None, bool keepdim=False, *, "
   "dtype? dtype=None) -> Tensor", {
  .home    = "linalg",
  .doc     = R"(The norm of matrices with ord 'fro' or 'nuc': see linalg.matrix_norm.)",
  .dtypes  = floating_or_complex,
  .forward = [](const Tensor& input, std::string_view ord, Dims dim, bool keepdim,
                std::optional<DType> dtype) {
    CHECK(dim || input.dim() == 2, "If dim is not specified but ord is '", ord,
          "', the input must be 2D. Got ", input.dim(), "D.");
    constexpr int64_t kBoth[] = {0, 1};
    return matrix_norm(input, ord, dim.value_or(ShapeRef(kBoth)), keepdim, dtype);
  },
})

OP(norm_named,
   "norm.named(Tensor input, str p, int[1]? dim=None, bool keepdim=False, dtype? dtype=None) "
   "-> Tensor", {
  .doc     = R"(The Frobenius norm, p='fro': the root of the sum of squares over dim.

p='nuc' is the sum of singular values of the matrices in two dims.)",
  .dtypes  = floating_or_complex,
  .autocast = autocast::on_cuda(autocast::single),
  .sparse  = [](const Tensor& input, std::string_view p, Dims dim, bool keepdim,
                std::optional<DType> dtype) {
    CHECK(p == "fro", ErrorKind::kNotImplemented, "the norm '", p,
          "' of a sparse tensor is not implemented. Use to_dense().");
    return sparse_norm(input, Scalar(2), dim, keepdim, dtype);
  },
  .forward = [](const Tensor& input, std::string_view p, Dims dim, bool keepdim,
                std::optional<DType> dtype) {
    if (p == "fro") return vector_norm(input, 2, dim, keepdim, dtype);
    CHECK(p == "nuc", "order '", p, "' is not supported. p is a number, 'fro' or 'nuc'.");
    Shape every = all_dims(input);
    return matrix_norm(input, p, dim.value_or(ShapeRef(every)), keepdim, dtype);
  },
})

OP(nuclear_norm, "(Tensor input, bool keepdim=False) -> Tensor", {
  .doc     = R"(The sum of the singular values of each matrix: see linalg.matrix_norm.)",
  .dtypes  = full_precision,
  .variants = function,
  .forward = [](const Tensor& input, bool keepdim) {
    CHECK(input.dim() >= 2, "input must have at least 2 dimensions, but has shape ", input.sizes());
    constexpr int64_t kLast[] = {-2, -1};
    return matrix_norm(input, "nuc", kLast, keepdim, {});
  },
})

OP(nuclear_norm_dim, "nuclear_norm.dim(Tensor input, int[] dim, bool keepdim=False) -> Tensor", {
  .doc     = R"(The sums of the singular values of the matrices in two dims.)",
  .dtypes  = full_precision,
  .variants = function,
  .forward = [](const Tensor& input, ShapeRef dim, bool keepdim) {
    return matrix_norm(input, "nuc", dim, keepdim, {});
  },
})

OP(frobenius_norm, "(Tensor input, int[1] dim, bool keepdim=False) -> Tensor", {
  .doc     = R"(The root of the sum of squares over dim, or over all dims when it is empty.)",
  .dtypes  = floating_or_complex,
  .variants = function,
  .forward = [](const Tensor& input, ShapeRef dim, bool keepdim) {
    return vector_norm(input, 2, dim, keepdim);
  },
})

OP(norm_except_dim, "(Tensor v, int pow=2, int dim=0) -> Tensor", {
  .doc     = R"(The norm over all dims but one, which become size 1; over all when dim is -1.)",
  .dtypes  = floating_or_complex,
  .forward = [](const Tensor& v, int64_t pow, int64_t dim) {
    if (dim == -1) return vector_norm(v, double(pow), {}, false);
    int64_t kept = wrap_dim(dim, v.dim());
    Shape others;
    for (int64_t d = 0; d < v.dim(); ++d)
      if (d != kept) others.push_back(d);
    // An empty list would mean all dims.
    if (others.empty()) return abs(v);
    return vector_norm(v, double(pow), ShapeRef(others), true);
  },
})

OP(linalg_cond, "cond(Tensor A, Scalar? p=None) -> Tensor", {
  .home    = "linalg",
  .doc     = R"(The condition number of matrices: norm(A, p) * norm(inv(A), p).

p None and 2 are the largest singular value by the smallest, also of matrices that are not square;
-2 is its inverse. The other norms are those of linalg.matrix_norm; singular matrices give
infinity.)",
  .dtypes  = full_precision,
  .autocast = autocast::on_cpu(autocast::single),
  .forward = [](const Tensor& A, std::optional<Scalar> p) {
    double ord = p ? real_number(*p, "p") : 2;
    CHECK(std::abs(ord) == 1 || std::abs(ord) == 2 || std::isinf(ord),
          "got an invalid norm type: ", ord, ". It is 1, -1, 2, -2, inf, -inf, 'fro' or 'nuc'.");
    return std::abs(ord) == 2 ? spectral_condition(A, ord > 0) : condition(A, ord);
  },
})

OP(linalg_cond_str, "cond.p_str(Tensor A, str p) -> Tensor", {
  .home    = "linalg",
  .doc     = R"(The condition number with the norm 'fro' or 'nuc'.)",
  .dtypes  = full_precision,
  .autocast = autocast::on_cpu(autocast::single),
  .forward = [](const Tensor& A, std::string_view p) {
    CHECK(p == "fro" || p == "nuc", "got an invalid norm type: ", p,
          ". It is 1, -1, 2, -2, inf, -inf, 'fro' or 'nuc'.");
    return condition(A, p);
  },
})

}  // namespace rushlight
