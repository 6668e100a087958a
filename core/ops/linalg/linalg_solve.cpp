// Owns linear systems, inverses and determinants, which come from one LU factorization.
#include "core/ops/linalg/linalg.h"

#include <cmath>
#include <numeric>

namespace rushlight {
namespace {

using Pair = std::tuple<Tensor, Tensor>;
using Triple = std::tuple<Tensor, Tensor, Tensor>;
using Solved = std::tuple<Tensor, Tensor, Tensor, Tensor>;

void refuse_singular_solve(const Tensor& info) {
  check_info(info, [&](int64_t i, int) {
    CHECK(false, ErrorKind::kLinAlg, in_batch(info, i),
          "The solver failed because the input matrix is singular.");
  });
}
void refuse_singular_inverse(const Tensor& info) {
  check_info(info, [&](int64_t i, int zero) {
    CHECK(false, ErrorKind::kLinAlg, in_batch(info, i), "The diagonal element ", zero,
          " is zero, the inversion could not be completed because the input matrix is singular.");
  });
}

struct Factored {
  Tensor LU, pivots, info;
};
Factored factor(const Tensor& A) {
  Factored f{column_major_copy(A),
             empty(with_vector(batch_sizes(A), A.size(-1)), DType::int32, A.device()),
             empty(batch_sizes(A), DType::int32, A.device())};
  run_kernel(A, lu_cpu, lu_cuda, f.LU, f.pivots, f.info);
  return f;
}

// The multiple c of each identity, (*, n, n).
Tensor scaled_identity(const Tensor& c, const Tensor& like) {
  int64_t n = like.size(-1);
  return unsqueeze(unsqueeze(c, -1), -1) * eye_like(like, n);
}
// c A^-H for each matrix: from its LU factors, or by an op that can be differentiated.
Tensor scaled_inverse(const Tensor& c, const Tensor& A, const Tensor& LU, const Tensor& pivots) {
  Tensor sides = scaled_identity(c, A);
  if (!gradients_as_ops()) return lu_solve(LU, pivots, sides, true);
  return call<"linalg_solve", Tensor>(adjoint(A), sides, true);
}

bool any_zero(const Tensor& t) { return has_values(t) && !all_true(t != 0); }

// What takes the zeros from the diagonal of U, as small as `step` of its elements: (*, n).
Tensor shift_of(const Tensor& LU, double step) {
  GradModeGuard unrecorded(false);
  Tensor U = triu(LU);
  Tensor scale = call<"amax", Tensor>(abs(U), std::optional<ShapeRef>(Shape{-2, -1}), false);
  scale = unsqueeze(select(scale == 0, 1.0, scale), -1);
  return cast((diagonal_of(U) == 0) * scale * step, LU.dtype());
}

// conj(det A) A^-H g near A where that is singular, which is near it: the gradient of a determinant
// is a polynomial of the elements of A. `g` is that of each determinant.
Tensor singular_gradient(const Tensor& g, const Tensor& A, const Tensor& LU, const Tensor& pivots) {
  if (!gradients_as_ops()) {
    double step = rounding_error(A.dtype());
    Tensor moved = column_major_copy(LU + diagonal_matrix(shift_of(LU, step)));
    Tensor det = empty(g.sizes(), A.dtype(), A.device());
    run_kernel(A, det_cpu, det_cuda, moved, pivots, det);
    return scaled_inverse(g * conj(det), A, moved, pivots);
  }
  // Its own gradient holds differences of terms of 1 / step.
  double step = std::sqrt(rounding_error(A.dtype()));
  Tensor change;
  {
    GradModeGuard unrecorded(false);
    auto [P, L, U] = call<"lu_unpack", Triple>(LU, pivots, true, true);
    change = matmul(P, scale_columns(L, shift_of(LU, step)));
  }
  Tensor moved = A + change;
  auto [det, moved_LU, moved_pivots] = call<"det_kernel", Triple>(moved);
  return scaled_inverse(g * conj(det), moved, moved_LU, moved_pivots);
}

std::tuple<Tensor, Tensor> slogdet_of(const Tensor& A) {
  auto [sign, logabsdet, LU, pivots] = call<"slogdet_kernel", Solved>(A);
  return {sign, logabsdet};
}

}  // namespace

OP(solve_kernel, "_solve(Tensor A, Tensor B) -> (Tensor result, Tensor LU, Tensor pivots, "
                 "Tensor info)", {
  .home    = "core",
  .doc     = R"(A^-1 B for tensors of one batch shape, with the factors of A.)",
  .dtypes  = full_precision,
  .batch   = by_matrices,
  .forward = [](const Tensor& A, const Tensor& B) {
    Factored f = factor(A);
    Tensor X = column_major_copy(B);
    run_kernel(A, lu_solve_cpu, lu_solve_cuda, f.LU, f.pivots, X, 'N');
    return std::tuple(X, f.LU, f.pivots, f.info);
  },
  .saves   = saves<"A", "result", "LU", "pivots">,
  // gB = A^-H g and gA = -gB X^H: Giles 2008, section 2.3.1.
  .grads   = grads(d<"A", "B">([](TensorList g, const Tensor& A, const Tensor& X, const Tensor& LU,
                                  const Tensor& pivots, GradMask<2> wants) {
    Tensor gb = gradients_as_ops() ? call<"linalg_solve", Tensor>(adjoint(A), g[0], true)
                                  : lu_solve(LU, pivots, g[0], true);
    return std::tuple(wants[0] ? -matmul(gb, adjoint(X)) : Tensor(), gb);
  })),
})

OP(linalg_solve_ex,
   "solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False) -> (Tensor result, "
   "Tensor info)", {
  .home    = "linalg",
  .doc     = R"(The solution as linalg.solve, and instead of an error a number.

info is 0 where A is invertible, else i for the first zero U[i - 1, i - 1] of its LU
factorization.)",
  .dtypes  = full_precision,
  .forward = [](const Tensor& A, const Tensor& B, bool left, bool check_errors) {
    check_square(A, "A");
    check_alike(A, "A", B, "B");
    CHECK(B.dim() > 0, "B must have at least one dim, but is 0-d.");
    bool is_vector = are_vectors(A, B);
    CHECK(left || !is_vector, "Vector broadcasting of the left hand side is not supported for "
                              "left=False. In this case linalg.solve is equivalent to B / "
                              "A.squeeze(-1)");
    Tensor matrices = left ? A : turned(A);
    Tensor sides = is_vector ? unsqueeze(B, -1) : left ? B : turned(B);
    int64_t n = A.size(-1);
    CHECK(sides.size(-2) == n, "Incompatible shapes of A and B for the equation ",
          left ? "AX = B" : "XA = B", " (", n, "x", n, " and ", sides.size(left ? -2 : -1), "x",
          sides.size(left ? -1 : -2), ")");
    Shape batch = broadcast_shapes(batch_sizes(A), batch_sizes(sides));
    auto [X, LU, pivots, info] = call<"solve_kernel", Solved>(
        expand(matrices, with_matrix(batch, n, n)),
        expand(sides, with_matrix(batch, n, sides.size(-1))));
    if (check_errors) refuse_singular_solve(info);
    return std::tuple(is_vector ? squeeze(X, -1) : left ? X : turned(X), info);
  },
})

