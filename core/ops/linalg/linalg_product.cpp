// Owns what is made of products: powers and exponentials of matrices, chains of them, and
// Vandermonde matrices.
#include <cmath>

#include "core/ops/linalg/linalg.h"

namespace rushlight {
namespace {

Tensor identity_like(const Tensor& A) { return expand(eye_like(A, A.size(-1)), A.sizes()); }

// ---- powers -------------------------------------------------------------------------------------

Tensor power(const Tensor& A, int64_t n) {
  check_square(A, "A");
  if (n == 0) return copy_(clone(A), identity_like(A));  // with a gradient, which is zero
  uint64_t left = n < 0 ? -uint64_t(n) : uint64_t(n);
  Tensor square = n < 0 ? call<"linalg_inv", Tensor>(A) : A, result;
  for (; left > 0; left >>= 1) {
    if (left & 1) result = result.defined() ? matmul(result, square) : square;
    if (left > 1) square = matmul(square, square);
  }
  return result.is(A) ? clone(A) : result;
}

// ---- exponentials -------------------------------------------------------------------------------

// a + b + ...: each matrix times its factor, plus a multiple of the identity.
struct Term {
  double factor;
  const Tensor& matrix;
};
Tensor combine(std::initializer_list<Term> terms) {
  Tensor total;
  for (const Term& term : terms) total = plus(total, term.matrix * term.factor);
  return total;
}

// The Taylor polynomial of degree 8 in three products: Bader, Blanes and Casas 2019, "Computing the
// matrix exponential with an optimized Taylor polynomial approximation", section 2.1.
Tensor taylor_8(const Tensor& A, const Tensor& I) {
  const double r = std::sqrt(177.0), x3 = 2.0 / 3;
  const double x1 = x3 * (1 + r) / 88, x2 = x3 * (1 + r) / 352, x4 = (-271 + 29 * r) / (315 * x3),
               x5 = 11 * (-1 + r) / (1260 * x3), x6 = 11 * (-9 + r) / (5040 * x3),
               x7 = (89 - r) / (5040 * x3 * x3), y2 = (857 - 58 * r) / 630;
  Tensor A2 = matmul(A, A);
  Tensor A4 = matmul(A2, combine({{x1, A}, {x2, A2}}));
  Tensor A8 = matmul(combine({{x3, A2}, {1, A4}}), combine({{x4, I}, {x5, A}, {x6, A2}, {x7, A4}}));
  return combine({{1, I}, {1, A}, {y2, A2}, {1, A8}});
}

// Of degree 16 in six products: powers up to A^4, then Horner's rule in A^4 (Paterson and
// Stockmeyer 1973).
Tensor taylor_16(const Tensor& A, const Tensor& I) {
  Tensor A2 = matmul(A, A), A3 = matmul(A2, A), A4 = matmul(A2, A2);
  double inverse[17] = {1};  // factorials
  for (int i = 1; i <= 16; ++i) inverse[i] = inverse[i - 1] / i;
  auto part = [&](int i) {
    return combine(
        {{inverse[i], I}, {inverse[i + 1], A}, {inverse[i + 2], A2}, {inverse[i + 3], A3}});
  };
  Tensor sum = part(12) + A4 * inverse[16];
  for (int i = 8; i >= 0; i -= 4) sum = part(i) + matmul(A4, sum);
  return sum;
}

// How often each matrix must be halved so that its 1-norm is small enough for the polynomial: (*).
Tensor halvings(const Tensor& A, double largest) {
  GradModeGuard unrecorded(false);
  Tensor columns = sum(abs(A), Shape{-2});
  Tensor norms = call<"amax", Tensor>(columns, std::optional<ShapeRef>(Shape{-1}), false);
  Tensor count = ceil(log2(norms / largest));
  return select((count > 0) & isfinite(count), count, zeros_like(count));
}

Tensor exponential(const Tensor& A) {
  check_square(A, "A");
  if (bottom(A).numel() == 0) return clone(A);
  if (is_half(A.dtype())) return cast(exponential(cast(A, DType::float32)), A.dtype());
  Tensor I = eye_like(A, A.size(-1));
  bool is_single = real_dtype(A.dtype()) == DType::float32;
  // Where the remainder falls below rounding: the paper's table 1, and Al-Mohy and Higham 2011,
  // table 3.1, between degrees 15 and 20.
  Tensor counts = halvings(A, is_single ? 0.58 : 0.78);
  int64_t most = 0;
  if (has_values(A)) most = int64_t(item(call<"max", Tensor>(bottom(counts))).to<double>());
  Tensor result = A;
  if (most > 0) result = A * unsqueeze(unsqueeze(exp2(-counts), -1), -1);
  result = is_single ? taylor_8(result, I) : taylor_16(result, I);
  for (int64_t i = 0; i < most; ++i) {
    Tensor squared = matmul(result, result);
    bool is_one = bottom(A).dim() == 2;
    result = is_one ? squared
                    : select(unsqueeze(unsqueeze(counts, -1), -1) > double(i), squared, result);
  }
  return result;
}

// ---- chains -------------------------------------------------------------------------------------

// The best order to multiply matrices in: Cormen et al., section 15.2. split[i][j] is the last
// matrix of the left factor of the product of matrices i to j.
class ChainOrder {
 public:
  explicit ChainOrder(std::span<const Tensor> matrices) : n_(matrices.size()) {
    std::vector<double> sizes;
    for (const Tensor& t : matrices) sizes.push_back(double(t.size(0)));
    sizes.push_back(double(matrices.back().size(1)));
    std::vector<double> cost(n_ * n_, 0.0);
    split_.resize(n_ * n_);
    for (size_t length = 2; length <= n_; ++length) {
      for (size_t i = 0; i + length <= n_; ++i) {
        size_t j = i + length - 1;
        double least = std::numeric_limits<double>::infinity();
        for (size_t k = i; k < j; ++k) {
          double here =
              cost[i * n_ + k] + cost[(k + 1) * n_ + j] + sizes[i] * sizes[k + 1] * sizes[j + 1];
          if (here >= least) continue;
          least = here;
          split_[i * n_ + j] = k;
        }
        cost[i * n_ + j] = least;
      }
    }
  }

