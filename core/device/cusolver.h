// Owns the calls into cuSOLVER and into cuBLAS, which it depends on; they are opened at first use.
//
// Cusolver has the routines of lapack.h on the current device: matrices are column-major and dense,
// all addresses are the device's, and work goes to its current stream. What LAPACK returns as info
// is written to an address. No size is zero. RUSHLIGHT_CUSOLVER=off makes it unused; another value
// names the library's file.
#pragma once

#include <cstdint>

#include "core/device/lapack.h"

namespace rushlight::cusolver {

using lapack::Real;

// Many matrices of one size, by an array of their addresses; for small ones this is much faster
// than one call for each.
template <class T>
struct Many {
  T* const* matrices;
  int64_t count;
};

// The most rows and columns of a matrix of which gesvdj takes many.
inline constexpr int64_t kLargestOfMany = 32;

template <class T>
struct Cusolver {
  // a = P L U, as LAPACK's, or a = L U without pivots; of many, they are square.
  static void getrf(int64_t m, int64_t n, T* a, int* pivots, int* info);
  static void getrf(int64_t n, Many<T> a, int* pivots, int* info);
  // Solves op(A) X = B in place of B after getrf; trans is 'N', 'T' or 'C'.
  static void getrs(char trans, int64_t n, int64_t columns, const T* a, const int* pivots, T* b);
  static void getrs(char trans, int64_t n, int64_t columns, Many<T> a, const int* pivots,
                    Many<T> b);
  // The Cholesky factor of a triangle, in its place.
  static void potrf(bool upper, int64_t n, T* a, int* info);
  static void potrf(bool upper, int64_t n, Many<T> a, int* info);
  // Solves op(A) X = B for a triangular A, in place of B.
  static void trsm(bool upper, char trans, bool unitriangular, int64_t n, int64_t columns,
                   const T* a, T* b);
  static void trsm(bool upper, char trans, bool unitriangular, int64_t n, int64_t columns,
                   Many<T> a, Many<T> b);
  // A = L D L^T, or L D L^H when `hermitian`, which only newer libraries have for complex numbers;
  // the pivots of the solution are as wide as cuSOLVER wants them there.
  static void sytrf(int64_t n, T* a, int* pivots, int* info);
  static void hetrf(int64_t n, T* a, int64_t* pivots, int* info);
  static void sytrs(bool hermitian, int64_t n, int64_t columns, const T* a, const int64_t* pivots,
                    T* b);

  // A = Q R, the first n columns of Q, and C = op(Q) C or C op(Q), where Q has k reflectors.
  static void geqrf(int64_t m, int64_t n, T* a, T* tau);
  static void orgqr(int64_t m, int64_t n, int64_t k, T* a, const T* tau);
  static void ormqr(bool left, bool adjoint, int64_t m, int64_t n, int64_t k, const T* a,
                    const T* tau, T* c);

  // A = U diag(s) V^H by Jacobi's method: all columns of U and V, or the first min(m, n) when
  // `economic`. U and V are there even when no vectors are wanted; A is destroyed.
  static void gesvdj(bool vectors, bool economic, int64_t m, int64_t n, T* a, Real<T>* s, T* u,
                     T* v, int* info);
  // Of many matrices that lie one after another, small ones; not economic.
  static void gesvdj(bool vectors, int64_t m, int64_t n, T* a, Real<T>* s, T* u, T* v, int* info,
                     int64_t count);
  // By QR iterations, of a matrix that is not wide; job is LAPACK's, and gives V^H.
  static void gesvd(char job, int64_t m, int64_t n, T* a, Real<T>* s, T* u, T* vh, int* info);
  // The eigenvalues of a Hermitian matrix, ascending, and its eigenvectors in place of A if wanted.
  static void heevd(bool vectors, bool upper, int64_t n, T* a, Real<T>* values, int* info);
  // Of many such matrices, by Jacobi's method.
  static void heevj(bool vectors, bool upper, int64_t n, T* a, Real<T>* values, int* info,
                    int64_t count);
  // The eigenvalues of any square matrix, and its eigenvectors unless null; of a real matrix,
  // columns j and j + 1 hold the real and imaginary part of those of a conjugate pair. A is
  // destroyed. Only newer libraries have it.
  static void geev(int64_t n, T* a, std::complex<Real<T>>* values, T* vectors, int* info);
};

}  // namespace rushlight::cusolver
