// Owns the singular value decomposition, and the ranks and pseudoinverses that it gives.
#include "core/ops/linalg/linalg.h"

namespace rushlight {
namespace {

using Triple = std::tuple<Tensor, Tensor, Tensor>;
using Pair = std::tuple<Tensor, Tensor>;

// Whether a driver is the QR iterations of CUDA and not Jacobi's method.
bool is_qr(const Tensor& A, std::optional<std::string_view> driver) {
  if (!driver) return false;
  CHECK(A.device().is_cuda(),
        "keyword argument `driver=` is only supported on CUDA inputs with cuSOLVER "
        "backend.");
  CHECK(*driver == "gesvd" || *driver == "gesvdj", ErrorKind::kNotImplemented, "driver '", *driver,
        "' is not implemented. Pass 'gesvdj', 'gesvd' or None.");
  return *driver == "gesvd";
}

Triple svd_of(const Tensor& A, bool full_matrices, bool compute_uv, bool by_qr = false) {
  return call<"svd_kernel", Triple>(A, full_matrices, compute_uv, by_qr);
}
// The singular vectors are needed for the gradient, too.
Tensor svdvals_of(const Tensor& A, bool by_qr = false) {
  return std::get<1>(svd_of(A, false, is_differentiated(A), by_qr));
}

// Townsend 2016, "Differentiating the singular value decomposition", made complex as in Wan and
// Zhang 2019. With F_ij = 1 / (s_j^2 - s_i^2):
// gA = U (skew(U^H gU) F S + S skew(V^H gV) F + gS) V^H, plus what of gU and gV leaves the spaces
// that U and V span.
Tensor svd_gradient(TensorList g, Tensor U, const Tensor& S, Tensor Vh) {
  int64_t k = S.size(-1);
  Tensor gu = g[0].defined() ? narrow(g[0], -1, 0, k) : Tensor();
  Tensor gvh = g[2].defined() ? narrow(g[2], -2, 0, k) : Tensor();
  U = narrow(U, -1, 0, k);
  Vh = narrow(Vh, -2, 0, k);
  if (!gu.defined() && !gvh.defined())
    return g[1].defined() ? matmul(scale_columns(U, g[1]), Vh)
                          : matmul(scale_columns(U, S * 0), Vh);

  Tensor squares = S * S;
  Tensor gaps = unsqueeze(squares, -2) - unsqueeze(squares, -1) + eye_like(S, k);
  Tensor middle = g[1].defined() ? diagonal_matrix(g[1]) : Tensor();
  Tensor phases;
  if (gu.defined()) {
    Tensor turn = skew(matmul(adjoint(U), gu));
    phases = diagonal_of(turn);
    middle = plus(middle, scale_columns(turn / gaps, S));
    if (is_complex(U.dtype())) middle = middle + diagonal_matrix(phases * 0.5 / S);
  }
  if (gvh.defined()) {
    Tensor turn = skew(matmul(Vh, adjoint(gvh)));
    phases = plus(phases, diagonal_of(turn));
    middle = plus(middle, scale_rows(turn / gaps, S));
  }
  check_phases(phases, "svd", "singular vectors");

  Tensor left = matmul(U, middle);
  if (gu.defined() && U.size(-2) > k)
    left = left + scale_columns(gu - matmul(U, matmul(adjoint(U), gu)), reciprocal(S));
  Tensor grad = matmul(left, Vh);
  if (gvh.defined() && Vh.size(-1) > k) {
    Tensor beyond = gvh - matmul(matmul(gvh, adjoint(Vh)), Vh);
    grad = grad + matmul(scale_columns(U, reciprocal(S)), beyond);
  }
  return grad;
}

// What counts as zero among singular values S, (*, k): max(atol, rtol * largest), as (*, 1).
// Without both, rtol is the larger side of A times the rounding error; with atol alone it is 0.
Tensor threshold(const Tensor& A, const Tensor& S, const Tensor& atol, const Tensor& rtol) {
  for (const Tensor* tolerance : {&atol, &rtol}) {
    CHECK(!tolerance->defined() || !is_complex(tolerance->dtype()),
          "tolerances must be real, but one is ",
          tolerance->defined() ? dtype_name(tolerance->dtype()) : "", ".");
  }
  double usual = rounding_error(A.dtype()) * double(std::max(A.size(-2), A.size(-1)));
  Tensor relative = rtol;
  if (!rtol.defined())
    relative =
        atol.defined() ? select(atol > 0, 0.0, ones_like(atol) * usual) : wrapped_number(usual);
  Tensor largest = call<"amax", Tensor>(S, std::optional<ShapeRef>(Shape{-1}), true);
  auto as_column = [](const Tensor& t) { return t.dim() == 0 ? t : unsqueeze(t, -1); };
  Tensor bound = as_column(relative) * largest;
  return atol.defined() ? maximum(as_column(atol), bound) : bound;
}

// Eigenvalues of Hermitian matrices with their vectors, or singular values with theirs: A is
// left diag(values) right^H.
struct Decomposed {
  Tensor left, values, right;
};
Decomposed decompose(const Tensor& A, bool hermitian) {
  if (!hermitian) {
    auto [U, S, Vh] = svd_of(A, false, true);
    return {U, S, adjoint(Vh)};
  }
  auto [values, vectors] = call<"linalg_eigh", Pair>(A, std::string_view("L"));
  return {vectors, values, vectors};
}

Tensor pinv_of(const Tensor& A, const Tensor& atol, const Tensor& rtol, bool hermitian) {
  check_matrices(A, "A");
  return call<"pinv_kernel", Tensor>(A, atol, rtol, hermitian);
}

Tensor rank_of(const Tensor& A, const Tensor& atol, const Tensor& rtol, bool hermitian) {
  check_matrices(A, "A");
  if (hermitian) check_square(A, "A");
  GradModeGuard unrecorded(false);
  if (smaller_side(A) == 0) return zeros(batch_sizes(A), DType::int64, A.device());
  Tensor S =
      hermitian ? abs(call<"linalg_eigvalsh", Tensor>(A, std::string_view("L"))) : svdvals_of(A);
  Tensor bound = threshold(A, S, atol, rtol);
  return sum(S > bound, Shape{-1});
}

}  // namespace

OP(svd_kernel,
   "_svd(Tensor A, bool full_matrices, bool compute_uv, bool by_qr) -> (Tensor U, Tensor S, "
   "Tensor Vh)", {
  .home    = "core",
  .doc     = R"(linalg.svd; without compute_uv U and Vh have no elements.

On CUDA it is Jacobi's method, and QR iterations with by_qr or if that does not converge.)",
  .dtypes  = full_precision,
  .node    = "linalg_svd",
  .batch   = by_matrices,
  .forward = [](const Tensor& A, bool full_matrices, bool compute_uv, bool by_qr) {
    check_matrices(A, "A");
    int64_t m = A.size(-2), n = A.size(-1), k = std::min(m, n);
    Shape batch = batch_sizes(A);
    Tensor S = empty(with_vector(batch, k), real_dtype(A.dtype()), A.device());
    Tensor info = empty(batch, DType::int32, A.device()), U, Vh;
    if (compute_uv) {
      U = column_major(with_matrix(batch, m, full_matrices ? m : k), A.dtype(), A.device());
      Vh = column_major(with_matrix(batch, full_matrices ? n : k, n), A.dtype(), A.device());
    }
    auto run = [&](bool qr) {
      run_kernel(A, svd_cpu, svd_cuda, column_major_copy(A), U, S, Vh, info, qr);
    };
    run(by_qr);
    if (A.device().is_cuda() && !by_qr && !all_true(info <= 0)) run(true);
    check_converged(info, "singular values");
    if (!compute_uv) U = Vh = no_matrices(A, A.dtype());
    return std::tuple(U, S, Vh);
  },
  .saves   = saves<"U", "S", "Vh">,
  .grads   = grads(d<"A">([](TensorList g, const Tensor& U, const Tensor& S, const Tensor& Vh) {
    return svd_gradient(g, U, S, Vh);
  })),
})

OP(linalg_svd,
   "svd(Tensor A, bool full_matrices=True, *, str? driver=None) -> (Tensor U, Tensor S, "
   "Tensor Vh)", {
  .home    = "linalg",
  .doc     = R"(U and Vh with orthonormal columns and rows, and S >= 0, with A = U @ diag(S) @ Vh.

Args:
    A: (*, m, n).
    full_matrices: U is (*, m, m) and Vh (*, n, n), or with False U (*, m, k) and Vh (*, k, n) with
        k = min(m, n).
    driver: the algorithm on CUDA: Jacobi's method, 'gesvdj' or None, or QR iterations, 'gesvd';
        None on the CPU.

Returns:
    U, S (*, k) in descending order and real, Vh.

Raises:
    LinAlgError: if a matrix contains NaN or infinity.

U and Vh are not unique; a loss must not depend on their signs or phases. Their gradient exists
where the singular values are different and, for U or Vh of what is not square, not zero.

Example:
    >>> U, S, Vh = torch.linalg.svd(torch.tensor([[0.0, 2.0], [3.0, 0.0]]))
    >>> S
    tensor([3., 2.]))",
  .dtypes  = full_precision,
  .autocast = autocast::on_cpu(autocast::single),
  .forward = [](const Tensor& A, bool full_matrices, std::optional<std::string_view> driver) {
    return svd_of(A, full_matrices, true, is_qr(A, driver));
  },
})