  Tensor product(std::span<const Tensor> matrices, size_t i, size_t j) const {
    if (i == j) return matrices[i];
    size_t k = split_[i * n_ + j];
    return mm(product(matrices, i, k), product(matrices, k + 1, j));
  }

 private:
  size_t n_;
  std::vector<size_t> split_;
};

Tensor chain(TensorList tensors) {
  CHECK(tensors.size() >= 2, "expected at least 2 tensors but got ", tensors.size());
  std::vector<Tensor> matrices(tensors.begin(), tensors.end());
  bool is_row = matrices.front().dim() == 1, is_column = matrices.back().dim() == 1;
  if (is_row) matrices.front() = unsqueeze(matrices.front(), 0);
  if (is_column) matrices.back() = unsqueeze(matrices.back(), 1);
  for (size_t i = 0; i < matrices.size(); ++i) {
    bool is_end = i == 0 || i + 1 == matrices.size();
    CHECK(matrices[i].dim() == 2, "tensor ", i, " must be ", is_end ? "1D or 2D" : "2D",
          " but got ", tensors[i].dim(), "D");
    CHECK(i == 0 || matrices[i - 1].size(1) == matrices[i].size(0), "tensors ", i - 1, " and ", i,
          " with shapes ", tensors[i - 1].sizes(), " and ", tensors[i].sizes(),
          " cannot be multiplied");
    if (i > 0) check_alike(matrices[0], "tensor 0", matrices[i], "a later one");
  }
  Tensor product = ChainOrder(matrices).product(matrices, 0, matrices.size() - 1);
  if (is_row) product = squeeze(product, 0);
  return is_column ? squeeze(product, -1) : product;
}

// x^0, x^1, ... in a new last dim.
Tensor powers(const Tensor& x, int64_t count) {
  Tensor column = unsqueeze(x, -1);
  Shape sizes = x.sizes();
  sizes.push_back(count - 1);
  const Tensor parts[] = {ones_like(column), expand(column, sizes)};
  return call<"cumprod", Tensor>(cat(parts, -1), int64_t(-1), std::optional<DType>());
}

}  // namespace

OP(linalg_matrix_power, "matrix_power(Tensor A, int n) -> Tensor", {
  .home    = "linalg",
  .doc     = R"(A @ A @ ... @ A with n factors, for square matrices; of the inverse when n < 0.

Example:
    >>> torch.linalg.matrix_power(torch.tensor([[1, 1], [0, 1]]), 5)
    tensor([[1, 5],
            [0, 1]]))",
  .dtypes  = numeric,
  .forward = [](const Tensor& A, int64_t n) { return power(A, n); },
})

OP(matrix_power, "(Tensor input, int n) -> Tensor", {
  .doc     = R"(The power of square matrices: see linalg.matrix_power.)",
  .dtypes  = numeric,
  .forward = [](const Tensor& input, int64_t n) { return power(input, n); },
})

