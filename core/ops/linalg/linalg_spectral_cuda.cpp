// Defines for CUDA the decompositions into singular values and eigenvalues, and least squares, by
// cuSOLVER: batches of small matrices at once where it can, others matrix by matrix.
//
// As on the CPU, matrices with NaN or infinity never reach an iteration: zeros take their place.
#include "core/ops/linalg/linalg_cuda.h"

namespace rushlight {
namespace {

using cusolver::Cusolver;
using lapack::Real;

// A matrix of one row or column would be too little for Jacobi's rotations.
bool go_together(const Tensor& batch) {
  return count_of(batch) > 1 && smaller_side(batch) > 1 &&
         std::max(batch.size(-2), batch.size(-1)) <= cusolver::kLargestOfMany;
}

Tensor are_finite(const Tensor& t) {
  return call<"all", Tensor>(isfinite(t), std::optional<ShapeRef>(Shape{-2, -1}), false);
}

// Which matrices of a batch are finite, in the part of them that is read: (*). The others become
// zero.
Tensor clear_infinite(const Tensor& a, const Tensor& read) {
  Tensor finite = are_finite(read);
  copy_into(a, where(unsqueeze(unsqueeze(finite, -1), -1), a, wrapped_number(0)));
  return finite;
}
void mark_infinite(const Tensor& info, const Tensor& finite) {
  copy_into(info, where(finite, info, wrapped_number(-1)));
}

// The eigenvectors of real matrices: see Cusolver::geev. Pairs begin with the value above the axis.
Tensor complex_vectors(const Tensor& values, const Tensor& v) {
  Tensor height = unsqueeze(call<"imag", Tensor>(values), -2);  // (*, 1, n)
  auto moved = [&](int64_t by) {
    return call<"roll", Tensor>(v, ShapeRef(Shape{by}), std::optional<ShapeRef>(Shape{-1}));
  };
  Tensor real = where(height < 0, moved(1), v);
  Tensor imag = where(height > 0, moved(-1), where(height < 0, -v, wrapped_number(0)));
  return call<"complex", Tensor>(real, imag);
}

void svd_by_jacobi(const Tensor& a, const Tensor& u, const Tensor& s, const Tensor& vh,
                   const Tensor& info) {
  int64_t m = a.size(-2), n = a.size(-1), k = std::min(m, n);
  bool vectors = u.defined(), together = go_together(a);
  bool economic = !together && (!vectors || (u.size(-1) == k && vh.size(-2) == k));
  auto space = [&](int64_t rows) {
    Shape sizes = with_matrix(batch_sizes(a), rows, economic ? k : rows);
    return column_major(sizes, a.dtype(), a.device());
  };
  Tensor left = space(m), right = space(n);
  if (together) {
    visit_on_device(a, [&]<class T>(Tag<T>) {
      Cusolver<T>::gesvdj(vectors, m, n, matrix_at<T>(a, 0), vector_at<Real<T>>(s, 0),
                          matrix_at<T>(left, 0), matrix_at<T>(right, 0), number_at<int>(info, 0),
                          count_of(a));
    });
  } else {
    for_each_on_device(a, [&]<class T>(Tag<T>, int64_t i) {
      Cusolver<T>::gesvdj(vectors, economic, m, n, matrix_at<T>(a, i), vector_at<Real<T>>(s, i),
                          matrix_at<T>(left, i), matrix_at<T>(right, i), number_at<int>(info, i));
    });
  }
  if (!vectors) return;
  copy_into(u, narrow(left, -1, 0, u.size(-1)));
  copy_into(vh, adjoint(narrow(right, -1, 0, vh.size(-2))));
}

void svd_by_qr(const Tensor& a, const Tensor& u, const Tensor& s, const Tensor& vh,
               const Tensor& info) {
  int64_t m = a.size(-2), n = a.size(-1);
  if (m < n) {  // A^H = V diag(s) U^H
    auto space = [](const Tensor& t) {
      if (!t.defined()) return t;
      return column_major(turned(t).sizes(), t.dtype(), t.device());
    };
    Tensor v = space(vh), uh = space(u);
    svd_by_qr(column_major_copy(adjoint(a)), v, s, uh, info);
    if (!u.defined()) return;
    copy_into(u, adjoint(uh));
    copy_into(vh, adjoint(v));
    return;
  }
  char job = !u.defined() ? 'N' : u.size(-1) == n ? 'S' : 'A';
  for_each_on_device(a, [&]<class T>(Tag<T>, int64_t i) {
    Cusolver<T>::gesvd(job, m, n, matrix_at<T>(a, i), vector_at<Real<T>>(s, i),
                       u.defined() ? matrix_at<T>(u, i) : nullptr,
                       u.defined() ? matrix_at<T>(vh, i) : nullptr, number_at<int>(info, i));
  });
}

}  // namespace

void svd_cuda(const Tensor& a, const Tensor& u, const Tensor& s, const Tensor& vh,
              const Tensor& info, bool by_qr) {
  if (a.numel() == 0) {
    for (const Tensor* vectors : {&u, &vh})
      if (vectors->defined()) identity_cuda(*vectors);
    return clear(info);
  }
  Tensor finite = clear_infinite(a, a);
  (by_qr ? svd_by_qr : svd_by_jacobi)(a, u, s, vh, info);
  mark_infinite(info, finite);
}

void eigh_cuda(const Tensor& a, const Tensor& values, bool upper, bool vectors,
               const Tensor& info) {
  if (a.numel() == 0) return clear(info);
  Tensor finite = clear_infinite(a, upper ? triu(a) : tril(a));
  int64_t n = a.size(-1);
  if (go_together(a)) {
    visit_on_device(a, [&]<class T>(Tag<T>) {
      Cusolver<T>::heevj(vectors, upper, n, matrix_at<T>(a, 0), vector_at<Real<T>>(values, 0),
                         number_at<int>(info, 0), count_of(a));
    });
  } else {
    for_each_on_device(a, [&]<class T>(Tag<T>, int64_t i) {
      Cusolver<T>::heevd(vectors, upper, n, matrix_at<T>(a, i), vector_at<Real<T>>(values, i),
                         number_at<int>(info, i));
    });
  }
  mark_infinite(info, finite);
}

void eig_cuda(const Tensor& a, const Tensor& values, const Tensor& vectors, const Tensor& info) {
  if (a.numel() == 0) return clear(info);
  bool is_real = !is_complex(a.dtype());
  Tensor columns = vectors;
  if (vectors.defined() && is_real) columns = column_major(a.sizes(), a.dtype(), a.device());
  Tensor finite = clear_infinite(a, a);
  for_each_on_device(a, [&]<class T>(Tag<T>, int64_t i) {
    T* wanted = columns.defined() ? matrix_at<T>(columns, i) : nullptr;
    Cusolver<T>::geev(a.size(-1), matrix_at<T>(a, i), vector_at<std::complex<Real<T>>>(values, i),
                      wanted, number_at<int>(info, i));
  });
  if (vectors.defined() && is_real) copy_into(vectors, complex_vectors(values, columns));
  mark_infinite(info, finite);
}

// A = Q T or, when it is wide, A = T Q^H, with a triangular T of full rank for gels and of any rank
// for the others, whose solution is that by the singular values of T. As LAPACK's, it leaves what
// cannot be solved for in the rows below the solution.
void lstsq_cuda(LeastSquares driver, const Tensor& a, const Tensor& b, double rcond,
                const Tensor& rank, const Tensor& s, const Tensor& info) {
  int64_t m = a.size(-2), n = a.size(-1), k = std::min(m, n);
  clear(info);
  if (a.numel() == 0) {
    if (driver == LeastSquares::gels) clear(b);
    return clear(rank);
  }
  Tensor finite = are_finite(b) & clear_infinite(a, a);
  bool is_tall = m >= n;
  Tensor reflectors = is_tall ? a : column_major_copy(adjoint(a));
  Tensor tau = empty(with_vector(batch_sizes(a), k), a.dtype(), a.device());
  geqrf_cuda(reflectors, tau);
  Tensor R = triu(narrow(reflectors, -2, 0, k)), triangle = is_tall ? R : adjoint(R);
  if (is_tall) ormqr_cuda(reflectors, tau, b, true, true);
  Tensor sides = narrow(b, -2, 0, k), solution = column_major_copy(sides);
  if (driver == LeastSquares::gels) {
    solve_triangular_cuda(triangle, solution, is_tall, false);
    mark_first(info, diagonal_of(R) == 0);
  } else {
    auto square = [&] { return column_major(R.sizes(), a.dtype(), a.device()); };
    Tensor U = square(), Vh = square(),
           values = empty(tau.sizes(), real_dtype(a.dtype()), a.device());
    svd_cuda(column_major_copy(triangle), U, values, Vh, info, false);
    Tensor is_counted = values > narrow(values, -1, 0, 1) * Scalar(rcond);
    Tensor inverse = select(is_counted, reciprocal(values), 0.0);
    solution = matmul(adjoint(Vh), scale_rows(matmul(adjoint(U), sides), inverse));
    copy_into(rank, sum(is_counted, Shape{-1}));
    if (s.numel() > 0) copy_into(s, values);
  }
  copy_into(sides, solution);
  if (!is_tall) ormqr_cuda(reflectors, tau, b, true, false);
  mark_infinite(info, finite);
}

}  // namespace rushlight
