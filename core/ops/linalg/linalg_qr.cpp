// Owns the QR decomposition and the products of Householder reflectors that it is stored as.
//
// Reflector i is H_i = I - tau_i v_i v_i^H with v_i from column i: zeros, a one in row i, and what
// lies below it.
#include "core/ops/linalg/linalg.h"
#include "core/ops/no_derivative.h"

namespace rushlight {
namespace {

using Pair = std::tuple<Tensor, Tensor>;

// X + X^H with the real part of X's diagonal, once.
Tensor hermitian_of_upper(const Tensor& x) {
  Tensor half = (triu(x) + triu(x, 1)) * 0.5;
  return half + adjoint(half);
}

// gA = (gQ + Q herm(triu(gR R^H - Q^H gQ))) R^-H: Seeger et al. 2017, "Auto-differentiating linear
// algebra", section 4.3, of the transpose; for square R. An undefined gradient is zero.
Tensor tall_gradient(const Tensor& gq, const Tensor& gr, const Tensor& Q, const Tensor& R) {
  Tensor middle;
  if (gr.defined()) middle = matmul(gr, adjoint(R));
  if (gq.defined()) middle = plus(middle, -matmul(adjoint(Q), gq));
  Tensor inner = plus(matmul(Q, hermitian_of_upper(middle)), gq);
  return solve_triangular(adjoint(R), inner, false, false);
}

// Wide A = (A1 A2) = Q (R1 R2): the square case of A1, with R2 = Q^H A2 (Roberts and Roberts 2020).
Tensor wide_gradient(const Tensor& gq, const Tensor& gr, const Tensor& Q, const Tensor& R) {
  int64_t m = R.size(-2), rest = R.size(-1) - m;
  if (!gr.defined()) {
    Tensor left = tall_gradient(gq, gr, Q, narrow(R, -1, 0, m));
    const Tensor parts[] = {left, zeros_like(narrow(R, -1, m, rest))};
    return cat(parts, -1);
  }
  Tensor gr2 = narrow(gr, -1, m, rest);
  Tensor from_r2 = matmul(matmul(Q, narrow(R, -1, m, rest)), adjoint(gr2));
  Tensor left = tall_gradient(plus(gq, from_r2), narrow(gr, -1, 0, m), Q, narrow(R, -1, 0, m));
  const Tensor parts[] = {left, matmul(Q, gr2)};
  return cat(parts, -1);
}

// Whether `mode` asks for a square Q, for a Q of R's rows, or for no Q.
enum class QrMode { reduced, complete, r };
QrMode qr_mode(std::string_view mode) {
  if (mode == "reduced") return QrMode::reduced;
  if (mode == "complete") return QrMode::complete;
  CHECK(mode == "r", "qr received unrecognized mode '", mode,
        "' but expected one of 'reduced' (default), 'r', or 'complete'");
  return QrMode::r;
}

void check_reflectors(const Tensor& a, const Tensor& tau) {
  check_matrices(a, "input");
  check_alike(a, "input", tau, "tau");
  CHECK(tau.dim() == a.dim() - 1 &&
            same_shape(ShapeRef(tau.sizes()).first(tau.sizes().size() - 1), batch_sizes(a)),
        "Expected tau to have one dim less than input and its batch dims, but got shapes ",
        tau.sizes(), " and ", a.sizes(), ".");
  CHECK(tau.size(-1) <= a.size(-1),
        "input.shape[-1] must be greater than or equal to "
        "tau.shape[-1], but they are ",
        a.size(-1), " and ", tau.size(-1), ".");
  CHECK(tau.size(-1) <= a.size(-2), "tau has ", tau.size(-1), " reflectors, but input only ",
        a.size(-2), " rows.");
}

struct ReflectorGradients {
  Tensor a, tau;
};

// The gradients of Y = H_1 ... H_k C for the reflectors, or with `turned` of Y = H_k^H ... H_1^H C.
// Y = (I - t v v^H) Z is undone factor by factor: Z = (I - s v v^H) Y with s = t / (t |v|^2 - 1).
ReflectorGradients reflector_gradients(const Tensor& a, const Tensor& tau, Tensor y, Tensor g,
                                       bool turned) {
  int64_t k = tau.size(-1);
  Tensor ones = call<"eye", Tensor>(a.size(-2), std::optional(k), std::optional(a.dtype()),
                                    std::optional(a.device()));
  Tensor vectors = tril(narrow(a, -1, 0, k), -1) + ones;
  std::vector<Tensor> gv(static_cast<size_t>(k)), gt(static_cast<size_t>(k));
  for (int64_t step = 0; step < k; ++step) {
    int64_t i = turned ? k - 1 - step : step;
    Tensor v = narrow(vectors, -1, i, 1);  // (*, m, 1)
    Tensor t = unsqueeze(narrow(tau, -1, i, 1), -1);
    if (turned) t = conj(t);
    Tensor s = t / (t * matmul(adjoint(v), v) - Scalar(1));
    Tensor z = y - s * matmul(v, matmul(adjoint(v), y));
    Tensor w = matmul(adjoint(v), z), h = matmul(adjoint(v), g);  // (*, 1, n)
    gv[size_t(i)] = -(conj(t) * matmul(g, adjoint(w)) + t * matmul(z, adjoint(h)));
    Tensor of_t = -squeeze(matmul(h, adjoint(w)), -1);
    gt[size_t(i)] = turned ? conj(of_t) : of_t;
    g = g - conj(t) * matmul(v, h);
    y = z;
  }
  if (k == 0) return {zeros_like(a), zeros_like(tau)};
  Tensor columns = tril(cat(gv, -1), -1);
  if (a.size(-1) > k) {
    const Tensor parts[] = {columns, zeros_like(narrow(a, -1, k, a.size(-1) - k))};
    columns = cat(parts, -1);
  }
  return {columns, cat(gt, -1)};
}

}  // namespace

OP(linalg_qr, "qr(Tensor A, str mode='reduced') -> (Tensor Q, Tensor R)", {
  .home    = "linalg",
  .doc     = R"(Q with orthonormal columns and upper triangular R with A = Q @ R.

Args:
    A: (*, m, n).
    mode: 'reduced' gives Q (*, m, k) and R (*, k, n) with k = min(m, n); 'complete' gives Q
        (*, m, m) and R (*, m, n); 'r' gives an empty Q and the R of 'reduced'.

The diagonal of R may be negative. There are gradients for 'reduced' where the first k columns of A
are independent, and for 'complete' if also m <= n.

Example:
    >>> Q, R = torch.linalg.qr(torch.tensor([[3.0, 1.0], [4.0, 2.0]]))
    >>> torch.allclose(Q @ R, torch.tensor([[3.0, 1.0], [4.0, 2.0]]))
    True)",
  .dtypes  = full_precision,
  .autocast = autocast::on_cpu(autocast::single),
  .batch   = by_matrices,
  .forward = [](const Tensor& A, std::string_view mode) {
    check_matrices(A, "A");
    QrMode wanted = qr_mode(mode);
    int64_t m = A.size(-2), n = A.size(-1), k = std::min(m, n);
    int64_t columns = wanted == QrMode::complete ? m : k;  // of Q
    Shape batch = batch_sizes(A);
    Tensor a = column_major_copy(A), tau = empty(with_vector(batch, k), A.dtype(), A.device());
    run_kernel(A, geqrf_cpu, geqrf_cuda, a, tau);
    Tensor R = triu(narrow(a, -2, 0, k));
    if (wanted == QrMode::complete && m > n) {
      Tensor whole = zeros(with_matrix(batch, m, n), A.dtype(), A.device());
      copy_into(narrow(whole, -2, 0, n), narrow(R, -2, 0, n));
      R = whole;
    }
    if (wanted == QrMode::r) return std::tuple(empty(Shape{0}, A.dtype(), A.device()), R);
    Tensor Q = a;
    if (columns < n) {
      Q = column_major_copy(narrow(a, -1, 0, columns));
    } else if (columns > n) {
      Q = column_major(with_matrix(batch, m, columns), A.dtype(), A.device());
      copy_into(narrow(Q, -1, 0, n), a);
    }
    run_kernel(A, householder_cpu, householder_cuda, Q, tau);
    return std::tuple(Q, R);
  },
  .saves   = saves<"Q", "R">,
  .grads   = grads(d<"A">([](TensorList g, const Tensor& Q, const Tensor& R,
                             const std::string& mode) {
    CHECK(mode != "r", "The derivative of linalg.qr depends on Q, which is not computed when "
                       "mode='r'. Please use linalg.qr(A, mode='reduced') if you are going to "
                       "differentiate through linalg.qr.");
    int64_t m = Q.size(-2), n = R.size(-1);
    CHECK(mode != "complete" || m <= n,
          "The QR decomposition is not differentiable when mode='complete' and nrows > ncols.");
    return m >= n ? tall_gradient(g[0], g[1], Q, R) : wide_gradient(g[0], g[1], Q, R);
  })),
})

