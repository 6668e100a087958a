// Owns the LU factorization, what is solved by it, and triangular systems.
//
// A system with its unknown on the left is solved as the adjoint one, so the kernels know one side.
#include "core/autograd/needs.h"
#include "core/ops/linalg/linalg.h"

namespace rushlight {
namespace {

using Pair = std::tuple<Tensor, Tensor>;
using Triple = std::tuple<Tensor, Tensor, Tensor>;

void check_pivoted(const Tensor& A, bool pivot) {
  CHECK(pivot || !A.device().is_cpu(),
        "LU without pivoting is not implemented on the CPU. Pass pivot=True.");
}

void refuse_zero_pivots(const Tensor& info) {
  check_info(info, [&](int64_t i, int at) {
    CHECK(
        false, in_batch(info, i), "U[", at, ",", at,
        "] is zero and using it on lu_solve would result in a division by zero. If you still want "
        "to perform the factorization, consider calling linalg.lu(A, pivot) or "
        "linalg.lu_factor_ex(A, pivot)");
  });
}

void check_pivots(const Tensor& lu, const Tensor& pivots) {
  check_matrices(lu, "LU");
  CHECK(pivots.dtype() == DType::int32, "Expected pivots to be a tensor of int32, but got ",
        dtype_name(pivots.dtype()), ". Pass those of lu_factor.");
  CHECK(pivots.sizes() == with_vector(batch_sizes(lu), smaller_side(lu)),
        "Expected pivots of shape ", with_vector(batch_sizes(lu), smaller_side(lu)),
        " for LU of shape ", lu.sizes(), ", but got ", pivots.sizes(), ".");
}

// The permutation that row exchanges make: row i of P^T A is row result[i] of A. It is made on the
// CPU for all devices, because it is a chain of single steps whose numbers must be checked.
Tensor permutation_on_cpu(const Tensor& pivots, int64_t rows) {
  Shape sizes = pivots.sizes();
  sizes.back() = rows;
  Tensor exchanges = readable(pivots);
  int64_t k = pivots.size(-1), count = checked_numel(ShapeRef(sizes).first(sizes.size() - 1));
  Tensor result = empty(sizes, DType::int64);
  for (int64_t b = 0; b < count; ++b) {
    int64_t* order = result.data<int64_t>() + b * rows;
    const int* exchanged = exchanges.data<int>() + b * k;
    for (int64_t i = 0; i < rows; ++i) order[i] = i;
    for (int64_t i = 0; i < k; ++i) {
      CHECK(exchanged[i] >= 1 && exchanged[i] <= rows, "pivots must be between 1 and ", rows,
            ", the number of rows, but one is ", exchanged[i], ". Pass those of lu_factor.");
      std::swap(order[i], order[exchanged[i] - 1]);
    }
  }
  return result;
}

// The rows of the permutation P^T, or of P, as indices: (*, rows).
Tensor permutation(const Tensor& pivots, int64_t rows, bool inverse) {
  Tensor order = call<"_lu_permutation", Tensor>(pivots, rows);
  return inverse ? call<"argsort", Tensor>(order, int64_t(-1), false, true) : order;
}
Tensor take_rows(const Tensor& t, const Tensor& order) {
  return gather(t, -2, expand(unsqueeze(order, -1), t.sizes()));
}

Tensor unit_lower(const Tensor& lu) {
  int64_t k = smaller_side(lu), m = lu.size(-2);
  Tensor ones = call<"eye", Tensor>(m, std::optional(k), std::optional(lu.dtype()),
                                    std::optional(lu.device()));
  return tril(narrow(lu, -1, 0, k), -1) + ones;
}
Tensor upper(const Tensor& lu) { return triu(narrow(lu, -2, 0, smaller_side(lu))); }

// The gradient of the square factors of P^T A: L^-H (tril(L^H gL, -1) + triu(gU U^H)) U^-H.
Tensor square_gradient(const Tensor& gl, const Tensor& gu, const Tensor& L, const Tensor& U) {
  Tensor middle = tril(matmul(adjoint(L), gl), -1) + triu(matmul(gu, adjoint(U)));
  Tensor left = solve_triangular(adjoint(L), middle, true, true, true);
  return solve_triangular(adjoint(U), left, false, false);
}

// Of P^T A, in the compact form of m x n matrices. What lies beyond the square part is a triangular
// solution: L2 = A2 U^-1 of tall matrices, U2 = L^-1 A2 of wide ones.
Tensor lu_gradient(const Tensor& g, const Tensor& lu) {
  int64_t m = lu.size(-2), n = lu.size(-1), k = std::min(m, n);
  auto square = [k](const Tensor& t) { return narrow(narrow(t, -2, 0, k), -1, 0, k); };
  Tensor L = unit_lower(square(lu)), U = triu(square(lu));
  Tensor gl = tril(square(g), -1), gu = triu(square(g));
  if (m == n) return square_gradient(gl, gu, L, U);
  if (m > n) {
    Tensor L2 = narrow(lu, -2, k, m - k);
    Tensor below = solve_triangular(adjoint(U), narrow(g, -2, k, m - k), false, false);
    gu = gu - triu(matmul(adjoint(L2), below));
    const Tensor parts[] = {square_gradient(gl, gu, L, U), below};
    return cat(parts, -2);
  }
  Tensor U2 = narrow(lu, -1, k, n - k);
  Tensor right = solve_triangular(adjoint(L), narrow(g, -1, k, n - k), true, true, true);
  gl = gl - tril(matmul(right, adjoint(U2)), -1);
  const Tensor parts[] = {square_gradient(gl, gu, L, U), right};
  return cat(parts, -1);
}

}  // namespace

OP(_lu_permutation, "(Tensor pivots, int rows) -> Tensor", {
  .home    = "core",
  .doc     = R"(Which rows of A the rows of L @ U are, from the pivots of an LU factorization.)",
  .batch   = by_last_dims,
  .forward = [](const Tensor& pivots, int64_t rows) {
    if (!pivots.device().is_meta())
      return needs::to_device(permutation_on_cpu(pivots, rows), pivots.device());
    Shape sizes = pivots.sizes();
    sizes.back() = rows;
    return empty(sizes, DType::int64, pivots.device());
  },
})

OP(linalg_lu_factor_ex,
   "lu_factor_ex(Tensor A, *, bool pivot=True, bool check_errors=False) -> (Tensor LU, "
   "Tensor pivots, Tensor info)", {
  .home    = "linalg",
  .doc     = R"(The LU factorization as linalg.lu_factor, and instead of an error a number.

info is 0 where U has no zero on its diagonal, else i for the first one, U[i - 1, i - 1].)",
  .dtypes  = full_precision,
  .batch   = by_matrices,
  .forward = [](const Tensor& A, bool pivot, bool check_errors) {
    check_matrices(A, "A");
    check_pivoted(A, pivot);
    Tensor LU = column_major_copy(A), info = empty(batch_sizes(A), DType::int32, A.device());
    Shape sizes = with_vector(batch_sizes(A), smaller_side(A));
    Tensor pivots = empty(sizes, DType::int32, A.device());
    run_kernel(A, lu_cpu, lu_cuda, LU, pivot ? pivots : Tensor(), info);
    if (!pivot) copy_into(pivots, expand(no_exchanges(pivots), sizes));
    if (check_errors) refuse_zero_pivots(info);
    return std::tuple(LU, pivots, info);
  },
  .saves   = saves<"LU", "pivots">,
  .grads   = grads(d<"A">([](TensorList g, const Tensor& LU, const Tensor& pivots) {
    return take_rows(lu_gradient(g[0], LU), permutation(pivots, LU.size(-2), true));
  })),
})