OP(linalg_matrix_exp, "matrix_exp(Tensor A) -> Tensor", {
  .home    = "linalg",
  .doc     = R"(The exponential of square matrices: I + A + A @ A / 2 + A @ A @ A / 6 + ...

Computed by scaling, a Taylor polynomial, and squaring.

Example:
    >>> torch.linalg.matrix_exp(torch.tensor([[0.0, 1.0], [0.0, 0.0]]))
    tensor([[1., 1.],
            [0., 1.]]))",
  .dtypes  = floating_or_complex,
  .forward = [](const Tensor& A) { return exponential(A); },
})

OP(matrix_exp, "(Tensor input) -> Tensor", {
  .doc     = R"(The exponential of square matrices: see linalg.matrix_exp.)",
  .dtypes  = floating_or_complex,
  .forward = [](const Tensor& input) { return exponential(input); },
})

OP(linalg_multi_dot, "multi_dot(Tensor[] tensors) -> Tensor", {
  .home    = "linalg",
  .doc     = R"(The product of two or more matrices, in the order that takes the fewest operations.

The first and the last may be vectors: a row and a column.

Example:
    >>> torch.linalg.multi_dot([torch.ones(2), torch.ones(2, 3), torch.ones(3)])
    tensor(6.))",
  .dtypes  = numeric,
  .autocast = autocast::on_cuda(autocast::lower),
  .forward = [](TensorList tensors) { return chain(tensors); },
})

OP(chain_matmul, "(Tensor[] *matrices) -> Tensor", {
  .doc     = R"(The product of matrices in the best order: see linalg.multi_dot.)",
  .dtypes  = numeric,
  .autocast = autocast::on_cuda(autocast::lower),
  .forward = [](TensorList matrices) {
    if (matrices.size() == 1) return matrices[0];
    for (const Tensor& t : matrices)
      CHECK(t.dim() == 2, "Tensor dimension is ", t.dim(), ", expected 2 instead.");
    return chain(matrices);
  },
})

OP(linalg_vander, "vander(Tensor x, *, int? N=None) -> Tensor", {
  .home    = "linalg",
  .doc     = R"(Vandermonde matrices: row i holds x[i]^0 to x[i]^(N - 1).

Args:
    x: (*, n).
    N: n when None; at least 2.

Returns:
    (*, n, N).)",
  .dtypes  = numeric,
  .forward = [](const Tensor& x, std::optional<int64_t> N) {
    Tensor vectors = x.dim() ? x : view(x, Shape{1});
    int64_t count = N ? *N : vectors.size(-1);
    CHECK(count > 1, "N must be greater than 1, but is ", count, ".");
    return powers(vectors, count);
  },
})

OP(vander, "(Tensor x, int? N=None, bool increasing=False) -> Tensor", {
  .doc     = R"(The Vandermonde matrix of a vector: columns x^(N - 1) to x^0, or increasing.)",
  .forward = [](const Tensor& vector, std::optional<int64_t> N, bool increasing) {
    Tensor x = is_bool(vector.dtype()) ? cast(vector, DType::int64) : vector;
    CHECK(x.dim() == 1, "x must be a one-dimensional tensor, but has shape ", x.sizes(), ".");
    int64_t count = N ? *N : x.size(0);
    CHECK(count >= 0, "N must be non-negative, but is ", count, ".");
    if (count == 0) return empty(Shape{x.size(0), 0}, x.dtype(), x.device());
    Tensor columns = powers(x, count);
    return increasing ? columns : call<"flip", Tensor>(columns, ShapeRef(Shape{-1}));
  },
})

OP(linalg_vecdot, "vecdot(Tensor x, Tensor y, *, int dim=-1) -> Tensor", {
  .home    = "linalg",
  .doc     = R"(The sums of conj(x) * y along dim; other dims broadcast.

Example:
    >>> torch.linalg.vecdot(torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0]))
    tensor(11.))",
  .dtypes  = floating_or_complex,
  .autocast = autocast::lower,
  .forward = [](const Tensor& x, const Tensor& y, int64_t dim) {
    return sum(conj(x) * y, ShapeRef(&dim, 1));
  },
})

OP(linalg_diagonal,
   "diagonal(Tensor A, *, int offset=0, int dim1=-2, int dim2=-1) -> Tensor", {
  .home    = "linalg",
  .doc     = R"(The diagonals of matrices, a view: torch.diagonal of the last two dims.)",
  .forward = [](const Tensor& A, int64_t offset, int64_t dim1, int64_t dim2) {
    return call<"diagonal", Tensor>(A, offset, dim1, dim2);
  },
})

}  // namespace rushlight