OP(qr, "(Tensor input, bool some=True) -> (Tensor Q, Tensor R)", {
  .doc     = R"(The QR decomposition: linalg.qr, mode 'reduced', or 'complete' with some=False.)",
  .dtypes  = full_precision,
  .autocast = autocast::on_cpu(autocast::single),
  .forward = [](const Tensor& input, bool some) {
    return call<"linalg_qr", Pair>(input, std::string_view(some ? "reduced" : "complete"));
  },
})

OP(geqrf, "(Tensor input) -> (Tensor a, Tensor tau)", {
  .doc     = R"(The QR decomposition as LAPACK stores it: R above, reflectors below the diagonal.

tau holds the factors of the reflectors; linalg.householder_product makes Q of them. Its
gradient is not implemented.)",
  .dtypes  = full_precision,
  .autocast = autocast::on_cpu(autocast::single),
  .batch   = by_matrices,
  .forward = [](const Tensor& input) {
    check_matrices(input, "input");
    Tensor a = column_major_copy(input);
    Tensor tau = empty(with_vector(batch_sizes(input), smaller_side(input)), input.dtype(),
                       input.device());
    run_kernel(input, geqrf_cpu, geqrf_cuda, a, tau);
    return std::tuple(a, tau);
  },
  .grads   = grads(d<"input">([](TensorList) { return no_derivative("input"); })),
})