OP(linalg_solve, "solve(Tensor A, Tensor B, *, bool left=True) -> Tensor", {
  .home    = "linalg",
  .doc     = R"(The solution X of A @ X = B, or with left=False of X @ A = B.

Args:
    A: (*, n, n), invertible.
    B: (*, n, k), or (*, n) or (n,): vectors; with left=False (*, k, n).

Returns:
    The shape of B, with the batch dims broadcast.

Raises:
    LinAlgError: if a matrix is singular.

Example:
    >>> A = torch.tensor([[3.0, 1.0], [1.0, 2.0]])
    >>> torch.linalg.solve(A, torch.tensor([9.0, 8.0]))
    tensor([2., 3.]))",
  .dtypes  = full_precision,
  .autocast = autocast::on_cpu(autocast::single),
  .forward = [](const Tensor& A, const Tensor& B, bool left) {
    auto [X, info] = call<"linalg_solve_ex", Pair>(A, B, left, false);
    refuse_singular_solve(info);
    return X;
  },
})

OP(linalg_inv_ex, "inv_ex(Tensor A, *, bool check_errors=False) -> (Tensor inverse, Tensor info)", {
  .home    = "linalg",
  .doc     = R"(The inverse as linalg.inv, and instead of an error a number.

info is 0 where A is invertible, else i for the first zero U[i - 1, i - 1] of its LU
factorization.)",
  .dtypes  = full_precision,
  .node    = "linalg_inv_ex",
  .autocast = autocast::on_cpu(autocast::single),
  .batch   = by_matrices,
  .forward = [](const Tensor& A, bool check_errors) {
    check_square(A, "A");
    Factored f = factor(A);
    Tensor inverse = column_major(A.sizes(), A.dtype(), A.device());
    run_kernel(A, identity_cpu, identity_cuda, inverse);
    run_kernel(A, lu_solve_cpu, lu_solve_cuda, f.LU, f.pivots, inverse, 'N');
    if (check_errors) refuse_singular_inverse(f.info);
    return std::tuple(inverse, f.info);
  },
  .saves   = saves<"inverse">,
  // -A^-H g A^-H: Giles 2008, section 2.2.3.
  .grads   = grads(d<"A">([](TensorList g, const Tensor& inverse) {
    Tensor turned = adjoint(inverse);
    return -matmul(matmul(turned, g[0]), turned);
  })),
})

