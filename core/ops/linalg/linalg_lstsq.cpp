// Owns least squares.
#include "core/autograd/node.h"
#include "core/ops/linalg/linalg.h"

namespace rushlight {
namespace {

using Solved = std::tuple<Tensor, Tensor, Tensor, Tensor>;

LeastSquares driver_of(std::string_view name) {
  if (name == "gels") return LeastSquares::gels;
  if (name == "gelsd") return LeastSquares::gelsd;
  if (name == "gelss") return LeastSquares::gelss;
  CHECK(name == "gelsy",
        "parameter `driver` should be one of (gels, gelsy, gelsd, gelss), but is '", name, "'.");
  return LeastSquares::gelsy;
}

struct Finds {
  bool rank, values;
};
Finds finds(LeastSquares driver) {
  return {driver != LeastSquares::gels,
          driver == LeastSquares::gelsd || driver == LeastSquares::gelss};
}

void refuse_failure(const Tensor& info) {
  check_info(info, [&](int64_t i, int code) {
    CHECK(code > 0, ErrorKind::kLinAlg, in_batch(info, i),
          "The algorithm failed because the input contained non-finite values.");
    CHECK(false, ErrorKind::kLinAlg, in_batch(info, i),
          "The least squares solution could not be computed because the input matrix does not have "
          "full rank (error code: ",
          code, ").");
  });
}

// The sums of squares that LAPACK leaves below the solution, (*, columns); nothing when some matrix
// may not have full rank.
Tensor residuals_of(LeastSquares driver, const Tensor& x, const Tensor& rank, int64_t m,
                    int64_t n) {
  DType dtype = real_dtype(x.dtype());
  bool exist = m > n && driver != LeastSquares::gelsy;
  if (exist && driver != LeastSquares::gels && has_values(rank)) exist = all_true(rank == n);
  if (!exist) return empty(with_vector(batch_sizes(x), 0), dtype, x.device());
  Tensor below = abs(narrow(x, -2, n, m - n));
  return sum(below * below, Shape{-2});
}

}  // namespace

OP(lstsq_kernel,
   "_lstsq(Tensor A, Tensor B, float rcond, str driver) -> (Tensor solution, Tensor residuals, "
   "Tensor rank, Tensor singular_values)", {
  .home    = "core",
  .doc     = R"(linalg.lstsq of tensors of one batch shape; what is not found has a dim of 0.)",
  .dtypes  = full_precision,
  .batch   = by_matrices,
  .forward = [](const Tensor& A, const Tensor& B, double rcond, std::string_view name) {
    LeastSquares driver = driver_of(name);
    auto [finds_rank, finds_values] = finds(driver);
    int64_t m = A.size(-2), n = A.size(-1), columns = B.size(-1);
    Shape batch = batch_sizes(A);
    Tensor X = column_major(with_matrix(batch, std::max(m, n), columns), A.dtype(), A.device());
    copy_into(narrow(X, -2, 0, m), B);
    if (n > m) call<"zero_", Tensor>(narrow(X, -2, m, n - m));
    Tensor rank = empty(finds_rank ? batch : with_vector(batch, 0), DType::int64, A.device());
    Tensor values = empty(with_vector(batch, finds_values ? std::min(m, n) : 0),
                          real_dtype(A.dtype()), A.device());
    Tensor info = empty(batch, DType::int32, A.device());
    run_kernel(A, lstsq_cpu, lstsq_cuda, driver, column_major_copy(A), X, rcond, rank, values,
               info);
    refuse_failure(info);
    return std::tuple(narrow(X, -2, 0, n), residuals_of(driver, X, rank, m, n), rank, values);
  },
  .saves   = saves<"A", "B", "solution">,
  // The solution is pinv(A) B. Of the residuals |A X - B|^2 the slope in X is 0.
  .grads   = grads(d<"A", "B">([](TensorList g, const Tensor& A, const Tensor& B, const Tensor& X,
                                  double, const std::string&, GradMask<2>) {
    Tensor ga, gb;
    if (g[0].defined()) {
      Tensor P = call<"linalg_pinv", Tensor>(A, Tensor(), Tensor(), false);
      ga = pinv_gradient(matmul(g[0], adjoint(B)), A, P);
      gb = matmul(adjoint(P), g[0]);
    }
    if (g[1].defined() && g[1].numel() > 0) {
      Tensor rest = scale_columns(matmul(A, X) - B, g[1] * 2);
      ga = plus(ga, matmul(rest, adjoint(X)));
      gb = plus(gb, -rest);
    }
    return std::tuple(ga, gb);
  })),
})

OP(linalg_lstsq,
   "lstsq(Tensor A, Tensor B, float? rcond=None, *, str? driver=None) -> (Tensor solution, "
   "Tensor residuals, Tensor rank, Tensor singular_values)", {
  .home    = "linalg",
  .doc     = R"(The X that makes A @ X - B least in squares, and of those the smallest.

Args:
    A: (*, m, n).
    B: (*, m, k), or (*, m) or (m,): vectors.
    rcond: singular values up to rcond times the largest count as zero; the rounding error of the
        dtype times max(m, n) when None.
    driver: a routine of LAPACK: 'gelsy' by a QR decomposition, 'gelsd' and 'gelss' by a singular
        value decomposition; 'gels' by a plain QR decomposition, for full rank. None is 'gelsy' on
        the CPU, and 'gels' on CUDA, where the other three are one algorithm.

Returns:
    solution, (*, n, k) or (*, n); residuals, (*, k): sums of squares, if m > n and all ranks are n
    and driver is not 'gelsy'; rank, (*), unless driver is 'gels'; singular_values, (*, min(m, n)),
    for 'gelsd' and 'gelss'. Others are tensors without elements.

Example:
    >>> A = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
    >>> torch.linalg.lstsq(A, torch.tensor([[1.0], [2.0], [5.0]]), driver="gels").residuals
    tensor([25.]))",
  .dtypes  = full_precision,
  .autocast = autocast::on_cpu(autocast::single),
  .forward = [](const Tensor& A, const Tensor& B, std::optional<double> rcond,
                std::optional<std::string_view> driver) {
    check_matrices(A, "A");
    check_alike(A, "A", B, "B");
    CHECK(B.dim() > 0, "B must have at least one dim, but is 0-d.");
    bool is_vector = are_vectors(A, B);
    Tensor sides = is_vector ? unsqueeze(B, -1) : B;
    int64_t m = A.size(-2), n = A.size(-1);
    CHECK(sides.size(-2) == m, "input.size(-2) should match other.size(-2), but they are ", m,
          " and ", sides.size(-2), ".");
    std::string_view name = driver.value_or(A.device().is_cuda() ? "gels" : "gelsy");
    double usual = rounding_error(A.dtype()) * double(std::max(m, n));
    Shape batch = broadcast_shapes(batch_sizes(A), batch_sizes(sides));
    auto [X, residuals, rank, values] = call<"lstsq_kernel", Solved>(
        expand(A, with_matrix(batch, m, n)), expand(sides, with_matrix(batch, m, sides.size(-1))),
        rcond.value_or(usual), name);
    auto found = [](const Tensor& t, bool exists) {
      return exists ? t : empty(Shape{0}, t.dtype(), t.device());
    };
    auto [finds_rank, finds_values] = finds(driver_of(name));
    return std::tuple(is_vector ? squeeze(X, -1) : X, found(residuals, residuals.size(-1) > 0),
                      found(rank, finds_rank), found(detach(values), finds_values));
  },
})

}  // namespace rushlight