OP(linalg_householder_product, "householder_product(Tensor A, Tensor tau) -> Tensor", {
  .home    = "linalg",
  .doc     = R"(The first n columns of the product H_1 @ ... @ H_k of Householder reflectors.

Args:
    A: (*, m, n) with n <= m; column i holds the vector of reflector i, a one in row i left out.
    tau: (*, k) with k <= n, the factors: H_i = I - tau_i v_i v_i^H.)",
  .dtypes  = full_precision,
  .autocast = autocast::on_cpu(autocast::single),
  .batch   = by_matrices,
  .forward = [](const Tensor& A, const Tensor& tau) {
    check_reflectors(A, tau);
    CHECK(A.size(-2) >= A.size(-1), "input.shape[-2] must be greater than or equal to "
                                    "input.shape[-1], but they are ",
          A.size(-2), " and ", A.size(-1), ".");
    Tensor Q = column_major_copy(A);
    run_kernel(A, householder_cpu, householder_cuda, Q, to_contiguous(tau));
    return Q;
  },
  .saves   = saves<"A", "tau", "result">,
  .grads   = grads(d<"A", "tau">([](const Tensor& g, const Tensor& A, const Tensor& tau,
                                    const Tensor& Q, GradMask<2>) {
    auto [of_a, of_tau] = reflector_gradients(A, tau, Q, g, false);
    return std::tuple(of_a, of_tau);
  })),
})

OP(orgqr, "(Tensor input, Tensor input2) -> Tensor", {
  .doc     = R"(The product of Householder reflectors: see linalg.householder_product.)",
  .dtypes  = full_precision,
  .autocast = autocast::on_cpu(autocast::single),
  .forward = [](const Tensor& input, const Tensor& input2) {
    return call<"linalg_householder_product", Tensor>(input, input2);
  },
})

OP(ormqr,
   "(Tensor input, Tensor tau, Tensor other, bool left=True, bool transpose=False) -> Tensor", {
  .doc     = R"(Q @ other, or with left=False other @ Q, for a product Q of Householder reflectors.

With transpose=True, Q.mH is in the place of Q. input (*, m, k) and tau (*, k) are those of
linalg.householder_product, but Q is the whole square matrix.)",
  .dtypes  = full_precision,
  .autocast = autocast::on_cpu(autocast::single),
  .batch   = by_matrices,
  .forward = [](const Tensor& input, const Tensor& tau, const Tensor& other, bool left,
                bool transpose) {
    check_reflectors(input, tau);
    check_matrices(other, "other");
    check_alike(input, "input", other, "other");
    CHECK(batch_sizes(input) == batch_sizes(other), "Expected batch dimensions of other to be ",
          batch_sizes(input), " as of input, but got ", batch_sizes(other), ".");
    CHECK(other.size(left ? -2 : -1) == input.size(-2), "other.shape[", left ? -2 : -1,
          "] must be equal to input.shape[-2], but they are ", other.size(left ? -2 : -1), " and ",
          input.size(-2), ".");
    Tensor C = column_major_copy(other);
    Tensor reflectors = turned(input).is_contiguous() ? input : column_major_copy(input);
    run_kernel(input, ormqr_cpu, ormqr_cuda, reflectors, to_contiguous(tau), C, left, transpose);
    return C;
  },
  .saves   = saves<"input", "tau", "result">,
  .grads   = grads(d<"input", "tau", "other">([](const Tensor& g, const Tensor& a,
                                                 const Tensor& tau,
                                                 const Tensor& result, bool left, bool transpose,
                                                 GradMask<3> wants) {
    Tensor of_other = call<"ormqr", Tensor>(a, tau, g, left, !transpose);
    ReflectorGradients of;
    if (wants[0] || wants[1]) {  // C Q is (Q^H C^H)^H
      of = left ? reflector_gradients(a, tau, result, g, transpose)
                : reflector_gradients(a, tau, adjoint(result), adjoint(g), !transpose);
    }
    return std::tuple(of.a, of.tau, of_other);
  })),
})

}  // namespace rushlight
