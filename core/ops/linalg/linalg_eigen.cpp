// Owns eigenvalues and eigenvectors, of Hermitian matrices and of all square ones.
#include "core/ops/linalg/linalg.h"

namespace rushlight {
namespace {

using Pair = std::tuple<Tensor, Tensor>;

bool is_upper(std::string_view uplo) {
  CHECK(uplo == "L" || uplo == "U" || uplo == "l" || uplo == "u",
        "Expected UPLO argument to be 'L' or 'U', but got '", uplo, "'.");
  return uplo == "U" || uplo == "u";
}

// l_j - l_i, and 1 on the diagonal.
Tensor gaps(const Tensor& values) {
  return unsqueeze(values, -2) - unsqueeze(values, -1) + eye_like(values, values.size(-1));
}

}  // namespace

OP(eigh_kernel,
   "_eigh(Tensor A, bool upper, bool vectors) -> (Tensor eigenvalues, Tensor eigenvectors)", {
  .home    = "core",
  .doc     = R"(linalg.eigh; without `vectors` the eigenvectors have no elements.)",
  .dtypes  = full_precision,
  .node    = "linalg_eigh",
  .batch   = by_matrices,
  .forward = [](const Tensor& A, bool upper, bool vectors) {
    check_square(A, "A");
    Tensor values = empty(with_vector(batch_sizes(A), A.size(-1)), real_dtype(A.dtype()),
                          A.device());
    Tensor info = empty(batch_sizes(A), DType::int32, A.device());
    Tensor V = column_major_copy(A);
    run_kernel(A, eigh_cpu, eigh_cuda, V, values, upper, vectors, info);
    check_converged(info, "eigenvalues");
    return std::tuple(values, vectors ? V : no_matrices(A, A.dtype()));
  },
  .saves   = saves<"eigenvalues", "eigenvectors">,
  // Giles 2008, section 3.1: V (diag(gL) + (V^H gV) / (l_j - l_i)) V^H, where a loss sees half of
  // the skew V^H gV, which makes the gradient Hermitian.
  .grads   = grads(d<"A">([](TensorList g, const Tensor& values, const Tensor& V) {
    Tensor middle = g[0].defined() ? diagonal_matrix(g[0]) : Tensor();
    if (g[1].defined()) {
      Tensor turn = skew(matmul(adjoint(V), g[1])), phases = diagonal_of(turn);
      if (is_complex(V.dtype())) check_phases(phases, "linalg_eigh", "eigenvectors");
      middle = plus(middle, (turn - diagonal_matrix(phases)) / (gaps(values) * 2));
    } else if (g[0].defined()) {
      return matmul(scale_columns(V, g[0]), adjoint(V));
    }
    return matmul(matmul(V, middle), adjoint(V));
  })),
})

OP(linalg_eigh, "eigh(Tensor A, str UPLO='L') -> (Tensor eigenvalues, Tensor eigenvectors)", {
  .home    = "linalg",
  .doc     = R"(Eigenvalues L and eigenvectors V of Hermitian matrices: A = V @ diag(L) @ V.mH.

Args:
    A: (*, n, n), of which only the lower triangle is read, or the upper one if UPLO is 'U'.

Returns:
    L (*, n), real and ascending, and V (*, n, n) with the vectors in its columns.

Raises:
    LinAlgError: if a matrix contains NaN or infinity.

V is not unique: a loss must not depend on the signs or phases of its columns. Its gradient exists
where the eigenvalues are different.

Example:
    >>> torch.linalg.eigh(torch.tensor([[2.0, 1.0], [1.0, 2.0]])).eigenvalues
    tensor([1., 3.]))",
  .dtypes  = full_precision,
  .autocast = autocast::on_cpu(autocast::single),
  .forward = [](const Tensor& A, std::string_view UPLO) {
    return call<"eigh_kernel", Pair>(A, is_upper(UPLO), true);
  },
})

