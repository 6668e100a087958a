// Declares what the families of linear algebra share: checks, the layout that LAPACK wants, and the
// kernels of the CPU and of CUDA.
//
// Kernels work in place on matrices in the last two dims that are column-major, as LAPACK has them,
// in a dense batch. They are never called on meta, where results are shapes only.
#pragma once

#include "core/device/threads.h"
#include "core/ops/op.h"
#include "core/tensor/values.h"

namespace rushlight {

// ---- linalg.cpp: checks and layouts -------------------------------------------------------------

void check_matrices(const Tensor& t, const char* name);
void check_square(const Tensor& t, const char* name);
// Both must be of one dtype and on one device.
void check_alike(const Tensor& a, const char* a_name, const Tensor& b, const char* b_name);

// The dims before the last two, and with two more.
Shape batch_sizes(const Tensor& t);
Shape with_matrix(Shape batch, int64_t rows, int64_t columns);
Shape with_vector(Shape batch, int64_t length);
// Whether right sides are vectors: they have a dim less than the matrices, and fit them.
bool are_vectors(const Tensor& A, const Tensor& B);
int64_t smaller_side(const Tensor& t);

Tensor column_major(const Shape& sizes, DType dtype, Device device);
// What a private op returns in the place of matrices that nobody asked for: no elements, A's batch.
Tensor no_matrices(const Tensor& A, DType dtype);
Tensor column_major_copy(const Tensor& t);
// Its elements in order, where the CPU can read them.
Tensor readable(const Tensor& t);
// "(Batch element 3): " before what is said of one matrix of many.
std::string in_batch(const Tensor& info, int64_t index);
// Calls fail(index, info) for the first matrix whose info is not 0; inside vmap, of all samples.
template <class F>
void check_info(const Tensor& info, F&& fail) {
  if (!has_values(info)) return;
  Tensor all = readable(bottom(info));
  for (int64_t i = 0; i < all.numel(); ++i)
    if (all.data<int>()[i] != 0) fail(i, all.data<int>()[i]);
}
// Refuses matrices whose iteration did not end; `values` names what it looked for.
void check_converged(const Tensor& info, const char* values);

// ---- gradients are made of these ----------------------------------------------------------------

inline Tensor turned(const Tensor& t) { return transpose(t, -2, -1); }
inline Tensor adjoint(const Tensor& t) { return call<"adjoint", Tensor>(t); }
inline Tensor tril(const Tensor& t, int64_t diagonal = 0) {
  return call<"tril", Tensor>(t, diagonal);
}
inline Tensor triu(const Tensor& t, int64_t diagonal = 0) {
  return call<"triu", Tensor>(t, diagonal);
}
inline Tensor diagonal_of(const Tensor& t) {
  return call<"diagonal", Tensor>(t, int64_t(0), int64_t(-2), int64_t(-1));
}
inline Tensor diagonal_matrix(const Tensor& t) {
  return call<"diag_embed", Tensor>(t, int64_t(0), int64_t(-2), int64_t(-1));
}
// Columns times numbers, (*, m, n) by (*, n); and rows, (*, m, n) by (*, m).
inline Tensor scale_columns(const Tensor& t, const Tensor& by) { return t * unsqueeze(by, -2); }
inline Tensor scale_rows(const Tensor& t, const Tensor& by) { return t * unsqueeze(by, -1); }
// X - X^H: what of U^H dU a loss can see.
inline Tensor skew(const Tensor& x) { return x - adjoint(x); }
inline Tensor real_part(const Tensor& t) { return call<"real", Tensor>(t); }
inline Tensor eye_like(const Tensor& t, int64_t n) {
  return call<"eye", Tensor>(n, std::optional<int64_t>(), std::optional(t.dtype()),
                             std::optional(t.device()));
}
// The pivots 1, 2, ... that leave all rows where they are.
Tensor no_exchanges(const Tensor& pivots);
// The sum of what is defined.
inline Tensor plus(const Tensor& a, const Tensor& b) {
  return !a.defined() ? b : !b.defined() ? a : a + b;
}

// linalg.cpp
// The gradient of P = pinv(A) by Golub and Pereyra 1973, equation 4.12:
// dP = -P dA P + P P^H dA^H (I - A P) + (I - P A) dA^H P^H P.
Tensor pinv_gradient(const Tensor& g, const Tensor& A, const Tensor& P);
// The imaginary numbers by which a loss changes with the phases of complex vectors must be zero.
void check_phases(const Tensor& changes, const char* op, const char* vectors);
// Whether a gradient or a tangent will be asked of what is computed from A: then an op that can
// leave vectors out makes them, as the rules read them.
bool is_differentiated(const Tensor& A);
// The relative rounding error of a dtype.
double rounding_error(DType dtype);

inline Tensor solve_triangular(const Tensor& a, const Tensor& b, bool upper, bool left = true,
                               bool unitriangular = false) {
  return call<"linalg_solve_triangular", Tensor>(a, b, upper, left, unitriangular);
}
// By factors of ours, of the batch shape of b.
inline Tensor lu_solve(const Tensor& lu, const Tensor& pivots, const Tensor& b, bool adjoint) {
  return call<"lu_solve_kernel", Tensor>(lu, pivots, b, adjoint);
}

// ---- kernels ------------------------------------------------------------------------------------

// Calls the kernel for the device of t; none on meta.
template <class... Params, class... Args>
void run_kernel(const Tensor& t, void (*on_cpu)(Params...), void (*on_cuda)(Params...),
                const Args&... args) {
  if (t.device().is_meta()) return;
  (t.device().is_cuda() ? on_cuda : on_cpu)(args...);
}

// The dtypes of LAPACK as C++ types.
template <class F>
void visit_lapack_type(DType dtype, F&& f) {
  switch (dtype) {
    case DType::float32: return f(Tag<float>{});
    case DType::float64: return f(Tag<double>{});
    case DType::complex64: return f(Tag<std::complex<float>>{});
    case DType::complex128: return f(Tag<std::complex<double>>{});
    default: ASSERT(!"a dtype of LAPACK");
  }
}

// A batch in column-major order; null when the tensor is undefined.
template <class T>
struct Matrices {
  explicit Matrices(const Tensor& t) {
    if (!t.defined()) return;
    data = t.data<T>();
    rows = t.size(-2);
    columns = t.size(-1);
  }
  T* operator[](int64_t i) const { return data ? data + i * rows * columns : nullptr; }