OP(linalg_lu_factor, "lu_factor(Tensor A, *, bool pivot=True) -> (Tensor LU, Tensor pivots)", {
  .home    = "linalg",
  .doc     = R"(A compact LU factorization with row exchanges, for linalg.lu_solve.

Args:
    A: (*, m, n).

Returns:
    LU, (*, m, n): U, and below its diagonal L without its diagonal of ones. pivots, (*, min(m, n)),
    int32: row i was exchanged with row pivots[i] - 1.

Raises:
    RuntimeError: if U has a zero on its diagonal.)",
  .dtypes  = full_precision,
  .forward = [](const Tensor& A, bool pivot) {
    auto [LU, pivots, info] = call<"linalg_lu_factor_ex", Triple>(A, pivot, false);
    refuse_zero_pivots(info);
    return std::tuple(LU, pivots);
  },
})

OP(linalg_lu, "lu(Tensor A, *, bool pivot=True) -> (Tensor P, Tensor L, Tensor U)", {
  .home    = "linalg",
  .doc     = R"(The permutation P, lower L and upper triangular U with A = P @ L @ U.

Args:
    A: (*, m, n).

Returns:
    P (*, m, m), L (*, m, k) with ones on its diagonal, U (*, k, n), where k = min(m, n).

pivot=False exists on CUDA only: A = L @ U, P is empty, and rounding errors may be large.)",
  .dtypes  = full_precision,
  .forward = [](const Tensor& A, bool pivot) {
    auto [LU, pivots, info] = call<"linalg_lu_factor_ex", Triple>(A, pivot, false);
    return call<"lu_unpack", Triple>(LU, pivots, true, pivot);
  },
})

