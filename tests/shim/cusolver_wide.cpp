// Owns cuSOLVER's entry points for sizes of 64 bits, which exist once for all types.
#include <vector>

#include "tests/shim/solver.h"

namespace shim {
namespace {

// cudaDataType
int complex_type(int type) { return type | 4; }
template <class F>
void visit_data_type(int type, F&& f) {
  switch (type) {
    case 0: return f(float());
    case 1: return f(double());
    case 4: return f(std::complex<float>());
    case 5: return f(std::complex<double>());
    default: expect(false, "that data type is not there");
  }
}

constexpr size_t kHostBytes = 40;

int answer_bytes(const char* name, void* handle, int64_t m, int64_t n, size_t* on_device,
                 size_t* on_host) {
  return solve(name, handle, [&] {
    expect_sizes(m, n);
    *on_device = size_t(work_for(m, n)) * sizeof(std::complex<double>);
    *on_host = kHostBytes;
  });
}
void use_bytes(void* work, size_t bytes, int64_t m, int64_t n, void* host_work, size_t host_bytes) {
  use_work(static_cast<std::complex<double>*>(work), int64_t(bytes / sizeof(std::complex<double>)),
           work_for(m, n));
  expect(host_bytes >= kHostBytes && !device_memory.find_pages(host_work),
         "there is not enough room to work on the host");
  std::memset(host_work, kPoison, kHostBytes);
}

// The pivots are as wide as the interface wants them.
template <class T>
int factor_hermitian(int uplo, int64_t n, T* a, int64_t lda, int64_t* pivots) {
  std::vector<int> narrow(static_cast<size_t>(n));
  lapack::Workspace<T> space;
  int info =
      Lapack<T>::sytrf(true, fill(uplo), n, open_matrix(a, n, n, lda), lda, narrow.data(), space);
  std::copy(narrow.begin(), narrow.end(), open_range(pivots, size_t(n)));
  return info;
}
template <class T>
int solve_symmetric(bool hermitian, int uplo, int64_t n, int64_t columns, const T* a, int64_t lda,
                    const int64_t* pivots, T* b, int64_t ldb) {
  expect_sizes(n, columns);
  const int64_t* wide = open_range(pivots, size_t(n));
  std::vector<int> narrow(wide, wide + n);
  return Lapack<T>::sytrs(hermitian, fill(uplo), n, columns, open_matrix(a, n, n, lda), lda,
                          narrow.data(), open_matrix(b, n, columns, ldb), ldb);
}

// Values are complex; of the vectors of a conjugate pair there are the real and imaginary parts.
template <class T>
int eigen(int64_t n, T* a, int64_t lda, std::complex<lapack::Real<T>>* values, T* vectors,
          int64_t ldv) {
  using Complex = std::complex<lapack::Real<T>>;
  T* matrix = open_matrix(a, n, n, lda);
  Complex* found = open_range(values, size_t(n));
  std::vector<Complex> columns(vectors ? size_t(n * n) : 0);
  lapack::Workspace<T> space;
  int info = Lapack<T>::geev(n, matrix, lda, found, vectors ? columns.data() : nullptr, space);
  destroy(matrix, n, n, lda);
  if (!vectors) return info;
  T* out = open_matrix(vectors, n, n, ldv);
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t i = 0; i < n; ++i) {
      Complex x = columns[size_t(i + j * n)];
      if constexpr (kIsComplex<T>) out[i + j * ldv] = x;
      else out[i + j * ldv] = found[j].imag() < 0 ? -x.imag() : x.real();
    }
  }
  return info;
}

}  // namespace
}  // namespace shim

using namespace shim;

SHIM_API int cusolverDnXgeev_bufferSize(void* handle, void* params, int left, int right, int64_t n,
                                        int type, const void*, int64_t, int value_type, const void*,
                                        int, const void*, int64_t, int vector_type, const void*,
                                        int64_t, int compute, size_t* on_device, size_t* on_host) {
  bool fits = params && left == 0 && right >= 0 && right <= 1 && vector_type == type &&
              compute == type && value_type == complex_type(type);
  return fits ? answer_bytes("Xgeev", handle, n, n, on_device, on_host) : int(kRefused);
}