OP(linalg_inv, "inv(Tensor A) -> Tensor", {
  .home    = "linalg",
  .doc     = R"(The inverses of square matrices, (*, n, n).

linalg.solve(A, B) is faster and more exact than linalg.inv(A) @ B.

Raises:
    LinAlgError: if a matrix is singular.

Example:
    >>> torch.linalg.inv(torch.tensor([[2.0, 0.0], [0.0, 4.0]]))
    tensor([[0.5000, 0.0000],
            [0.0000, 0.2500]]))",
  .dtypes  = full_precision,
  .autocast = autocast::on_cpu(autocast::single),
  .forward = [](const Tensor& A) {
    auto [inverse, info] = call<"linalg_inv_ex", Pair>(A, false);
    refuse_singular_inverse(info);
    return inverse;
  },
})

OP(inverse, "(Tensor input) -> Tensor", {
  .doc     = R"(The inverses of square matrices: see linalg.inv.)",
  .dtypes  = full_precision,
  .autocast = autocast::on_cpu(autocast::single),
  .forward = [](const Tensor& input) { return call<"linalg_inv", Tensor>(input); },
})

OP(linalg_tensorinv, "tensorinv(Tensor A, int ind=2) -> Tensor", {
  .home    = "linalg",
  .doc     = R"(The inverse of A as a map from its dims from `ind` on to those before.

Args:
    A: its first `ind` sizes have the product of the others.

Returns:
    The sizes of A from `ind` on, then those before.)",
  .dtypes  = full_precision,
  .autocast = autocast::on_cpu(autocast::single),
  .forward = [](const Tensor& A, int64_t ind) {
    CHECK(ind > 0, "Expected a strictly positive integer for 'ind', but got ", ind, ".");
    ShapeRef sizes(A.sizes());
    size_t split = size_t(std::min(ind, A.dim()));
    ShapeRef rows = sizes.first(split), columns = sizes.subspan(split);
    int64_t n = checked_numel(rows), m = checked_numel(columns);
    CHECK(n == m, "Expected self to satisfy the requirement prod(self.shape[ind:]) == "
                  "prod(self.shape[:ind]), but got ",
          m, " != ", n);
    Shape result(columns);
    for (int64_t size : rows) result.push_back(size);
    return reshape(call<"linalg_inv", Tensor>(reshape(A, Shape{n, n})), result);
  },
})

OP(linalg_tensorsolve, "tensorsolve(Tensor A, Tensor B, int[]? dims=None) -> Tensor", {
  .home    = "linalg",
  .doc     = R"(The solution X of tensordot(A, X, X.dim()) = B.

Args:
    A: the sizes of B, then those of X, which have the same product.
    dims: dims of A that are moved to the end first.)",
  .dtypes  = full_precision,
  .autocast = autocast::on_cpu(autocast::single),
  .forward = [](const Tensor& A, const Tensor& B, std::optional<ShapeRef> dims) {
    Tensor moved = A;
    if (dims) {
      Shape to(dims->size());
      std::iota(to.begin(), to.end(), -int64_t(dims->size()));
      moved = call<"movedim", Tensor>(A, *dims, ShapeRef(to));
    }
    CHECK(B.dim() <= moved.dim(), "B of shape ", B.sizes(), " has more dims than A of shape ",
          A.sizes(), ".");
    ShapeRef unknown = ShapeRef(moved.sizes()).subspan(B.sizes().size());
    int64_t n = checked_numel(unknown);
    CHECK(n == B.numel() && moved.numel() == n * n,
          "Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == "
          "prod(self.shape[:other.ndim]), but got ",
          n, " != ", moved.numel() / std::max<int64_t>(n, 1), " for A of shape ", A.sizes(),
          " and B of shape ", B.sizes());
    Tensor matrix = reshape(moved, Shape{n, n});
    return reshape(call<"linalg_solve", Tensor>(matrix, reshape(B, Shape{n}), true), unknown);
  },
})

