#include "core/device/cusolver.h"

#include <algorithm>
#include <array>
#include <limits>
#include <mutex>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/device/cuda.h"
#include "core/device/cuda_memory.h"
#include "core/device/cusolver_library.h"

namespace rushlight::cusolver {
namespace {

void check(Status status, const char* what) {
  // cusolverStatus_t; cuBLAS has other numbers, and says as little.
  constexpr std::array kNotes = {"",
                                 "not initialized",
                                 "allocation failed",
                                 "invalid value",
                                 "architecture mismatch",
                                 "mapping error",
                                 "execution failed",
                                 "internal error",
                                 "matrix type not supported",
                                 "not supported"};
  bool is_known = status >= 0 && size_t(status) < kNotes.size();
  CHECK(status == kSuccess, "cuSOLVER error: ", is_known ? kNotes[size_t(status)] : "status ",
        is_known ? "" : std::to_string(status), " (from ", what, ").");
}

// They live as long as the process: at exit the driver may be gone before them.
struct Handles {
  std::mutex mutex;
  Solver solver = nullptr;
  Blas blas = nullptr;
  Params params = nullptr;
  SvdParams svd_params = nullptr;
  EighParams eigh_params = nullptr;  // made last
};
Handles& handles_of(int device) {
  static auto* handles = new std::array<Handles, cuda::kMaxDevices>;
  return (*handles)[size_t(device)];
}

// The handles of the current device, bound to its current stream, for the length of a call.
class Session {
 public:
  Session()
      : device_(cuda::current_device()), handles_(handles_of(device_)), lock_(handles_.mutex) {
    cuda::activate(device_);
    const Functions& f = functions();
    if (!handles_.eigh_params) {
      check(f.cusolverDnCreate(&handles_.solver), "cusolverDnCreate");
      check(f.cublasCreate_v2(&handles_.blas), "cublasCreate");
      check(f.cusolverDnCreateParams(&handles_.params), "cusolverDnCreateParams");
      check(f.cusolverDnCreateGesvdjInfo(&handles_.svd_params), "cusolverDnCreateGesvdjInfo");
      check(f.cusolverDnCreateSyevjInfo(&handles_.eigh_params), "cusolverDnCreateSyevjInfo");
    }
    cuda::CUstream stream = cuda::current_stream(device_).handle;
    check(f.cusolverDnSetStream(handles_.solver, stream), "cusolverDnSetStream");
    check(f.cublasSetStream_v2(handles_.blas, stream), "cublasSetStream");
  }

  Solver solver() const { return handles_.solver; }
  Blas blas() const { return handles_.blas; }
  Params params() const { return handles_.params; }
  SvdParams svd_params() const { return handles_.svd_params; }
  EighParams eigh_params() const { return handles_.eigh_params; }

  // Asks for the number of elements of work, and calls the routine with it.
  template <class T, class SizeOf, class Routine>
  void call(const char* name, SizeOf&& size_of, Routine&& routine) const {
    int size = 0;
    check(size_of(&size), name);
    CHECK(size >= 0, "a matrix is too large for cuSOLVER's ", name, ".");
    cuda::CudaBuffer work(size_t(std::max(size, 1)) * sizeof(T), device_);
    check(routine(static_cast<T*>(work.data()), size), name);
  }
  // The same with bytes of work on the device and on the host.
  template <class SizeOf, class Routine>
  void call_in_bytes(const char* name, SizeOf&& size_of, Routine&& routine) const {
    size_t device_bytes = 0, host_bytes = 0;
    check(size_of(&device_bytes, &host_bytes), name);
    cuda::CudaBuffer work(device_bytes, device_);
    std::vector<char> host_work(host_bytes);
    check(routine(work.data(), device_bytes, host_work.data(), host_bytes), name);
    // What is queued may still use the host's.
    if (host_bytes == 0) return;
    cuda::observe_wait();
    cuda::synchronize(cuda::current_stream(device_));
  }

 private:
  int device_;
  Handles& handles_;
  std::lock_guard<std::mutex> lock_;
};

// Where routines that cannot fail write their info.
class UnreadInfo {
 public:
  operator int*() const { return static_cast<int*>(buffer_.data()); }  // NOLINT

