// Owns cuSOLVER's entry points that exist for each type, as far as Rushlight calls them.
#include <cstdlib>
#include <vector>

#include "tests/shim/solver.h"

namespace shim {
namespace {

int answer_size(const char* name, void* handle, int64_t m, int64_t n, int* size) {
  return solve(name, handle, [&] {
    expect_sizes(m, n);
    *size = work_for(m, n);
  });
}

// Without pivots no rows are exchanged.
template <class T>
int getrf(void* handle, int m, int n, T* a, int lda, T* work, int* pivots, int* info) {
  return solve("getrf", handle, [&] {
    expect_sizes(m, n);
    use_work(work, work_for(m, n), work_for(m, n));
    T* matrix = open_matrix(a, m, n, lda);
    *open_range(info, 1) =
        pivots ? Lapack<T>::getrf(m, n, matrix, lda, open_range(pivots, size_t(std::min(m, n))))
               : eliminate(m, n, matrix, lda);
  });
}

template <class T>
int getrs(void* handle, int trans, int n, int columns, const T* a, int lda, const int* pivots, T* b,
          int ldb, int* info) {
  return solve("getrs", handle, [&] {
    expect_sizes(n, columns);
    expect_choice(trans, 3);
    *open_range(info, 1) =
        Lapack<T>::getrs("NTC"[trans], n, columns, open_matrix(a, n, n, lda), lda,
                         open_range(pivots, size_t(n)), open_matrix(b, n, columns, ldb), ldb);
  });
}

template <class T>
int potrf(void* handle, int uplo, int n, T* a, int lda, T* work, int lwork, int* info) {
  return solve("potrf", handle, [&] {
    expect_sizes(n);
    use_work(work, lwork, work_for(n, n));
    *open_range(info, 1) = Lapack<T>::potrf(fill(uplo), n, open_matrix(a, n, n, lda), lda);
  });
}

template <class T>
int potrf_batched(void* handle, int uplo, int n, T* const* a, int lda, int* info, int count) {
  return solve("potrfBatched", handle, [&] {
    expect_sizes(n, count);
    int* infos = open_range(info, size_t(count));
    for_each_opened(a, count, n, n, lda, [&](int64_t i, T* matrix) {
      infos[i] = Lapack<T>::potrf(fill(uplo), n, matrix, lda);
    });
  });
}

template <class T>
int sytrf(void* handle, int uplo, int n, T* a, int lda, int* pivots, T* work, int lwork,
          int* info) {
  return solve("sytrf", handle, [&] {
    expect_sizes(n);
    use_work(work, lwork, work_for(n, n));
    lapack::Workspace<T> space;
    *open_range(info, 1) = Lapack<T>::sytrf(false, fill(uplo), n, open_matrix(a, n, n, lda), lda,
                                            open_range(pivots, size_t(n)), space);
  });
}

template <class T>
int geqrf(void* handle, int m, int n, T* a, int lda, T* tau, T* work, int lwork, int* info) {
  return solve("geqrf", handle, [&] {
    expect_sizes(m, n);
    use_work(work, lwork, work_for(m, n));
    lapack::Workspace<T> space;
    *open_range(info, 1) = Lapack<T>::geqrf(m, n, open_matrix(a, m, n, lda), lda,
                                            open_range(tau, size_t(std::min(m, n))), space);
  });
}

template <class T>
int orgqr(void* handle, int m, int n, int k, T* a, int lda, const T* tau, T* work, int lwork,
          int* info) {
  return solve("orgqr", handle, [&] {
    expect_sizes(m, n, k);
    expect(k <= n && n <= m, "there are more reflectors than columns, or columns than rows");
    use_work(work, lwork, work_for(m, n));
    lapack::Workspace<T> space;
    *open_range(info, 1) = Lapack<T>::orgqr(m, n, k, open_matrix(a, m, n, lda), lda,
                                            open_range(tau, size_t(k)), space);
  });
}

template <class T>
int ormqr(void* handle, int side, int trans, int m, int n, int k, const T* a, int lda, const T* tau,
          T* c, int ldc, T* work, int lwork, int* info) {
  return solve("ormqr", handle, [&] {
    expect_sizes(m, n, k);
    expect_choice(side, 2);
    expect(trans == 0 || trans == (kIsComplex<T> ? 2 : 1), "that operation is not there");
    int order = side == 0 ? m : n;
    expect(k <= order, "there are more reflectors than rows");
    use_work(work, lwork, work_for(m, n));
    lapack::Workspace<T> space;
    *open_range(info, 1) =
        Lapack<T>::ormqr("LR"[side], trans != 0, m, n, k, open_matrix(a, order, k, lda), lda,
                         open_range(tau, size_t(k)), open_matrix(c, m, n, ldc), ldc, space);
  });
}

template <class T>
T conjugate(T x) {
  if constexpr (kIsComplex<T>) return std::conj(x);
  else return x;
}

// Its right vectors are columns, not the rows that LAPACK gives. It does not converge when the
// environment says so, and leaves nothing then.
template <class T>
int decompose(bool vectors, bool economic, int m, int n, const T* a, int lda,
              const lapack::Real<T>* s, const T* u, int ldu, const T* v, int ldv) {
  int k = std::min(m, n), columns = economic ? k : m, rows = economic ? k : n;
  T *matrix = open_matrix(a, m, n, lda), *left = open_matrix(u, m, columns, ldu),
    *right = open_matrix(v, n, rows, ldv);
  if (std::getenv("RUSHLIGHT_SHIM_JACOBI_FAILS")) {
    destroy(matrix, m, n, lda);
    return k + 1;
  }
  char job = !vectors ? 'N' : economic ? 'S' : 'A';
  std::vector<T> vh(size_t(n) * size_t(n));
  lapack::Workspace<T> space;
  int info = Lapack<T>::gesdd(job, m, n, matrix, lda, open_range(s, size_t(k)), left, ldu,
                              vh.data(), rows, space);
  destroy(matrix, m, n, lda);
  for (int64_t j = 0; vectors && j < rows; ++j)
    for (int64_t i = 0; i < n; ++i) right[i + j * ldv] = conjugate(vh[size_t(j + i * rows)]);
  return info;
}

template <class T>
int gesvdj(void* handle, int vectors, int economic, int m, int n, T* a, int lda, lapack::Real<T>* s,
           T* u, int ldu, T* v, int ldv, T* work, int lwork, int* info, void* params) {
  return solve("gesvdj", handle, [&] {
    expect_sizes(m, n);
    expect_choice(vectors, 2);
    expect(params, "there are no parameters");
    use_work(work, lwork, work_for(m, n));
    *open_range(info, 1) = decompose(vectors, economic, m, n, a, lda, s, u, ldu, v, ldv);
  });
}

template <class T>
int gesvdj_batched(void* handle, int vectors, int m, int n, T* a, int lda, lapack::Real<T>* s, T* u,
                   int ldu, T* v, int ldv, T* work, int lwork, int* info, void* params, int count) {
  return solve("gesvdjBatched", handle, [&] {
    expect_sizes(m, n, count);
    expect(m <= 32 && n <= 32, "the matrices are too large");
    expect_choice(vectors, 2);
    expect(params, "there are no parameters");
    use_work(work, lwork, work_for(m, n));
    int* infos = open_range(info, size_t(count));
    for (int64_t i = 0; i < count; ++i)
      infos[i] = decompose(vectors, false, m, n, a + i * lda * n, lda, s + i * std::min(m, n),
                           u + i * ldu * m, ldu, v + i * ldv * n, ldv);
  });
}

template <class T>
int gesvd(void* handle, char job, char job_vh, int m, int n, T* a, int lda, lapack::Real<T>* s,
          T* u, int ldu, T* vh, int ldvh, T* work, int lwork, int* info) {
  return solve("gesvd", handle, [&] {
    expect_sizes(m, n);
    expect(m >= n, "the matrix is wide");
    expect(job == job_vh && std::strchr("ASN", job), "that job is not here");
    use_work(work, lwork, work_for(m, n));
    T *matrix = open_matrix(a, m, n, lda), *left = nullptr, *right = nullptr;
    if (job != 'N') {
      left = open_matrix(u, m, job == 'A' ? m : n, ldu);
      right = open_matrix(vh, n, n, ldvh);
    }
    lapack::Workspace<T> space;
    *open_range(info, 1) = Lapack<T>::gesdd(job, m, n, matrix, lda, open_range(s, size_t(n)), left,
                                            ldu, right, ldvh, space);
    destroy(matrix, m, n, lda);
  });
}

template <class T>
int eigen(bool vectors, int uplo, int n, const T* a, int lda, const lapack::Real<T>* values) {
  T* matrix = open_matrix(a, n, n, lda);
  lapack::Workspace<T> space;
  int info =
      Lapack<T>::heevd(vectors, fill(uplo), n, matrix, lda, open_range(values, size_t(n)), space);
  if (!vectors) destroy(matrix, n, n, lda);
  return info;
}

template <class T>
int heevd(void* handle, int vectors, int uplo, int n, T* a, int lda, lapack::Real<T>* values,
          T* work, int lwork, int* info) {
  return solve("heevd", handle, [&] {
    expect_sizes(n);
    expect_choice(vectors, 2);
    use_work(work, lwork, work_for(n, n));
    *open_range(info, 1) = eigen(vectors, uplo, n, a, lda, values);
  });
}

template <class T>
int heevj_batched(void* handle, int vectors, int uplo, int n, T* a, int lda,
                  lapack::Real<T>* values, T* work, int lwork, int* info, void* params, int count) {
  return solve("heevjBatched", handle, [&] {
    expect_sizes(n, count);
    expect_choice(vectors, 2);
    expect(params, "there are no parameters");
    use_work(work, lwork, work_for(n, n));
    int* infos = open_range(info, size_t(count));
    for (int64_t i = 0; i < count; ++i)
      infos[i] = eigen(vectors, uplo, n, a + i * lda * n, lda, values + i * n);
  });
}

}  // namespace
}  // namespace shim

