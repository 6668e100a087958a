// Defines the decompositions into singular values and eigenvalues, and least squares, by LAPACK.
//
// LAPACK's iterations may not end on NaN or infinity, so such matrices never reach it.
#include "core/device/lapack.h"
#include "core/ops/linalg/linalg.h"

namespace rushlight {
namespace {

using lapack::Lapack;
using lapack::Real;
using lapack::Workspace;

constexpr int kNotFinite = -1;  // as info

template <class T>
bool is_finite(const T* a, int64_t n) {
  // NaN and infinity times zero are NaN.
  auto* parts = reinterpret_cast<const Real<T>*>(a);
  Real<T> sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < n * int64_t(sizeof(T) / sizeof(Real<T>)); ++i) sum += parts[i] * 0;
  return sum == 0;
}

template <class T>
bool is_finite_triangle(const T* a, int64_t n, bool upper) {
  for (int64_t j = 0; j < n; ++j)
    if (!(upper ? is_finite(a + j * n, j + 1) : is_finite(a + j * (n + 1), n - j))) return false;
  return true;
}

// Calls f(index, matrix, workspace) for each matrix, spread over threads; it returns info.
template <class T, class F>
void decompose(const Tensor& a, const Tensor& info, F&& f) {
  int64_t m = a.size(-2), n = a.size(-1);
  Matrices<T> all(a);
  double work = 10 * double(m) * double(n) * double(std::min(m, n));
  for_each_matrix(a, work, [&](int64_t begin, int64_t end) {
    Workspace<T> space;
    for (int64_t i = begin; i < end; ++i) info.data<int>()[i] = f(i, all[i], space);
  });
}

template <class T>
void set_identity(T* a, int64_t n) {
  if (!a) return;
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < n; ++j) a[i * n + j] = T(i == j);
}

}  // namespace

void svd_cpu(const Tensor& a, const Tensor& u, const Tensor& s, const Tensor& vh,
             const Tensor& info, bool) {
  int64_t m = a.size(-2), n = a.size(-1), k = std::min(m, n);
  visit_lapack_type(a.dtype(), [&]<class T>(Tag<T>) {
    Matrices<T> left(u), right(vh);
    char job = !u.defined() ? 'N' : left.columns == k && right.rows == k ? 'S' : 'A';
    decompose<T>(a, info, [&](int64_t i, T* matrix, Workspace<T>& space) {
      if (k == 0) {  // LAPACK returns at once
        set_identity(left[i], left.rows == left.columns ? m : 0);
        set_identity(right[i], right.rows == right.columns ? n : 0);
        return 0;
      }
      if (!is_finite(matrix, m * n)) return kNotFinite;
      return Lapack<T>::gesdd(job, m, n, matrix, m, s.data<Real<T>>() + i * k, left[i], m, right[i],
                              right.rows, space);
    });
  });
}

void eigh_cpu(const Tensor& a, const Tensor& values, bool upper, bool vectors, const Tensor& info) {
  int64_t n = a.size(-1);
  visit_lapack_type(a.dtype(), [&]<class T>(Tag<T>) {
    decompose<T>(a, info, [&](int64_t i, T* matrix, Workspace<T>& space) {
      if (!is_finite_triangle(matrix, n, upper)) return kNotFinite;
      return Lapack<T>::heevd(vectors, upper ? 'U' : 'L', n, matrix, n,
                              values.data<Real<T>>() + i * n, space);
    });
  });
}

void eig_cpu(const Tensor& a, const Tensor& values, const Tensor& vectors, const Tensor& info) {
  int64_t n = a.size(-1);
  visit_lapack_type(a.dtype(), [&]<class T>(Tag<T>) {
    using Complex = std::complex<Real<T>>;
    Matrices<Complex> columns(vectors);
    decompose<T>(a, info, [&](int64_t i, T* matrix, Workspace<T>& space) {
      if (!is_finite(matrix, n * n)) return kNotFinite;
      return Lapack<T>::geev(n, matrix, n, values.data<Complex>() + i * n, columns[i], space);
    });
  });
}

void lstsq_cpu(LeastSquares driver, const Tensor& a, const Tensor& b, double rcond,
               const Tensor& rank, const Tensor& s, const Tensor& info) {
  int64_t m = a.size(-2), n = a.size(-1), k = std::min(m, n);
  int64_t rows = b.size(-2), columns = b.size(-1);
  visit_lapack_type(a.dtype(), [&]<class T>(Tag<T>) {
    Matrices<T> sides(b);
    decompose<T>(a, info, [&](int64_t i, T* matrix, Workspace<T>& space) {
      T* side = sides[i];
      if (!is_finite(matrix, m * n) || !is_finite(side, rows * columns)) return kNotFinite;
      if (driver == LeastSquares::gels)
        return Lapack<T>::gels(m, n, columns, matrix, m, side, rows, space);
      int found = 0, failed;
      if (driver == LeastSquares::gelsy) {
        failed =
            Lapack<T>::gelsy(m, n, columns, matrix, m, side, rows, Real<T>(rcond), &found, space);
      } else {
        failed = Lapack<T>::gelsd(driver == LeastSquares::gelss, m, n, columns, matrix, m, side,
                                  rows, s.data<Real<T>>() + i * k, Real<T>(rcond), &found, space);
      }
      rank.data<int64_t>()[i] = found;
      return failed;
    });
  });
}

}  // namespace rushlight
