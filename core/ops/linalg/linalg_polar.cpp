// Owns the square root of Hermitian matrices and the polar decomposition. Both are smooth where
// eigenvalues or singular values repeat, and the gradients of the vectors are not: theirs solve
// Lyapunov's equation instead.
#include "core/ops/linalg/linalg.h"

namespace rushlight {
namespace {

using Pair = std::tuple<Tensor, Tensor>;
using Triple = std::tuple<Tensor, Tensor, Tensor>;

Pair eigh(const Tensor& A) { return call<"linalg_eigh", Pair>(A, std::string_view("L")); }

// Z with H Z + Z H = X.
Tensor solve_lyapunov(const Tensor& H, const Tensor& X) { return call<"lyapunov", Tensor>(H, X); }

Tensor hermitian_part(const Tensor& x) { return (x + adjoint(x)) * 0.5; }

// From A = U H with U^H U = I and H Hermitian: dU = U Z + (I - U U^H) dA H^-1, where the skew Z
// solves H Z + Z H = skew(U^H dA), and H dH + dH H = A^H dA + dA^H A.
Tensor polar_gradient(TensorList g, const Tensor& U, const Tensor& H) {
  const Tensor &gu = g[0], &gh = g[1];
  Tensor inside, beyond;
  if (gh.defined()) inside = matmul(H, hermitian_part(solve_lyapunov(H, gh)) * 2);
  if (gu.defined()) {
    Tensor along = matmul(adjoint(U), gu);
    inside = plus(inside, skew(solve_lyapunov(H, along)));
    if (U.size(-2) > U.size(-1)) {
      auto [inverse, info] = call<"linalg_inv_ex", Pair>(H, false);
      beyond = matmul(gu - matmul(U, along), inverse);
    }
  }
  return plus(matmul(U, inside), beyond);
}

}  // namespace

OP(lyapunov, "_lyapunov(Tensor H, Tensor X) -> Tensor", {
  .home    = "core",
  .doc     = R"(Z with H @ Z + Z @ H = X, for Hermitian positive-definite H.)",
  .dtypes  = full_precision,
  .batch   = by_matrices,
  .forward = [](const Tensor& H, const Tensor& X) {
    auto [values, V] = eigh(H);
    Tensor sums = unsqueeze(values, -2) + unsqueeze(values, -1);
    Tensor turned = matmul(matmul(adjoint(V), X), V);
    return matmul(matmul(V, turned / sums), adjoint(V));
  },
  .saves   = saves<"H", "result">,
  .grads   = grads(d<"H">([](const Tensor& g, const Tensor& H, const Tensor& Z) {
    Tensor G = solve_lyapunov(H, g), Zh = adjoint(Z);
    return hermitian_part(matmul(G, Zh) + matmul(Zh, G)) * -1.0;
  }), d<"X">([](const Tensor& g, const Tensor& H, const Tensor&) {
    return solve_lyapunov(H, g);
  })),
})

OP(linalg_matrix_sqrth, "matrix_sqrth(Tensor input) -> Tensor", {
  .home    = "linalg",
  .doc     = R"(The square root X of Hermitian matrices without negative eigenvalues: X @ X = input.

Computed by linalg.eigh; eigenvalues below zero count as zero.

Args:
    input: (*, n, n), of which only the lower triangle is read.

Returns:
    The X that is Hermitian and has no negative eigenvalues, (*, n, n).

The gradient exists where no eigenvalue is zero.

Example:
    >>> torch.linalg.matrix_sqrth(torch.tensor([[5.0, 4.0], [4.0, 5.0]]))
    tensor([[2.0000, 1.0000],
            [1.0000, 2.0000]]))",
  .dtypes  = full_precision,
  .autocast = autocast::on_cpu(autocast::single),
  .batch   = by_matrices,
  .forward = [](const Tensor& input) {
    auto [values, V] = eigh(input);
    Tensor nonnegative = call<"clamp_min", Tensor>(values, wrapped_number(0.0));
    return matmul(scale_columns(V, sqrt(nonnegative)), adjoint(V));
  },
  .saves   = saves<"result">,
  .grads   = grads(d<"input">([](const Tensor& g, const Tensor& X) {
    return hermitian_part(solve_lyapunov(X, g));
  })),
})

OP(linalg_polar, "polar(Tensor A) -> (Tensor U, Tensor H)", {
  .home    = "linalg",
  .doc     = R"(The polar decomposition of matrices: A = U @ H, as phase times magnitude.

Of all matrices with orthonormal columns U is the nearest to A. Computed by linalg.svd.

Args:
    A: (*, m, n) with m >= n.

Returns:
    U (*, m, n) with orthonormal columns, and H (*, n, n), Hermitian without negative eigenvalues.

Raises:
    RuntimeError: if matrices have fewer rows than columns. Take A.mH then: its H stands on the left
        of U.mH.
    LinAlgError: if a matrix contains NaN or infinity.

The gradient exists where the columns of A are linearly independent.

Example:
    >>> torch.linalg.polar(torch.tensor([[0.0, -2.0], [3.0, 0.0]]))
    torch.return_types.linalg_polar(
    U=tensor([[ 0., -1.],
            [ 1.,  0.]]),
    H=tensor([[3., 0.],
            [0., 2.]])))",
  .dtypes  = full_precision,
  .autocast = autocast::on_cpu(autocast::single),
  .batch   = by_matrices,
  .forward = [](const Tensor& A) {
    check_matrices(A, "A");
    CHECK(A.size(-2) >= A.size(-1), "A must have at least as many rows as columns, but they are ",
          A.size(-2), " by ", A.size(-1), " matrices. Decompose A.mH instead.");
    auto [W, S, Vh] = call<"svd_kernel", Triple>(A, false, true, false);
    return std::tuple(matmul(W, Vh), matmul(scale_columns(adjoint(Vh), S), Vh));
  },
  .saves   = saves<"U", "H">,
  .grads   = grads(d<"A">([](TensorList g, const Tensor& U, const Tensor& H) {
    return polar_gradient(g, U, H);
  })),
})

}  // namespace rushlight