OP(linalg_eigvalsh, "eigvalsh(Tensor A, str UPLO='L') -> Tensor", {
  .home    = "linalg",
  .doc     = R"(The eigenvalues of Hermitian matrices in ascending order: see linalg.eigh.)",
  .dtypes  = full_precision,
  .autocast = autocast::on_cpu(autocast::single),
  .forward = [](const Tensor& A, std::string_view UPLO) {
    return std::get<0>(call<"eigh_kernel", Pair>(A, is_upper(UPLO), is_differentiated(A)));
  },
})

OP(eig_kernel, "_eig(Tensor A, bool vectors) -> (Tensor eigenvalues, Tensor eigenvectors)", {
  .home    = "core",
  .doc     = R"(linalg.eig; without `vectors` the eigenvectors have no elements.)",
  .dtypes  = full_precision,
  .batch   = by_matrices,
  .forward = [](const Tensor& A, bool vectors) {
    check_square(A, "A");
    DType dtype = complex_dtype(real_dtype(A.dtype()));
    Tensor values = empty(with_vector(batch_sizes(A), A.size(-1)), dtype, A.device());
    Tensor info = empty(batch_sizes(A), DType::int32, A.device());
    Tensor V = vectors ? column_major(A.sizes(), dtype, A.device()) : Tensor();
    run_kernel(A, eig_cpu, eig_cuda, column_major_copy(A), values, V, info);
    check_info(info, [](int64_t, int code) {
      CHECK(code > 0, "input tensor should not contain infs or NaNs.");
    });
    check_converged(info, "eigenvalues");
    return std::tuple(values, vectors ? V : no_matrices(A, dtype));
  },
  .saves   = saves<"eigenvalues", "eigenvectors">,
  // Boeddeker et al. 2017, "On the computation of complex-valued gradients", section 4.4:
  // V^-H (diag(gL) + (V^H gV - V^H V diag(Re V^H gV)) / conj(l_j - l_i)) V^H.
  .grads   = grads(d<"A">([](TensorList g, const Tensor& values, const Tensor& V) {
    Tensor Vh = adjoint(V);
    Tensor middle = g[0].defined() ? diagonal_matrix(g[0]) : Tensor();
    if (g[1].defined()) {
      Tensor turn = matmul(Vh, g[1]);
      check_phases(diagonal_of(skew(turn)), "linalg_eig", "eigenvectors");
      Tensor along = scale_columns(matmul(Vh, V), real_part(diagonal_of(turn)));
      middle = plus(middle, (turn - along) / conj(gaps(values)));
    }
    return call<"linalg_solve", Tensor>(Vh, matmul(middle, Vh), true);
  })),
})

OP(linalg_eig, "eig(Tensor A) -> (Tensor eigenvalues, Tensor eigenvectors)", {
  .home    = "linalg",
  .doc     = R"(Eigenvalues L and eigenvectors V of square matrices: A @ V = V @ diag(L).

Args:
    A: (*, n, n).

Returns:
    L (*, n) and V (*, n, n), complex also of real matrices. The order of L means nothing; the
    columns of V have length 1.

Raises:
    RuntimeError: if a matrix contains NaN or infinity.

A loss must not depend on the phases of the columns of V. The gradient exists where the eigenvalues
are different.

Example:
    >>> torch.linalg.eig(torch.tensor([[0.0, 1.0], [-1.0, 0.0]])).eigenvalues
    tensor([0.+1.j, 0.-1.j]))",
  .dtypes  = full_precision,
  .autocast = autocast::on_cpu(autocast::single),
  .forward = [](const Tensor& A) { return call<"eig_kernel", Pair>(A, true); },
})

OP(linalg_eigvals, "eigvals(Tensor A) -> Tensor", {
  .home    = "linalg",
  .doc     = R"(The eigenvalues of square matrices, complex, in no order: see linalg.eig.)",
  .dtypes  = full_precision,
  .autocast = autocast::on_cpu(autocast::single),
  .forward = [](const Tensor& A) {
    return std::get<0>(call<"eig_kernel", Pair>(A, is_differentiated(A)));
  },
})

}  // namespace rushlight
