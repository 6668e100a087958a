// Owns the Cholesky and LDL factorizations of Hermitian matrices and what is solved by them.
#include "core/ops/linalg/linalg.h"
#include "core/ops/no_derivative.h"

namespace rushlight {
namespace {

using Pair = std::tuple<Tensor, Tensor>;
using Triple = std::tuple<Tensor, Tensor, Tensor>;

void refuse_indefinite(const Tensor& info) {
  check_info(info, [&](int64_t i, int minor) {
    CHECK(false, ErrorKind::kLinAlg, in_batch(info, i),
          "The factorization could not be completed because the input is not positive-definite "
          "(the leading minor of order ",
          minor, " is not positive-definite).");
  });
}

void refuse_zero_diagonal(const Tensor& factor) {
  Tensor is_zero = diagonal_of(factor) == 0;
  Tensor any = call<"any", Tensor>(is_zero, std::optional<ShapeRef>(Shape{-1}), false);
  check_info(cast(any, DType::int32), [&](int64_t i, int) {
    CHECK(false, ErrorKind::kLinAlg, in_batch(any, i),
          "A diagonal element of the factor is zero, the inversion could not be completed.");
  });
}

Tensor expanded_matrix(const Tensor& t, const Shape& batch) {
  return expand(t, with_matrix(batch, t.size(-2), t.size(-1)));
}

void check_system(const Tensor& b, const Tensor& a, const char* a_name) {
  check_square(a, a_name);
  check_matrices(b, "B");
  check_alike(b, "B", a, a_name);
  CHECK(a.size(-1) == b.size(-2), "Incompatible matrix sizes: each ", a_name, " is ", a.size(-2),
        " by ", a.size(-1), ", but each B has ", b.size(-2), " rows.");
}

// A positive pivot is a block of one row, an equal pair of negative ones a block of two.
void check_ldl_pivots(const Tensor& pivots) {
  int64_t n = pivots.size(-1);
  for (int64_t start = 0; start < pivots.numel(); start += n) {
    const int* pivot = pivots.data<int>() + start;
    for (int64_t i = 0; i < n;) {
      int64_t rows = pivot[i] > 0 ? 1 : 2;
      bool is_block = rows == 1 || (i + 1 < n && pivot[i] == pivot[i + 1] && pivot[i] < 0);
      CHECK(is_block && std::abs(int64_t(pivot[i])) <= n, "pivot ", pivot[i], " at ", i,
            " is not one of an LDL factorization of ", n, " rows. Pass those of ldl_factor.");
      i += rows;
    }
  }
}

}  // namespace

OP(linalg_cholesky_ex,
   "cholesky_ex(Tensor A, *, bool upper=False, bool check_errors=False) -> (Tensor L, "
   "Tensor info)", {
  .home    = "linalg",
  .doc     = R"(The Cholesky factor as linalg.cholesky, and instead of an error a number.

info is 0 where a matrix is positive-definite, else the order of the first leading minor that is
not.)",
  .dtypes  = full_precision,
  .node    = "linalg_cholesky_ex",
  .autocast = autocast::on_cpu(autocast::single),
  .batch   = by_matrices,
  .forward = [](const Tensor& A, bool upper, bool check_errors) {
    check_square(A, "A");
    Tensor L = column_major_copy(A), info = empty(batch_sizes(A), DType::int32, A.device());
    run_kernel(A, cholesky_cpu, cholesky_cuda, L, upper, info);
    if (check_errors) refuse_indefinite(info);
    return std::tuple(L, info);
  },
  .saves   = saves<"L">,
  // Murray 2016, "Differentiation of the Cholesky decomposition", equation 10, made Hermitian.
  .grads   = grads(d<"A">([](TensorList g, const Tensor& factor, bool upper, bool) {
    Tensor L = upper ? adjoint(factor) : factor, grad = upper ? adjoint(g[0]) : g[0];
    Tensor product = matmul(adjoint(L), grad);
    Tensor half = (tril(product) + tril(product, -1)) * 0.25;
    Tensor left = solve_triangular(adjoint(L), half + adjoint(half), true);
    return solve_triangular(L, left, false, false);
  })),
})