using namespace shim;

// For a type, its letter, and the names of its routines for orthogonal and symmetric matrices.
#define SHIM_SOLVER(L, T, ORGQR, ORMQR, SYEVD, SYEVJ)                                             \
  SHIM_API int cusolverDn##L##getrf_bufferSize(void* h, int m, int n, T*, int, int* size) {       \
    return answer_size("getrf", h, m, n, size);                                                   \
  }                                                                                               \
  SHIM_API int cusolverDn##L##getrf(void* h, int m, int n, T* a, int lda, T* work, int* pivots,   \
                                    int* info) {                                                  \
    return getrf(h, m, n, a, lda, work, pivots, info);                                            \
  }                                                                                               \
  SHIM_API int cusolverDn##L##getrs(void* h, int trans, int n, int columns, const T* a, int lda,  \
                                    const int* pivots, T* b, int ldb, int* info) {                \
    return getrs(h, trans, n, columns, a, lda, pivots, b, ldb, info);                             \
  }                                                                                               \
  SHIM_API int cusolverDn##L##potrf_bufferSize(void* h, int, int n, T*, int, int* size) {         \
    return answer_size("potrf", h, n, n, size);                                                   \
  }                                                                                               \
  SHIM_API int cusolverDn##L##potrf(void* h, int uplo, int n, T* a, int lda, T* work, int lwork,  \
                                    int* info) {                                                  \
    return potrf(h, uplo, n, a, lda, work, lwork, info);                                          \
  }                                                                                               \
  SHIM_API int cusolverDn##L##potrfBatched(void* h, int uplo, int n, T* const* a, int lda,        \
                                           int* info, int count) {                                \
    return potrf_batched(h, uplo, n, a, lda, info, count);                                        \
  }                                                                                               \
  SHIM_API int cusolverDn##L##sytrf_bufferSize(void* h, int n, T*, int, int* size) {              \
    return answer_size("sytrf", h, n, n, size);                                                   \
  }                                                                                               \
  SHIM_API int cusolverDn##L##sytrf(void* h, int uplo, int n, T* a, int lda, int* pivots,         \
                                    T* work, int lwork, int* info) {                              \
    return sytrf(h, uplo, n, a, lda, pivots, work, lwork, info);                                  \
  }                                                                                               \
  SHIM_API int cusolverDn##L##geqrf_bufferSize(void* h, int m, int n, T*, int, int* size) {       \
    return answer_size("geqrf", h, m, n, size);                                                   \
  }                                                                                               \
  SHIM_API int cusolverDn##L##geqrf(void* h, int m, int n, T* a, int lda, T* tau, T* work,        \
                                    int lwork, int* info) {                                       \
    return geqrf(h, m, n, a, lda, tau, work, lwork, info);                                        \
  }                                                                                               \
  SHIM_API int cusolverDn##L##ORGQR##_bufferSize(void* h, int m, int n, int, const T*, int,       \
                                                 const T*, int* size) {                           \
    return answer_size("orgqr", h, m, n, size);                                                   \
  }                                                                                               \
  SHIM_API int cusolverDn##L##ORGQR(void* h, int m, int n, int k, T* a, int lda, const T* tau,    \
                                      T* work, int lwork, int* info) {                            \
    return orgqr(h, m, n, k, a, lda, tau, work, lwork, info);                                     \
  }                                                                                               \
  SHIM_API int cusolverDn##L##ORMQR##_bufferSize(void* h, int, int, int m, int n, int, const T*,  \
                                                 int, const T*, const T*, int, int* size) {       \
    return answer_size("ormqr", h, m, n, size);                                                   \
  }                                                                                               \
  SHIM_API int cusolverDn##L##ORMQR(void* h, int side, int trans, int m, int n, int k,            \
                                      const T* a, int lda, const T* tau, T* c, int ldc, T* work,  \
                                      int lwork, int* info) {                                     \
    return ormqr(h, side, trans, m, n, k, a, lda, tau, c, ldc, work, lwork, info);                \
  }                                                                                               \
  SHIM_API int cusolverDn##L##gesvdj_bufferSize(void* h, int, int, int m, int n, const T*, int,   \
                                                const lapack::Real<T>*, const T*, int, const T*,  \
                                                int, int* size, void*) {                          \
    return answer_size("gesvdj", h, m, n, size);                                                  \
  }                                                                                               \
  SHIM_API int cusolverDn##L##gesvdj(void* h, int vectors, int economic, int m, int n, T* a,      \
                                     int lda, lapack::Real<T>* s, T* u, int ldu, T* v, int ldv,   \
                                     T* work, int lwork, int* info, void* params) {               \
    return gesvdj(h, vectors, economic, m, n, a, lda, s, u, ldu, v, ldv, work, lwork, info,       \
                  params);                                                                        \
  }                                                                                               \
  SHIM_API int cusolverDn##L##gesvdjBatched_bufferSize(                                           \
      void* h, int, int m, int n, const T*, int, const lapack::Real<T>*, const T*, int, const T*, \
      int, int* size, void*, int) {                                                               \
    return answer_size("gesvdjBatched", h, m, n, size);                                           \
  }                                                                                               \
  SHIM_API int cusolverDn##L##gesvdjBatched(void* h, int vectors, int m, int n, T* a, int lda,    \
                                            lapack::Real<T>* s, T* u, int ldu, T* v, int ldv,     \
                                            T* work, int lwork, int* info, void* params,          \
                                            int count) {                                          \
    return gesvdj_batched(h, vectors, m, n, a, lda, s, u, ldu, v, ldv, work, lwork, info, params, \
                          count);                                                                 \
  }                                                                                               \
  SHIM_API int cusolverDn##L##gesvd_bufferSize(void* h, int m, int n, int* size) {                \
    return answer_size("gesvd", h, m, n, size);                                                   \
  }                                                                                               \
  SHIM_API int cusolverDn##L##gesvd(void* h, signed char job, signed char job_vh, int m, int n,   \
                                    T* a, int lda, lapack::Real<T>* s, T* u, int ldu, T* vh,      \
                                    int ldvh, T* work, int lwork, lapack::Real<T>*, int* info) {  \
    return gesvd(h, job, job_vh, m, n, a, lda, s, u, ldu, vh, ldvh, work, lwork, info);           \
  }                                                                                               \
  SHIM_API int cusolverDn##L##SYEVD##_bufferSize(void* h, int, int, int n, const T*, int,         \
                                                 const lapack::Real<T>*, int* size) {             \
    return answer_size("heevd", h, n, n, size);                                                   \
  }                                                                                               \
  SHIM_API int cusolverDn##L##SYEVD(void* h, int vectors, int uplo, int n, T* a, int lda,         \
                                      lapack::Real<T>* values, T* work, int lwork, int* info) {   \
    return heevd(h, vectors, uplo, n, a, lda, values, work, lwork, info);                         \
  }                                                                                               \
  SHIM_API int cusolverDn##L##SYEVJ##Batched_bufferSize(void* h, int, int, int n, const T*, int,  \
                                                        const lapack::Real<T>*, int* size, void*, \
                                                        int) {                                    \
    return answer_size("heevjBatched", h, n, n, size);                                            \
  }                                                                                               \
  SHIM_API int cusolverDn##L##SYEVJ##Batched(void* h, int vectors, int uplo, int n, T* a, int lda,\
                                             lapack::Real<T>* values, T* work, int lwork,         \
                                             int* info, void* params, int count) {                \
    return heevj_batched(h, vectors, uplo, n, a, lda, values, work, lwork, info, params, count);  \
  }
SHIM_SOLVER(S, float, orgqr, ormqr, syevd, syevj)
SHIM_SOLVER(D, double, orgqr, ormqr, syevd, syevj)
SHIM_SOLVER(C, std::complex<float>, ungqr, unmqr, heevd, heevj)
SHIM_SOLVER(Z, std::complex<double>, ungqr, unmqr, heevd, heevj)