 private:
  cuda::CudaBuffer buffer_{sizeof(int), cuda::current_device()};
};

int as_int(int64_t size) {
  constexpr int64_t kLargest = std::numeric_limits<int>::max();
  CHECK(size <= kLargest, "a matrix or a batch has a size of ", size,
        ", but cuSOLVER takes at most ", kLargest);
  return int(size);
}

Operation operation(char trans) {
  return trans == 'N' ? kAsIs : trans == 'T' ? kTransposed : kAdjoint;
}
Fill fill(bool upper) { return upper ? kUpper : kLower; }
Diagonal diagonal(bool unitriangular) { return unitriangular ? kUnitDiagonal : kAnyDiagonal; }

}  // namespace

template <class T>
void Cusolver<T>::getrf(int64_t m, int64_t n, T* a, int* pivots, int* info) {
  Session s;
  const auto& f = functions_of<T>();
  int rows = as_int(m), columns = as_int(n);
  s.call<T>(
      "getrf", [&](int* size) { return f.getrf_size(s.solver(), rows, columns, a, rows, size); },
      [&](T* work, int) {
        return f.getrf(s.solver(), rows, columns, a, rows, work, pivots, info);
      });
}

template <class T>
void Cusolver<T>::getrf(int64_t n, Many<T> a, int* pivots, int* info) {
  Session s;
  int size = as_int(n);
  check(functions_of<T>().getrf_batched(s.blas(), size, a.matrices, size, pivots, info,
                                        as_int(a.count)),
        "getrfBatched");
}

template <class T>
void Cusolver<T>::getrs(char trans, int64_t n, int64_t columns, const T* a, const int* pivots,
                        T* b) {
  Session s;
  int size = as_int(n);
  check(functions_of<T>().getrs(s.solver(), operation(trans), size, as_int(columns), a, size,
                                pivots, b, size, UnreadInfo()),
        "getrs");
}

template <class T>
void Cusolver<T>::getrs(char trans, int64_t n, int64_t columns, Many<T> a, const int* pivots,
                        Many<T> b) {
  Session s;
  int size = as_int(n), wrong_argument = 0;
  check(functions_of<T>().getrs_batched(s.blas(), operation(trans), size, as_int(columns),
                                        a.matrices, size, pivots, b.matrices, size, &wrong_argument,
                                        as_int(a.count)),
        "getrsBatched");
}

template <class T>
void Cusolver<T>::potrf(bool upper, int64_t n, T* a, int* info) {
  Session s;
  const auto& f = functions_of<T>();
  int size = as_int(n);
  s.call<T>(
      "potrf",
      [&](int* wanted) { return f.potrf_size(s.solver(), fill(upper), size, a, size, wanted); },
      [&](T* work, int wanted) {
        return f.potrf(s.solver(), fill(upper), size, a, size, work, wanted, info);
      });
}

template <class T>
void Cusolver<T>::potrf(bool upper, int64_t n, Many<T> a, int* info) {
  Session s;
  int size = as_int(n);
  check(functions_of<T>().potrf_batched(s.solver(), fill(upper), size, a.matrices, size, info,
                                        as_int(a.count)),
        "potrfBatched");
}

template <class T>
void Cusolver<T>::trsm(bool upper, char trans, bool unitriangular, int64_t n, int64_t columns,
                       const T* a, T* b) {
  Session s;
  int size = as_int(n);
  T one(1);
  check(functions_of<T>().trsm(s.blas(), kLeft, fill(upper), operation(trans),
                               diagonal(unitriangular), size, as_int(columns), &one, a, size, b,
                               size),
        "trsm");
}

template <class T>
void Cusolver<T>::trsm(bool upper, char trans, bool unitriangular, int64_t n, int64_t columns,
                       Many<T> a, Many<T> b) {
  Session s;
  int size = as_int(n);
  T one(1);
  check(functions_of<T>().trsm_batched(s.blas(), kLeft, fill(upper), operation(trans),
                                       diagonal(unitriangular), size, as_int(columns), &one,
                                       a.matrices, size, b.matrices, size, as_int(a.count)),
        "trsmBatched");
}

template <class T>
void Cusolver<T>::sytrf(int64_t n, T* a, int* pivots, int* info) {
  Session s;
  const auto& f = functions_of<T>();
  int size = as_int(n);
  s.call<T>(
      "sytrf", [&](int* wanted) { return f.sytrf_size(s.solver(), size, a, size, wanted); },
      [&](T* work, int wanted) {
        return f.sytrf(s.solver(), kLower, size, a, size, pivots, work, wanted, info);
      });
}

template <class T>
void Cusolver<T>::hetrf(int64_t n, T* a, int64_t* pivots, int* info) {
  static auto* const size_of = load<HetrfSize>("cusolverDnXhetrf_bufferSize");
  static auto* const run = load<Hetrf>("cusolverDnXhetrf");
  Session s;
  constexpr DataType type = kDataType<T>;
  s.call_in_bytes(
      "Xhetrf",
      [&](size_t* on_device, size_t* on_host) {
        return size_of(s.solver(), s.params(), kLower, n, type, a, n, pivots, type, on_device,
                       on_host);
      },
      [&](void* work, size_t bytes, void* host_work, size_t host_bytes) {
        return run(s.solver(), s.params(), kLower, n, type, a, n, pivots, type, work, bytes,
                   host_work, host_bytes, info);
      });
}

template <class T>
void Cusolver<T>::sytrs(bool hermitian, int64_t n, int64_t columns, const T* a,
                        const int64_t* pivots, T* b) {
  Session s;
  constexpr DataType type = kDataType<T>;
  auto solve = [&](const char* name, auto* size_of, auto* run, auto... first) {
    s.call_in_bytes(
        name,
        [&](size_t* on_device, size_t* on_host) {
          return size_of(s.solver(), first..., kLower, n, columns, type, a, n, pivots, type, b, n,
                         on_device, on_host);
        },
        [&](void* work, size_t bytes, void* host_work, size_t host_bytes) {
          return run(s.solver(), first..., kLower, n, columns, type, a, n, pivots, type, b, n, work,
                     bytes, host_work, host_bytes, UnreadInfo());
        });
  };
  if (hermitian && kIsComplex<T>)
    solve("Xhetrs", load<SytrsSize<Params>>("cusolverDnXhetrs_bufferSize"),
          load<Sytrs<Params>>("cusolverDnXhetrs"), s.params());
  else
    solve("Xsytrs", load<SytrsSize<>>("cusolverDnXsytrs_bufferSize"),
          load<Sytrs<>>("cusolverDnXsytrs"));
}

template <class T>
void Cusolver<T>::geqrf(int64_t m, int64_t n, T* a, T* tau) {
  Session s;
  const auto& f = functions_of<T>();
  int rows = as_int(m), columns = as_int(n);
  s.call<T>(
      "geqrf", [&](int* size) { return f.geqrf_size(s.solver(), rows, columns, a, rows, size); },
      [&](T* work, int size) {
        return f.geqrf(s.solver(), rows, columns, a, rows, tau, work, size, UnreadInfo());
      });
}

template <class T>
void Cusolver<T>::orgqr(int64_t m, int64_t n, int64_t k, T* a, const T* tau) {
  Session s;
  const auto& f = functions_of<T>();
  int rows = as_int(m), columns = as_int(n), count = as_int(k);
  s.call<T>(
      "orgqr",
      [&](int* size) { return f.orgqr_size(s.solver(), rows, columns, count, a, rows, tau, size); },
      [&](T* work, int size) {
        return f.orgqr(s.solver(), rows, columns, count, a, rows, tau, work, size, UnreadInfo());
      });
}

template <class T>
void Cusolver<T>::ormqr(bool left, bool adjoint, int64_t m, int64_t n, int64_t k, const T* a,
                        const T* tau, T* c) {
  Session s;
  const auto& f = functions_of<T>();
  Side side = left ? kLeft : kRight;
  Operation turn = !adjoint ? kAsIs : kIsComplex<T> ? kAdjoint : kTransposed;
  int rows = as_int(m), columns = as_int(n), count = as_int(k), lda = left ? rows : columns;
  s.call<T>(
      "ormqr",
      [&](int* size) {
        return f.ormqr_size(s.solver(), side, turn, rows, columns, count, a, lda, tau, c, rows,
                            size);
      },
      [&](T* work, int size) {
        return f.ormqr(s.solver(), side, turn, rows, columns, count, a, lda, tau, c, rows, work,
                       size, UnreadInfo());
      });
}

template <class T>
void Cusolver<T>::gesvdj(bool vectors, bool economic, int64_t m, int64_t n, T* a, Real<T>* s, T* u,
                         T* v, int* info) {
  Session session;
  const auto& f = functions_of<T>();
  Vectors wanted = vectors ? kVectors : kNoVectors;
  int rows = as_int(m), columns = as_int(n);
  session.call<T>(
      "gesvdj",
      [&](int* size) {
        return f.gesvdj_size(session.solver(), wanted, economic, rows, columns, a, rows, s, u, rows,
                             v, columns, size, session.svd_params());
      },
      [&](T* work, int size) {
        return f.gesvdj(session.solver(), wanted, economic, rows, columns, a, rows, s, u, rows, v,
                        columns, work, size, info, session.svd_params());
      });
}

template <class T>
void Cusolver<T>::gesvdj(bool vectors, int64_t m, int64_t n, T* a, Real<T>* s, T* u, T* v,
                         int* info, int64_t count) {
  Session session;
  const auto& f = functions_of<T>();
  Vectors wanted = vectors ? kVectors : kNoVectors;
  int rows = as_int(m), columns = as_int(n), many = as_int(count);
  session.call<T>(
      "gesvdjBatched",
      [&](int* size) {
        return f.gesvdj_batched_size(session.solver(), wanted, rows, columns, a, rows, s, u, rows,
                                     v, columns, size, session.svd_params(), many);
      },
      [&](T* work, int size) {
        return f.gesvdj_batched(session.solver(), wanted, rows, columns, a, rows, s, u, rows, v,
                                columns, work, size, info, session.svd_params(), many);
      });
}

template <class T>
void Cusolver<T>::gesvd(char job, int64_t m, int64_t n, T* a, Real<T>* s, T* u, T* vh, int* info) {
  Session session;
  const auto& f = functions_of<T>();
  int rows = as_int(m), columns = as_int(n);
  session.call<T>(
      "gesvd", [&](int* size) { return f.gesvd_size(session.solver(), rows, columns, size); },
      [&](T* work, int size) {
        Real<T>* no_report = nullptr;  // of what did not converge
        return f.gesvd(session.solver(), job, job, rows, columns, a, rows, s, u, rows, vh, columns,
                       work, size, no_report, info);
      });
}

template <class T>
void Cusolver<T>::heevd(bool vectors, bool upper, int64_t n, T* a, Real<T>* values, int* info) {
  Session s;
  const auto& f = functions_of<T>();
  Vectors wanted = vectors ? kVectors : kNoVectors;
  int order = as_int(n);
  s.call<T>(
      "heevd",
      [&](int* size) {
        return f.heevd_size(s.solver(), wanted, fill(upper), order, a, order, values, size);
      },
      [&](T* work, int size) {
        return f.heevd(s.solver(), wanted, fill(upper), order, a, order, values, work, size, info);
      });
}

template <class T>
void Cusolver<T>::heevj(bool vectors, bool upper, int64_t n, T* a, Real<T>* values, int* info,
                        int64_t count) {
  Session s;
  const auto& f = functions_of<T>();
  Vectors wanted = vectors ? kVectors : kNoVectors;
  int order = as_int(n), many = as_int(count);
  s.call<T>(
      "heevjBatched",
      [&](int* size) {
        return f.heevj_size(s.solver(), wanted, fill(upper), order, a, order, values, size,
                            s.eigh_params(), many);
      },
      [&](T* work, int size) {
        return f.heevj(s.solver(), wanted, fill(upper), order, a, order, values, work, size, info,
                       s.eigh_params(), many);
      });
}

template <class T>
void Cusolver<T>::geev(int64_t n, T* a, std::complex<Real<T>>* values, T* vectors, int* info) {
  static auto* const size_of = load<GeevSize>("cusolverDnXgeev_bufferSize");
  static auto* const run = load<Geev>("cusolverDnXgeev");
  Session s;
  // Values are complex also where the computation and the vectors are real.
  constexpr DataType type = kDataType<T>, of_values = kDataType<std::complex<Real<T>>>;
  Vectors right = vectors ? kVectors : kNoVectors;
  s.call_in_bytes(
      "Xgeev",
      [&](size_t* on_device, size_t* on_host) {
        return size_of(s.solver(), s.params(), kNoVectors, right, n, type, a, n, of_values, values,
                       type, nullptr, n, type, vectors, n, type, on_device, on_host);
      },
      [&](void* work, size_t bytes, void* host_work, size_t host_bytes) {
        return run(s.solver(), s.params(), kNoVectors, right, n, type, a, n, of_values, values,
                   type, nullptr, n, type, vectors, n, type, work, bytes, host_work, host_bytes,
                   info);
      });
}

template struct Cusolver<float>;
template struct Cusolver<double>;
template struct Cusolver<std::complex<float>>;
template struct Cusolver<std::complex<double>>;

}  // namespace rushlight::cusolver