OP(linalg_svdvals, "svdvals(Tensor A, *, str? driver=None) -> Tensor", {
  .home    = "linalg",
  .doc     = R"(The singular values of matrices, descending: (*, m, n) gives (*, min(m, n)).)",
  .dtypes  = full_precision,
  .autocast = autocast::on_cpu(autocast::single),
  .forward = [](const Tensor& A, std::optional<std::string_view> driver) {
    return svdvals_of(A, is_qr(A, driver));
  },
})

OP(svd,
   "(Tensor input, bool some=True, bool compute_uv=True) -> (Tensor U, Tensor S, Tensor V)", {
  .doc     = R"(The singular value decomposition with V instead of Vh = V.mH: see linalg.svd.

some=False gives square U and V. Without compute_uv they are square and zero.)",
  .dtypes  = full_precision,
  .autocast = autocast::on_cpu(autocast::single),
  .forward = [](const Tensor& input, bool some, bool compute_uv) {
    if (compute_uv) {
      auto [U, S, Vh] = svd_of(input, !some, true);
      return std::tuple(U, S, adjoint(Vh));
    }
    Tensor S = svdvals_of(input);
    auto square = [&](int64_t n) {
      return zeros(with_matrix(batch_sizes(input), n, n), input.dtype(), input.device());
    };
    return std::tuple(square(input.size(-2)), S, square(input.size(-1)));
  },
})

