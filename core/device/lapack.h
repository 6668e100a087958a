// Owns the calls into LAPACK, which OpenBLAS contains (see openblas.h).
//
// Matrices are column-major, as in Fortran: element (i, j) lies at a[i + j * lda]. T is float,
// double, or the complex form of one. Every routine runs on the calling thread and returns LAPACK's
// info: 0 when all went well, i > 0 when it failed at step i.
#pragma once

#include <complex>
#include <cstdint>
#include <vector>

namespace rushlight::lapack {

template <class T>
struct RealOf {
  using type = T;
};
template <class T>
struct RealOf<std::complex<T>> {
  using type = T;
};
template <class T>
using Real = typename RealOf<T>::type;

// The memory that a routine works in. It is sized by the first call; later calls must be of the
// same routine and of the same sizes.
template <class T>
struct Workspace {
  std::vector<T> work;
  std::vector<Real<T>> real;
  std::vector<int> ints;
};

template <class T>
struct Lapack {
  // a = P L U with L's diagonal of ones left out; row i was exchanged with row pivots[i] - 1.
  static int getrf(int64_t m, int64_t n, T* a, int64_t lda, int* pivots);
  // Exchanges rows of n columns as `pivots` says, from row `first` to `last`, counted from 1.
  static void laswp(int64_t n, T* a, int64_t lda, int64_t first, int64_t last, const int* pivots);
  // C -= op(A) B, of m x k and k x n; trans is 'N', 'T' or 'C'.
  static void gemm_subtract(char trans, int64_t m, int64_t n, int64_t k, const T* a, int64_t lda,
                            const T* b, int64_t ldb, T* c, int64_t ldc);
  // Solves op(A) X = B in place of B after getrf; trans is 'N', 'T' or 'C'.
  static int getrs(char trans, int64_t n, int64_t columns, const T* a, int64_t lda,
                   const int* pivots, T* b, int64_t ldb);
  // The Cholesky factor of the triangle uplo, in its place; the other triangle is not read.
  static int potrf(char uplo, int64_t n, T* a, int64_t lda);
  // Solves op(A) X = B (side 'L') or X op(A) = B ('R') for a triangular A, in place of B, m x n.
  static void trsm(char side, char uplo, char trans, char diag, int64_t m, int64_t n, const T* a,
                   int64_t lda, T* b, int64_t ldb);
  // A = L D L^T, or L D L^H when `hermitian`, by Bunch and Kaufman; and the solution after it.
  static int sytrf(bool hermitian, char uplo, int64_t n, T* a, int64_t lda, int* pivots,
                   Workspace<T>& space);
  static int sytrs(bool hermitian, char uplo, int64_t n, int64_t columns, const T* a, int64_t lda,
                   const int* pivots, T* b, int64_t ldb);

  // A = Q R: R above, the reflectors that make up Q below the diagonal, their factors in tau.
  static int geqrf(int64_t m, int64_t n, T* a, int64_t lda, T* tau, Workspace<T>& space);
  // The first n columns of the product of k reflectors, in their place.
  static int orgqr(int64_t m, int64_t n, int64_t k, T* a, int64_t lda, const T* tau,
                   Workspace<T>& space);
  // The triangle T of a block of k reflectors of m elements, I - V T V^H, which larfb applies to
  // C, m x n, from the left, or its adjoint; work holds n * k elements.
  static void larft(int64_t m, int64_t k, const T* v, int64_t ldv, const T* tau, T* t, int64_t ldt);
  static void larfb(bool adjoint, int64_t m, int64_t n, int64_t k, const T* v, int64_t ldv,
                    const T* t, int64_t ldt, T* c, int64_t ldc, T* work);
  // C = op(Q) C or C op(Q), where Q is the product of k reflectors; `adjoint` turns it.
  static int ormqr(char side, bool adjoint, int64_t m, int64_t n, int64_t k, const T* a,
                   int64_t lda, const T* tau, T* c, int64_t ldc, Workspace<T>& space);

  // A = U diag(s) Vh; job is 'A' for all columns of U and rows of Vh, 'S' for the first min(m, n),
  // 'N' for none. A is destroyed.
  static int gesdd(char job, int64_t m, int64_t n, T* a, int64_t lda, Real<T>* s, T* u, int64_t ldu,
                   T* vh, int64_t ldvh, Workspace<T>& space);
  // The eigenvalues of a Hermitian matrix, ascending, and its eigenvectors in place of A if wanted.
  static int heevd(bool vectors, char uplo, int64_t n, T* a, int64_t lda, Real<T>* values,
                   Workspace<T>& space);
  // The eigenvalues of any square matrix, and its eigenvectors unless null. A is destroyed.
  static int geev(int64_t n, T* a, int64_t lda, std::complex<Real<T>>* values,
                  std::complex<Real<T>>* vectors, Workspace<T>& space);

  // Least squares: b has max(m, n) rows and takes the solution. A has full rank.
  static int gels(int64_t m, int64_t n, int64_t columns, T* a, int64_t lda, T* b, int64_t ldb,
                  Workspace<T>& space);
  // The same for any rank, by a QR decomposition; what is below rcond counts as zero.
  static int gelsy(int64_t m, int64_t n, int64_t columns, T* a, int64_t lda, T* b, int64_t ldb,
                   Real<T> rcond, int* rank, Workspace<T>& space);
  // By a singular value decomposition: gelsd, or gelss when `simple`; s gets the singular values.
  static int gelsd(bool simple, int64_t m, int64_t n, int64_t columns, T* a, int64_t lda, T* b,
                   int64_t ldb, Real<T>* s, Real<T> rcond, int* rank, Workspace<T>& space);
};

}  // namespace rushlight::lapack