OP(det_kernel, "_det(Tensor A) -> (Tensor result, Tensor LU, Tensor pivots)", {
  .home    = "core",
  .doc     = R"(Determinants, and the factors that they come from.)",
  .dtypes  = full_precision,
  .node    = "linalg_det",
  .batch   = by_matrices,
  .forward = [](const Tensor& A) {
    check_square(A, "A");
    Factored f = factor(A);
    Tensor result = empty(batch_sizes(A), A.dtype(), A.device());
    run_kernel(A, det_cpu, det_cuda, f.LU, f.pivots, result);
    return std::tuple(result, f.LU, f.pivots);
  },
  .saves   = saves<"A", "result", "LU", "pivots">,
  // conj(det A) A^-H g: Giles 2008, section 2.2.4.
  .grads   = grads(d<"A">([](TensorList g, const Tensor& A, const Tensor& det, const Tensor& LU,
                             const Tensor& pivots) {
    if (any_zero(det)) return singular_gradient(g[0], A, LU, pivots);
    return scaled_inverse(g[0] * conj(det), A, LU, pivots);
  })),
})

OP(linalg_det, "det(Tensor A) -> Tensor", {
  .home    = "linalg",
  .doc     = R"(The determinants of square matrices: (*, n, n) gives (*).

Example:
    >>> torch.linalg.det(torch.tensor([[4.0, 2.0], [2.0, 3.0]]))
    tensor(8.))",
  .dtypes  = full_precision,
  .forward = [](const Tensor& A) { return std::get<0>(call<"det_kernel", Triple>(A)); },
})

OP(det, "(Tensor input) -> Tensor", {
  .doc     = R"(The determinants of square matrices: see linalg.det.)",
  .dtypes  = full_precision,
  .forward = [](const Tensor& input) { return std::get<0>(call<"det_kernel", Triple>(input)); },
})

OP(slogdet_kernel,
   "_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet, Tensor LU, Tensor pivots)", {
  .home    = "core",
  .doc     = R"(linalg.slogdet, and the factors that it comes from.)",
  .dtypes  = full_precision,
  .batch   = by_matrices,
  .forward = [](const Tensor& A) {
    check_square(A, "A");
    Factored f = factor(A);
    Tensor sign = empty(batch_sizes(A), A.dtype(), A.device());
    Tensor logabsdet = empty(batch_sizes(A), real_dtype(A.dtype()), A.device());
    run_kernel(A, slogdet_cpu, slogdet_cuda, f.LU, f.pivots, sign, logabsdet);
    return std::tuple(sign, logabsdet, f.LU, f.pivots);
  },
  .saves   = saves<"A", "sign", "LU", "pivots">,
  // With w = tr(A^-1 dA): d logabsdet = Re w and d sign = sign * i Im w, so gA = c A^-H with
  // c = g_logabsdet - i Im(conj(g_sign) sign).
  .grads   = grads(d<"A">([](TensorList g, const Tensor& A, const Tensor& sign, const Tensor& LU,
                             const Tensor& pivots) {
    Tensor c = g[1];
    if (is_complex(A.dtype()) && g[0].defined()) {
      Tensor turn = call<"imag", Tensor>(conj(g[0]) * sign);
      c = plus(c, turn * Scalar(std::complex<double>(0, -1)));
    }
    if (!c.defined()) return zeros_like(A);
    return scaled_inverse(cast(c, A.dtype()), A, LU, pivots);
  })),
})

OP(linalg_slogdet, "slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet)", {
  .home    = "linalg",
  .doc     = R"(The signs of determinants, and the logarithms of their magnitudes.

det(A) = sign * exp(logabsdet), where the determinant itself might overflow. The sign of a complex
determinant has magnitude 1; a singular matrix has sign 0 and logarithm -inf.)",
  .dtypes  = full_precision,
  .forward = [](const Tensor& A) { return slogdet_of(A); },
})

OP(slogdet, "(Tensor input) -> (Tensor sign, Tensor logabsdet)", {
  .doc     = R"(The signs and logarithms of determinants: see linalg.slogdet.)",
  .dtypes  = full_precision,
  .forward = [](const Tensor& input) { return slogdet_of(input); },
})

OP(logdet, "(Tensor input) -> Tensor", {
  .doc     = R"(The logarithms of determinants; NaN of a negative one, -inf of zero.)",
  .dtypes  = full_precision,
  .forward = [](const Tensor& input) {
    auto [sign, logabsdet] = slogdet_of(input);
    if (is_complex(input.dtype())) return log(sign) + logabsdet;
    return select(sign == -1, std::nan(""), logabsdet);
  },
})

}  // namespace rushlight
