// Owns cuBLAS's entry points, as far as Rushlight calls them.
#include "tests/shim/solver.h"

namespace shim {
namespace {

struct Triangle {
  char side, uplo, trans, diagonal;

  Triangle(int side, int fill_mode, int trans, int diagonal) : uplo(fill(fill_mode)) {
    expect_choice(side, 2);
    expect_choice(trans, 3);
    expect_choice(diagonal, 2);
    this->side = "LR"[side];
    this->trans = "NTC"[trans];
    this->diagonal = "NU"[diagonal];
  }
  int64_t order(int64_t m, int64_t n) const { return side == 'L' ? m : n; }
};

template <class T>
void solve_triangular(const Triangle& t, int m, int n, const T* alpha, const T* a, int lda, T* b,
                      int ldb) {
  expect(*alpha == T(1), "only alpha = 1 is here");
  Lapack<T>::trsm(t.side, t.uplo, t.trans, t.diagonal, m, n, a, lda, b, ldb);
}

template <class T>
int trsm(void* handle, int side, int uplo, int trans, int diagonal, int m, int n, const T* alpha,
         const T* a, int lda, T* b, int ldb) {
  return solve("trsm", handle, [&] {
    expect_sizes(m, n);
    Triangle t(side, uplo, trans, diagonal);
    int64_t order = t.order(m, n);
    solve_triangular(t, m, n, alpha, open_matrix(a, order, order, lda), lda,
                     open_matrix(b, m, n, ldb), ldb);
  });
}

template <class T>
int trsm_batched(void* handle, int side, int uplo, int trans, int diagonal, int m, int n,
                 const T* alpha, const T* const* a, int lda, T* const* b, int ldb, int count) {
  return solve("trsmBatched", handle, [&] {
    expect_sizes(m, n, count);
    Triangle t(side, uplo, trans, diagonal);
    int64_t order = t.order(m, n);
    for_each_opened(b, count, m, n, ldb, [&](int64_t i, T* sides) {
      const T* const* matrices = open_range(a, size_t(count));
      solve_triangular(t, m, n, alpha, open_matrix(matrices[i], order, order, lda), lda, sides,
                       ldb);
    });
  });
}

template <class T>
int getrf_batched(void* handle, int n, T* const* a, int lda, int* pivots, int* info, int count) {
  return solve("getrfBatched", handle, [&] {
    expect_sizes(n, count);
    int* exchanged = pivots ? open_range(pivots, size_t(n) * size_t(count)) : nullptr;
    int* infos = open_range(info, size_t(count));
    for_each_opened(a, count, n, n, lda, [&](int64_t i, T* matrix) {
      infos[i] = exchanged ? Lapack<T>::getrf(n, n, matrix, lda, exchanged + i * n)
                           : eliminate(n, n, matrix, lda);
    });
  });
}

template <class T>
int getrs_batched(void* handle, int trans, int n, int columns, const T* const* a, int lda,
                  const int* pivots, T* const* b, int ldb, int* info, int count) {
  return solve("getrsBatched", handle, [&] {
    expect_sizes(n, columns, count);
    expect_choice(trans, 3);
    expect(!device_memory.find_pages(info), "info must be of the host");
    int* exchanged = open_range(pivots, size_t(n) * size_t(count));
    *info = 0;
    for_each_opened(b, count, n, columns, ldb, [&](int64_t i, T* sides) {
      const T* const* matrices = open_range(a, size_t(count));
      Lapack<T>::getrs("NTC"[trans], n, columns, open_matrix(matrices[i], n, n, lda), lda,
                       exchanged + i * n, sides, ldb);
    });
  });
}

}  // namespace
}  // namespace shim

using namespace shim;

#define SHIM_BLAS(L, T)                                                                           \
  SHIM_API int cublas##L##trsm_v2(void* h, int side, int uplo, int trans, int diagonal, int m,    \
                                  int n, const T* alpha, const T* a, int lda, T* b, int ldb) {    \
    return trsm(h, side, uplo, trans, diagonal, m, n, alpha, a, lda, b, ldb);                     \
  }                                                                                               \
  SHIM_API int cublas##L##trsmBatched(void* h, int side, int uplo, int trans, int diagonal,       \
                                      int m, int n, const T* alpha, const T* const* a, int lda,   \
                                      T* const* b, int ldb, int count) {                          \
    return trsm_batched(h, side, uplo, trans, diagonal, m, n, alpha, a, lda, b, ldb, count);      \
  }                                                                                               \
  SHIM_API int cublas##L##getrfBatched(void* h, int n, T* const* a, int lda, int* pivots,         \
                                       int* info, int count) {                                    \
    return getrf_batched(h, n, a, lda, pivots, info, count);                                      \
  }                                                                                               \
  SHIM_API int cublas##L##getrsBatched(void* h, int trans, int n, int columns,                    \
                                       const T* const* a, int lda, const int* pivots,             \
                                       T* const* b, int ldb, int* info, int count) {              \
    return getrs_batched(h, trans, n, columns, a, lda, pivots, b, ldb, info, count);              \
  }
SHIM_BLAS(S, float)
SHIM_BLAS(D, double)
SHIM_BLAS(C, std::complex<float>)
SHIM_BLAS(Z, std::complex<double>)