SHIM_API int cusolverDnXgeev(void* handle, void*, int, int right, int64_t n, int type, void* a,
                             int64_t lda, int, void* values, int, void*, int64_t, int,
                             void* vectors, int64_t ldvr, int, void* work, size_t bytes,
                             void* host_work, size_t host_bytes, int* info) {
  return solve("Xgeev", handle, [&] {
    use_bytes(work, bytes, n, n, host_work, host_bytes);
    visit_data_type(type, [&]<class T>(T) {
      *open_range(info, 1) =
          eigen(n, static_cast<T*>(a), lda, static_cast<std::complex<lapack::Real<T>>*>(values),
                right ? static_cast<T*>(vectors) : nullptr, ldvr);
    });
  });
}

SHIM_API int cusolverDnXhetrf_bufferSize(void* handle, void* params, int, int64_t n, int type,
                                         const void*, int64_t, const int64_t*, int compute,
                                         size_t* on_device, size_t* on_host) {
  bool fits = params && type == complex_type(type) && compute == type;
  return fits ? answer_bytes("Xhetrf", handle, n, n, on_device, on_host) : int(kRefused);
}

SHIM_API int cusolverDnXhetrf(void* handle, void*, int uplo, int64_t n, int type, void* a,
                              int64_t lda, int64_t* pivots, int, void* work, size_t bytes,
                              void* host_work, size_t host_bytes, int* info) {
  return solve("Xhetrf", handle, [&] {
    use_bytes(work, bytes, n, n, host_work, host_bytes);
    visit_data_type(type, [&]<class T>(T) {
      *open_range(info, 1) = factor_hermitian(uplo, n, static_cast<T*>(a), lda, pivots);
    });
  });
}

SHIM_API int cusolverDnXsytrs_bufferSize(void* handle, int, int64_t n, int64_t columns, int,
                                         const void*, int64_t, const int64_t*, int, void*, int64_t,
                                         size_t* on_device, size_t* on_host) {
  return answer_bytes("Xsytrs", handle, n, columns, on_device, on_host);
}

SHIM_API int cusolverDnXhetrs_bufferSize(void* handle, void*, int, int64_t n, int64_t columns, int,
                                         const void*, int64_t, const int64_t*, int, void*, int64_t,
                                         size_t* on_device, size_t* on_host) {
  return answer_bytes("Xhetrs", handle, n, columns, on_device, on_host);
}

namespace {

int sytrs(bool hermitian, void* handle, int uplo, int64_t n, int64_t columns, int type,
          const void* a, int64_t lda, const int64_t* pivots, int b_type, void* b, int64_t ldb,
          void* work, size_t bytes, void* host_work, size_t host_bytes, int* info) {
  return solve(hermitian ? "Xhetrs" : "Xsytrs", handle, [&] {
    expect(b_type == type, "types differ");
    expect(!hermitian || type == complex_type(type), "real types are refused");
    use_bytes(work, bytes, n, columns, host_work, host_bytes);
    visit_data_type(type, [&]<class T>(T) {
      *open_range(info, 1) = solve_symmetric(hermitian, uplo, n, columns, static_cast<const T*>(a),
                                             lda, pivots, static_cast<T*>(b), ldb);
    });
  });
}

}  // namespace

SHIM_API int cusolverDnXsytrs(void* handle, int uplo, int64_t n, int64_t columns, int type,
                              const void* a, int64_t lda, const int64_t* pivots, int b_type,
                              void* b, int64_t ldb, void* work, size_t bytes, void* host_work,
                              size_t host_bytes, int* info) {
  return sytrs(false, handle, uplo, n, columns, type, a, lda, pivots, b_type, b, ldb, work, bytes,
               host_work, host_bytes, info);
}

SHIM_API int cusolverDnXhetrs(void* handle, void*, int uplo, int64_t n, int64_t columns, int type,
                              const void* a, int64_t lda, const int64_t* pivots, int b_type,
                              void* b, int64_t ldb, void* work, size_t bytes, void* host_work,
                              size_t host_bytes, int* info) {
  return sytrs(true, handle, uplo, n, columns, type, a, lda, pivots, b_type, b, ldb, work, bytes,
               host_work, host_bytes, info);
}