OP(lu_unpack,
   "(Tensor LU_data, Tensor LU_pivots, bool unpack_data=True, bool unpack_pivots=True) -> "
   "(Tensor P, Tensor L, Tensor U)", {
  .doc     = R"(P, L and U from the compact factorization of linalg.lu_factor.

What is not unpacked is a tensor without elements.)",
  .forward = [](const Tensor& LU_data, const Tensor& LU_pivots, bool unpack_data,
                bool unpack_pivots) {
    check_pivots(LU_data, LU_pivots);
    Tensor P = empty(Shape{0}, LU_data.dtype(), LU_data.device()), L = P, U = P;
    if (unpack_pivots) {
      Tensor order = permutation(LU_pivots, LU_data.size(-2), true);
      Tensor columns = call<"arange", Tensor>(Scalar(order.size(-1)), std::optional(DType::int64),
                                              std::optional(order.device()));
      P = cast(unsqueeze(order, -1) == columns, LU_data.dtype());
    }
    if (unpack_data) {
      L = unit_lower(LU_data);
      U = upper(LU_data);
    }
    return std::tuple(P, L, U);
  },
})

OP(lu_solve_kernel, "_lu_solve(Tensor LU, Tensor pivots, Tensor B, bool adjoint) -> Tensor", {
  .home    = "core",
  .doc     = R"(linalg.lu_solve of tensors of one batch shape, with the unknown on the right.)",
  .dtypes  = full_precision,
  .batch   = by_matrices,
  .forward = [](const Tensor& LU, const Tensor& pivots, const Tensor& B, bool adjoint) {
    Tensor X = column_major_copy(B);
    Tensor factors = turned(LU).is_contiguous() ? LU : column_major_copy(LU);
    run_kernel(LU, lu_solve_cpu, lu_solve_cuda, factors, to_contiguous(pivots), X,
               adjoint ? 'C' : 'N');
    return X;
  },
  .saves   = saves<"LU", "pivots", "result">,
  .grads   = grads(
    // With X = U^-1 L^-1 P^T B: V = U^-H g, gU = -V X^H, and with W = L^-H V: gL = -W (U X)^H,
    // gB = P W. Of the adjoint, with Y = L^H P^T X and V = L^-1 P^T g: gL = -P^T X V^H,
    // gB = U^-1 V, gU = -Y gB^H.
    d<"LU">([](const Tensor& g, const Tensor& LU, const Tensor& pivots, const Tensor& X,
               bool adjoint) {
      Tensor L = unit_lower(LU), U = triu(LU);
      auto turn = [](const Tensor& t) { return rushlight::adjoint(t); };
      if (!adjoint) {
        Tensor V = solve_triangular(turn(U), g, false);
        Tensor W = solve_triangular(turn(L), V, true, true, true);
        return -(tril(matmul(W, turn(matmul(U, X))), -1) + triu(matmul(V, turn(X))));
      }
      Tensor order = permutation(pivots, LU.size(-1), false);
      Tensor Z = take_rows(X, order);
      Tensor V = solve_triangular(L, take_rows(g, order), false, true, true);
      Tensor gb = solve_triangular(U, V, true);
      return -(tril(matmul(Z, turn(V)), -1) + triu(matmul(matmul(turn(L), Z), turn(gb))));
    }),
    no_grad<"pivots">,
    d<"B">(uses<"LU", "pivots">, [](const Tensor& g, const Tensor& LU, const Tensor& pivots,
                                    bool adjoint) {
      return call<"lu_solve_kernel", Tensor>(LU, pivots, g, !adjoint);
    })),
})

OP(linalg_lu_solve,
   "lu_solve(Tensor LU, Tensor pivots, Tensor B, *, bool left=True, bool adjoint=False) "
   "-> Tensor", {
  .home    = "linalg",
  .doc     = R"(The solution X of A @ X = B by what linalg.lu_factor says of A.

With left=False it solves X @ A = B; with adjoint=True, A.mH is in the place of A.

Args:
    LU: (*, n, n).
    pivots: (*, n), int32.
    B: (*, n, k), or with left=False (*, k, n).)",
  .dtypes  = full_precision,
  .forward = [](const Tensor& LU, const Tensor& pivots, const Tensor& B, bool left, bool adjoint) {
    check_square(LU, "LU");
    check_pivots(LU, pivots);
    check_matrices(B, "B");
    check_alike(LU, "LU", B, "B");
    Tensor sides = left ? B : rushlight::adjoint(B);
    int64_t n = LU.size(-1);
    CHECK(sides.size(-2) == n, "Incompatible shapes of A and B for the equation ",
          left ? "AX = B" : "XA = B", " (", n, "x", n, " and ", B.size(-2), "x", B.size(-1), ")");
    if (has_values(pivots))
      permutation_on_cpu(bottom(pivots), n);  // refuses what are no pivots
    Shape batch = broadcast_shapes(batch_sizes(LU), batch_sizes(sides));
    Tensor X = call<"lu_solve_kernel", Tensor>(expand(LU, with_matrix(batch, n, n)),
                                               expand(pivots, with_vector(batch, n)),
                                               expand(sides, with_matrix(batch, n, sides.size(-1))),
                                               left == adjoint);
    return left ? X : rushlight::adjoint(X);
  },
})