OP(linalg_cholesky, "cholesky(Tensor A, *, bool upper=False) -> Tensor", {
  .home    = "linalg",
  .doc     = R"(The lower triangular L with A = L @ L.mH of Hermitian positive-definite matrices.

Only the lower triangle of A is read, or with upper=True the upper one, which gives U = L.mH.

Args:
    A: (*, n, n).

Returns:
    (*, n, n).

Raises:
    LinAlgError: if a matrix is not positive-definite.

Example:
    >>> torch.linalg.cholesky(torch.tensor([[4.0, 2.0], [2.0, 5.0]]))
    tensor([[2., 0.],
            [1., 2.]]))",
  .dtypes  = full_precision,
  .autocast = autocast::on_cpu(autocast::single),
  .forward = [](const Tensor& A, bool upper) {
    auto [L, info] = call<"linalg_cholesky_ex", Pair>(A, upper, false);
    refuse_indefinite(info);
    return L;
  },
})

OP(cholesky, "(Tensor input, bool upper=False) -> Tensor", {
  .doc     = R"(The Cholesky factor of matrices: see linalg.cholesky.)",
  .dtypes  = full_precision,
  .autocast = autocast::on_cpu(autocast::single),
  .forward = [](const Tensor& input, bool upper) {
    return call<"linalg_cholesky", Tensor>(input, upper);
  },
})

OP(cholesky_solve, "(Tensor input, Tensor input2, bool upper=False) -> Tensor", {
  .doc     = R"(The solution X of A @ X = input by the Cholesky factor of A.

Args:
    input: the right sides B, (*, n, k).
    input2: the factor L with A = L @ L.mH, or with upper=True U with A = U.mH @ U; (*, n, n).

Returns:
    (*, n, k).)",
  .dtypes  = full_precision,
  .autocast = autocast::on_cpu(autocast::single),
  .forward = [](const Tensor& input, const Tensor& input2, bool upper) {
    check_system(input, input2, "A");
    Tensor L = upper ? adjoint(input2) : input2;
    return solve_triangular(adjoint(L), solve_triangular(L, input, false), true);
  },
})

OP(cholesky_inverse, "(Tensor input, bool upper=False) -> Tensor", {
  .doc     = R"(The inverse of A by its Cholesky factor L, A = L @ L.mH, or U with upper=True.)",
  .dtypes  = full_precision,
  .autocast = autocast::on_cpu(autocast::single),
  .forward = [](const Tensor& input, bool upper) {
    check_square(input, "A");
    if (input.device().is_cpu()) refuse_zero_diagonal(input);
    Tensor sides = expanded_matrix(eye_like(input, input.size(-1)), batch_sizes(input));
    return call<"cholesky_solve", Tensor>(sides, input, upper);
  },
})

OP(linalg_ldl_factor_ex,
   "ldl_factor_ex(Tensor A, *, bool hermitian=False, bool check_errors=False) -> (Tensor LD, "
   "Tensor pivots, Tensor info)", {
  .home    = "linalg",
  .doc     = R"(The LDL factorization as linalg.ldl_factor, and instead of an error a number.

info is 0 where it succeeded, else the first i with a zero at D[i - 1, i - 1].)",
  .dtypes  = full_precision,
  .batch   = by_matrices,
  .forward = [](const Tensor& A, bool hermitian, bool check_errors) {
    check_square(A, "A");
    Tensor LD = column_major_copy(tril(A));
    Tensor pivots = empty(with_vector(batch_sizes(A), A.size(-1)), DType::int32, A.device());
    Tensor info = empty(batch_sizes(A), DType::int32, A.device());
    run_kernel(A, ldl_cpu, ldl_cuda, LD, pivots, info, hermitian);
    if (check_errors) {
      check_info(info, [&](int64_t i, int zero) {
        CHECK(false, ErrorKind::kLinAlg, in_batch(info, i), "D[", zero, ",", zero,
              "] is zero, and solving by it would divide by zero.");
      });
    }
    return std::tuple(LD, pivots, info);
  },
  .grads   = grads(d<"A">([](TensorList) { return no_derivative("A"); })),
})