OP(pinv_kernel, "_pinv(Tensor A, Tensor? atol, Tensor? rtol, bool hermitian) -> Tensor", {
  .home    = "core",
  .doc     = R"(linalg.pinv.)",
  .dtypes  = full_precision,
  .batch   = [](const Batch& batch, const Tensor&, const Tensor& atol, const Tensor& rtol,
                bool hermitian) {
    int64_t rank = batch.rank("A");
    auto tolerance = [&](std::string_view name, const Tensor& t) {
      return batch.has(name) ? Batch::padded(t, rank - 2) : t;
    };
    return call<"pinv_kernel", Tensor>(batch.full("A"), tolerance("atol", atol),
                                       tolerance("rtol", rtol), hermitian);
  },
  .forward = [](const Tensor& A, const Tensor& atol, const Tensor& rtol, bool hermitian) {
    if (hermitian) check_square(A, "A");
    Shape sizes = with_matrix(batch_sizes(A), A.size(-1), A.size(-2));
    if (A.numel() == 0) return empty(sizes, A.dtype(), A.device());
    Decomposed of = decompose(A, hermitian);
    Tensor magnitudes = abs(of.values);
    Tensor is_nonzero = magnitudes > threshold(A, magnitudes, atol, rtol);
    Tensor inverse = select(is_nonzero, reciprocal(of.values), zeros_like(of.values));
    return matmul(scale_columns(of.right, inverse), adjoint(of.left));
  },
  .saves   = saves<"A", "result">,
  .grads   = grads(d<"A">([](const Tensor& g, const Tensor& A, const Tensor& P) {
    return pinv_gradient(g, A, P);
  }), no_grad<"atol">, no_grad<"rtol">),
})