  T* data = nullptr;
  int64_t rows = 0, columns = 0;
};

// Matrices of a batch, spread over threads when one of them is worth `work` multiplications.
template <class F>
void for_each_matrix(const Tensor& batch, double work, F&& f) {
  int64_t count = checked_numel(batch_sizes(batch));
  // 4e4: far below this a thread costs more than it gains; LAPACK adds about 500 to each matrix.
  parallel_for(0, count, int64_t(4e4 / (work + 500)) + 1, f);
}

// linalg_factor_cpu.cpp, linalg_factor_cuda.cpp
using Cholesky = void(const Tensor& a, bool upper, const Tensor& info);
Cholesky cholesky_cpu, cholesky_cuda;
// Without `pivots`, which the CPU needs, no rows are exchanged.
using Lu = void(const Tensor& a, const Tensor& pivots, const Tensor& info);
Lu lu_cpu, lu_cuda;
using Identity = void(const Tensor& a);
Identity identity_cpu, identity_cuda;
// b = op(A)^-1 b, where trans is 'N', 'T' or 'C'.
using LuSolve = void(const Tensor& lu, const Tensor& pivots, const Tensor& b, char trans);
LuSolve lu_solve_cpu, lu_solve_cuda;
using Det = void(const Tensor& lu, const Tensor& pivots, const Tensor& result);
Det det_cpu, det_cuda;
using Slogdet = void(const Tensor& lu, const Tensor& pivots, const Tensor& sign,
                     const Tensor& logabsdet);
Slogdet slogdet_cpu, slogdet_cuda;
// b = A^-1 b; A may lie in any order.
using SolveTriangular = void(const Tensor& a, const Tensor& b, bool upper, bool unitriangular);
SolveTriangular solve_triangular_cpu, solve_triangular_cuda;
using Ldl = void(const Tensor& a, const Tensor& pivots, const Tensor& info, bool hermitian);
Ldl ldl_cpu, ldl_cuda;
using LdlSolve = void(const Tensor& ld, const Tensor& pivots, const Tensor& b, bool hermitian);
LdlSolve ldl_solve_cpu, ldl_solve_cuda;
using Geqrf = void(const Tensor& a, const Tensor& tau);
Geqrf geqrf_cpu, geqrf_cuda;
using Householder = void(const Tensor& a, const Tensor& tau);
Householder householder_cpu, householder_cuda;
using Ormqr = void(const Tensor& a, const Tensor& tau, const Tensor& c, bool left, bool adjoint);
Ormqr ormqr_cpu, ormqr_cuda;

// linalg_spectral_cpu.cpp, linalg_spectral_cuda.cpp; info is -1 for a matrix with NaN or infinity
// u and vh may be undefined; a is destroyed. `by_qr` is for CUDA, whose method is Jacobi's else.
using Svd = void(const Tensor& a, const Tensor& u, const Tensor& s, const Tensor& vh,
                 const Tensor& info, bool by_qr);
Svd svd_cpu, svd_cuda;
// The eigenvectors replace a when they are wanted.
using Eigh = void(const Tensor& a, const Tensor& values, bool upper, bool vectors,
                  const Tensor& info);
Eigh eigh_cpu, eigh_cuda;
using Eig = void(const Tensor& a, const Tensor& values, const Tensor& vectors, const Tensor& info);
Eig eig_cpu, eig_cuda;
enum class LeastSquares { gels, gelsy, gelsd, gelss };
using Lstsq = void(LeastSquares driver, const Tensor& a, const Tensor& b, double rcond,
                   const Tensor& rank, const Tensor& s, const Tensor& info);
Lstsq lstsq_cpu, lstsq_cuda;

}  // namespace rushlight