OP(linalg_ldl_factor,
   "ldl_factor(Tensor A, *, bool hermitian=False) -> (Tensor LD, Tensor pivots)", {
  .home    = "linalg",
  .doc     = R"(A = L @ D @ L.mT of symmetric matrices, or with hermitian=True L @ D @ L.mH.

The compact form of Bunch and Kaufman (1977), for linalg.ldl_solve; only the lower triangle of A is
read. Its gradient is not implemented.)",
  .dtypes  = full_precision,
  .forward = [](const Tensor& A, bool hermitian) {
    auto [LD, pivots, info] = call<"linalg_ldl_factor_ex", Triple>(A, hermitian, true);
    return std::tuple(LD, pivots);
  },
})

OP(linalg_ldl_solve,
   "ldl_solve(Tensor LD, Tensor pivots, Tensor B, *, bool hermitian=False) -> Tensor", {
  .home    = "linalg",
  .doc     = R"(The solution X of A @ X = B by the linalg.ldl_factor of A.

The gradient for the factor is not implemented.)",
  .dtypes  = full_precision,
  .batch   = [](const Batch& batch, const Tensor&, const Tensor&, const Tensor&, bool hermitian) {
    int64_t rank = std::max(batch.rank("LD"), batch.rank("B"));
    return call<"linalg_ldl_solve", Tensor>(Batch::padded(batch.full("LD"), rank),
                                            Batch::padded(batch.full("pivots"), rank - 1),
                                            Batch::padded(batch.full("B"), rank), hermitian);
  },
  .forward = [](const Tensor& LD, const Tensor& pivots, const Tensor& B, bool hermitian) {
    check_system(B, LD, "LD");
    CHECK(pivots.dtype() == DType::int32, "Expected pivots to be int32, but got ",
          dtype_name(pivots.dtype()), ". Pass those of ldl_factor.");
    CHECK(pivots.sizes() == with_vector(batch_sizes(LD), LD.size(-1)), "Expected pivots of shape ",
          with_vector(batch_sizes(LD), LD.size(-1)), " for LD of shape ", LD.sizes(), ", but got ",
          pivots.sizes(), ".");
    Shape batch = broadcast_shapes(batch_sizes(LD), batch_sizes(B));
    Tensor X = column_major_copy(expanded_matrix(B, batch));
    if (LD.device().is_meta()) return X;
    Tensor factor = column_major_copy(expanded_matrix(LD, batch));
    Tensor exchanges = to_contiguous(expand(pivots, with_vector(batch, pivots.size(-1))));
    check_ldl_pivots(readable(exchanges));
    run_kernel(LD, ldl_solve_cpu, ldl_solve_cuda, factor, exchanges, X, hermitian);
    return X;
  },
  .saves   = saves<"LD", "pivots">,
  .grads   = grads(
    d<"LD">(uses<>, [](const Tensor&, bool) { return no_derivative("LD"); }),
    no_grad<"pivots">,
    // A^-H g, where A is its own adjoint or its own transpose.
    d<"B">([](const Tensor& g, const Tensor& LD, const Tensor& pivots, bool hermitian) {
      if (hermitian) return call<"linalg_ldl_solve", Tensor>(LD, pivots, g, true);
      return conj(call<"linalg_ldl_solve", Tensor>(LD, pivots, conj(g), false));
    })),
})

}  // namespace rushlight