OP(lu_solve, "(Tensor input, Tensor LU_data, Tensor LU_pivots) -> Tensor", {
  .doc     = R"(The solution X of A @ X = input by the LU factors of A: see linalg.lu_solve.)",
  .dtypes  = full_precision,
  .autocast = autocast::on_cpu(autocast::single),
  .forward = [](const Tensor& input, const Tensor& LU_data, const Tensor& LU_pivots) {
    return call<"linalg_lu_solve", Tensor>(LU_data, LU_pivots, input, true, false);
  },
})

OP(solve_triangular_kernel,
   "_solve_triangular(Tensor A, Tensor B, bool upper, bool unitriangular) -> Tensor", {
  .home    = "core",
  .doc     = R"(linalg.solve_triangular of tensors of one batch shape, the unknown on the right.)",
  .dtypes  = full_precision,
  .batch   = by_matrices,
  .forward = [](const Tensor& A, const Tensor& B, bool upper, bool unitriangular) {
    Tensor X = column_major_copy(B);
    run_kernel(A, solve_triangular_cpu, solve_triangular_cuda, A, X, upper, unitriangular);
    return X;
  },
  .saves   = saves<"A", "result">,
  // gB = A^-H g and gA = -gB X^H in its triangle: Giles 2008, section 2.3.1.
  .grads   = grads(d<"A", "B">([](const Tensor& g, const Tensor& A, const Tensor& X, bool upper,
                                  bool unitriangular, GradMask<2> wants) {
    Tensor gb = call<"solve_triangular_kernel", Tensor>(adjoint(A), g, !upper, unitriangular);
    Tensor ga;
    if (wants[0]) {
      ga = -matmul(gb, adjoint(X));
      ga = upper ? triu(ga, unitriangular) : tril(ga, -int64_t(unitriangular));
    }
    return std::tuple(ga, gb);
  })),
})

OP(linalg_solve_triangular,
   "solve_triangular(Tensor A, Tensor B, *, bool upper, bool left=True, "
   "bool unitriangular=False) -> Tensor", {
  .home    = "linalg",
  .doc     = R"(The solution X of A @ X = B for triangular A, or with left=False of X @ A = B.

Args:
    A: (*, n, n), of which only the triangle is read, and with unitriangular=True not its diagonal,
        which counts as ones.
    B: (*, n, k), or with left=False (*, k, n).

Example:
    >>> A = torch.tensor([[2.0, 1.0], [0.0, 4.0]])
    >>> torch.linalg.solve_triangular(A, torch.tensor([[4.0], [8.0]]), upper=True)
    tensor([[1.],
            [2.]]))",
  .dtypes  = full_precision,
  .autocast = autocast::on_cpu(autocast::single),
  .forward = [](const Tensor& A, const Tensor& B, bool upper, bool left, bool unitriangular) {
    check_square(A, "A");
    check_matrices(B, "B");
    check_alike(A, "A", B, "B");
    Tensor matrices = left ? A : turned(A), sides = left ? B : turned(B);
    int64_t n = A.size(-1);
    CHECK(sides.size(-2) == n, "Incompatible shapes of A and B for the equation ",
          left ? "AX = B" : "XA = B", " (", n, "x", n, " and ", B.size(-2), "x", B.size(-1), ")");
    Shape batch = broadcast_shapes(batch_sizes(A), batch_sizes(B));
    Tensor X = call<"solve_triangular_kernel", Tensor>(
        expand(matrices, with_matrix(batch, n, n)),
        expand(sides, with_matrix(batch, n, sides.size(-1))), upper == left, unitriangular);
    return left ? X : turned(X);
  },
})

OP(triangular_solve,
   "(Tensor input, Tensor A, bool upper=True, bool transpose=False, bool unitriangular=False) -> "
   "(Tensor solution, Tensor cloned_coefficient)", {
  .doc     = R"(The solution X of A @ X = input for triangular A, and a copy of A.

See linalg.solve_triangular, which has the arguments in the other order.)",
  .dtypes  = full_precision,
  .autocast = autocast::on_cpu(autocast::single),
  .forward = [](const Tensor& input, const Tensor& A, bool upper, bool transpose,
                bool unitriangular) {
    Tensor solution = solve_triangular(transpose ? turned(A) : A, input, upper != transpose, true,
                                       unitriangular);
    return std::tuple(solution, clone(A));
  },
})

}  // namespace rushlight