OP(linalg_pinv,
   "pinv(Tensor A, *, Tensor|Scalar? atol=None, Tensor|Scalar? rtol=None, "
   "bool hermitian=False) -> Tensor", {
  .home    = "linalg",
  .doc     = R"(The pseudoinverse (Moore-Penrose inverse) of matrices: (*, m, n) gives (*, n, m).

Singular values up to max(atol, rtol * the largest) count as zero.

Args:
    atol: a number or (*); zero unless given.
    rtol: the same; max(m, n) times the rounding error of the dtype unless atol or rtol is given.
    hermitian: A is Hermitian; only its lower triangle is read, which is faster.

Example:
    >>> torch.linalg.pinv(torch.tensor([[2.0, 0.0]]))
    tensor([[0.5000],
            [0.0000]]))",
  .dtypes  = full_precision,
  .forward = [](const Tensor& A, const Tensor& atol, const Tensor& rtol, bool hermitian) {
    return pinv_of(A, atol, rtol, hermitian);
  },
})

OP(linalg_pinv_rcond, "pinv.rcond(Tensor A, Tensor|Scalar rcond, bool hermitian=False) -> Tensor", {
  .home    = "linalg",
  .doc     = R"(The pseudoinverse with rtol=rcond.)",
  .dtypes  = full_precision,
  .forward = [](const Tensor& A, const Tensor& rcond, bool hermitian) {
    return pinv_of(A, Tensor(), rcond, hermitian);
  },
})

OP(pinverse, "(Tensor input, float rcond=1e-15) -> Tensor", {
  .doc     = R"(The pseudoinverse of matrices with rtol=rcond: see linalg.pinv.)",
  .dtypes  = full_precision,
  .autocast = autocast::on_cpu(autocast::single),
  .forward = [](const Tensor& input, double rcond) {
    return pinv_of(input, Tensor(), wrapped_number(rcond), false);
  },
})

OP(linalg_matrix_rank,
   "matrix_rank(Tensor A, *, Tensor|Scalar? atol=None, Tensor|Scalar? rtol=None, "
   "bool hermitian=False) -> Tensor", {
  .home    = "linalg",
  .doc     = R"(The ranks of matrices, int64: how many singular values are above zero.

The tolerances, and hermitian, are those of linalg.pinv.)",
  .dtypes  = full_precision,
  .autocast = autocast::on_cpu(autocast::single),
  .forward = [](const Tensor& A, const Tensor& atol, const Tensor& rtol, bool hermitian) {
    return rank_of(A, atol, rtol, hermitian);
  },
})

OP(linalg_matrix_rank_tol,
   "matrix_rank.tol(Tensor A, Tensor|Scalar tol, bool hermitian=False) -> Tensor", {
  .home    = "linalg",
  .doc     = R"(The ranks of matrices with atol=tol and rtol=0.)",
  .dtypes  = full_precision,
  .autocast = autocast::on_cpu(autocast::single),
  .forward = [](const Tensor& A, const Tensor& tol, bool hermitian) {
    return rank_of(A, tol, wrapped_number(0.0), hermitian);
  },
})

}  // namespace rushlight
