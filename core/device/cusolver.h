// Owns the calls into cuSOLVER and into cuBLAS, which it depends on; they are opened at first use.
//
// These are the routines of lapack.h on the current device: matrices are column-major and dense,
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

// a = P L U, as LAPACK's, or a = L U without pivots; of many, they are square.
template <class T>
void getrf(int64_t m, int64_t n, T* a, int* pivots, int* info);
template <class T>
void getrf(int64_t n, Many<T> a, int* pivots, int* info);
// Solves op(A) X = B in place of B after getrf; trans is 'N', 'T' or 'C'.
template <class T>
void getrs(char trans, int64_t n, int64_t columns, const T* a, const int* pivots, T* b);
template <class T>
void getrs(char trans, int64_t n, int64_t columns, Many<T> a, const int* pivots, Many<T> b);
// The Cholesky factor of a triangle, in its place.
template <class T>
void potrf(bool upper, int64_t n, T* a, int* info);
template <class T>
void potrf(bool upper, int64_t n, Many<T> a, int* info);
// Solves op(A) X = B for a triangular A, in place of B.
template <class T>
void trsm(bool upper, char trans, bool unitriangular, int64_t n, int64_t columns, const T* a, T* b);
template <class T>
void trsm(bool upper, char trans, bool unitriangular, int64_t n, int64_t columns, Many<T> a,
          Many<T> b);
// A = L D L^T, or L D L^H when `hermitian`, which only newer libraries have for complex numbers;
// the pivots of the solution are as wide as cuSOLVER wants them there.
template <class T>
void sytrf(int64_t n, T* a, int* pivots, int* info);
template <class T>
void hetrf(int64_t n, T* a, int64_t* pivots, int* info);
template <class T>
void sytrs(bool hermitian, int64_t n, int64_t columns, const T* a, const int64_t* pivots, T* b);

// A = Q R, the first n columns of Q, and C = op(Q) C or C op(Q), where Q has k reflectors.
template <class T>
void geqrf(int64_t m, int64_t n, T* a, T* tau);
template <class T>
void orgqr(int64_t m, int64_t n, int64_t k, T* a, const T* tau);
template <class T>
void ormqr(bool left, bool adjoint, int64_t m, int64_t n, int64_t k, const T* a, const T* tau,
           T* c);

// A = U diag(s) V^H by Jacobi's method: all columns of U and V, or the first min(m, n) when
// `economic`. U and V are there even when no vectors are wanted; A is destroyed.
template <class T>
void gesvdj(bool vectors, bool economic, int64_t m, int64_t n, T* a, Real<T>* s, T* u, T* v,
            int* info);
// Of many matrices that lie one after another, of at most kLargestOfMany rows and columns; not
// economic.
inline constexpr int64_t kLargestOfMany = 32;
template <class T>
void gesvdj(bool vectors, int64_t m, int64_t n, T* a, Real<T>* s, T* u, T* v, int* info,
            int64_t count);
// By QR iterations, of a matrix that is not wide; job is LAPACK's, and gives V^H.
template <class T>
void gesvd(char job, int64_t m, int64_t n, T* a, Real<T>* s, T* u, T* vh, int* info);
// The eigenvalues of a Hermitian matrix, ascending, and its eigenvectors in place of A if wanted.
template <class T>
void heevd(bool vectors, bool upper, int64_t n, T* a, Real<T>* values, int* info);
// Of many such matrices, by Jacobi's method.
template <class T>
void heevj(bool vectors, bool upper, int64_t n, T* a, Real<T>* values, int* info, int64_t count);
// The eigenvalues of any square matrix, and its eigenvectors unless null; of a real matrix, columns
// j and j + 1 hold the real and imaginary part of those of a conjugate pair. A is destroyed. Only
// newer libraries have it.
template <class T>
void geev(int64_t n, T* a, std::complex<Real<T>>* values, T* vectors, int* info);

}  // namespace rushlight::cusolver
