#include "core/device/lapack.h"

#include <algorithm>
#include <limits>
#include <string>
#include <type_traits>

#include "core/base/error.h"
#include "core/device/dynamic_library.h"
#include "core/device/openblas.h"

namespace rushlight::lapack {
namespace {

using openblas::kIsComplex;

// _(name here, name in the library between scipy_, the type's letter and an underscore)
#define LAPACK_FUNCTIONS(_)                    \
  _(getrf, "getrf")                            \
  _(laswp, "laswp")                            \
  _(gemm, "gemm")                              \
  _(getrs, "getrs")                            \
  _(potrf, "potrf")                            \
  _(trsm, "trsm")                              \
  _(sytrf, "sytrf")                            \
  _(sytrs, "sytrs")                            \
  _(hetrf, kIsComplex<T> ? "hetrf" : "sytrf")  \
  _(hetrs, kIsComplex<T> ? "hetrs" : "sytrs")  \
  _(geqrf, "geqrf")                            \
  _(orgqr, kIsComplex<T> ? "ungqr" : "orgqr")  \
  _(larft, "larft")                            \
  _(larfb, "larfb")                            \
  _(ormqr, kIsComplex<T> ? "unmqr" : "ormqr")  \
  _(gesdd, "gesdd")                            \
  _(heevd, kIsComplex<T> ? "heevd" : "syevd")  \
  _(geev, "geev")                              \
  _(gels, "gels")                              \
  _(gelsy, "gelsy")                            \
  _(gelsd, "gelsd")                            \
  _(gelss, "gelss")

// As Fortran has them: all by address, and after the arguments the length of each string.
using In = const int*;
using Char = const char*;

template <class T, bool is_complex = kIsComplex<T>>
struct Functions {
  using Gesdd = void(Char job, In m, In n, T* a, In lda, T* s, T* u, In ldu, T* vh, In ldvh,
                     T* work, In lwork, int* iwork, int* info, size_t);
  using Heevd = void(Char job, Char uplo, In n, T* a, In lda, T* w, T* work, In lwork, int* iwork,
                     In liwork, int* info, size_t, size_t);
  using Geev = void(Char left, Char right, In n, T* a, In lda, T* wr, T* wi, T* vl, In ldvl, T* vr,
                    In ldvr, T* work, In lwork, int* info, size_t, size_t);
  using Gelsy = void(In m, In n, In columns, T* a, In lda, T* b, In ldb, int* order, const T* rcond,
                     int* rank, T* work, In lwork, int* info);
  using Gelsd = void(In m, In n, In columns, T* a, In lda, T* b, In ldb, T* s, const T* rcond,
                     int* rank, T* work, In lwork, int* iwork, int* info);
  using Gelss = void(In m, In n, In columns, T* a, In lda, T* b, In ldb, T* s, const T* rcond,
                     int* rank, T* work, In lwork, int* info);
};
template <class T>
struct Functions<T, true> {
  using R = Real<T>;
  using Gesdd = void(Char job, In m, In n, T* a, In lda, R* s, T* u, In ldu, T* vh, In ldvh,
                     T* work, In lwork, R* rwork, int* iwork, int* info, size_t);
  using Heevd = void(Char job, Char uplo, In n, T* a, In lda, R* w, T* work, In lwork, R* rwork,
                     In lrwork, int* iwork, In liwork, int* info, size_t, size_t);
  using Geev = void(Char left, Char right, In n, T* a, In lda, T* w, T* vl, In ldvl, T* vr, In ldvr,
                    T* work, In lwork, R* rwork, int* info, size_t, size_t);
  using Gelsy = void(In m, In n, In columns, T* a, In lda, T* b, In ldb, int* order, const R* rcond,
                     int* rank, T* work, In lwork, R* rwork, int* info);
  using Gelsd = void(In m, In n, In columns, T* a, In lda, T* b, In ldb, R* s, const R* rcond,
                     int* rank, T* work, In lwork, R* rwork, int* iwork, int* info);
  using Gelss = void(In m, In n, In columns, T* a, In lda, T* b, In ldb, R* s, const R* rcond,
                     int* rank, T* work, In lwork, R* rwork, int* info);
};

template <class T>
struct Table {
  using Sytrf = void(Char uplo, In n, T* a, In lda, int* pivots, T* work, In lwork, int* info,
                     size_t);
  using Sytrs = void(Char uplo, In n, In columns, const T* a, In lda, const int* pivots, T* b,
                     In ldb, int* info, size_t);

  void (*getrf)(In m, In n, T* a, In lda, int* pivots, int* info);
  void (*laswp)(In n, T* a, In lda, In first, In last, const int* pivots, In step);
  void (*gemm)(Char transa, Char transb, In m, In n, In k, const T* alpha, const T* a, In lda,
               const T* b, In ldb, const T* beta, T* c, In ldc, size_t, size_t);
  void (*getrs)(Char trans, In n, In columns, const T* a, In lda, const int* pivots, T* b, In ldb,
                int* info, size_t);
  void (*potrf)(Char uplo, In n, T* a, In lda, int* info, size_t);
  void (*trsm)(Char side, Char uplo, Char trans, Char diag, In m, In n, const T* alpha, const T* a,
               In lda, T* b, In ldb, size_t, size_t, size_t, size_t);
  Sytrf *sytrf, *hetrf;
  Sytrs *sytrs, *hetrs;
  void (*geqrf)(In m, In n, T* a, In lda, T* tau, T* work, In lwork, int* info);
  void (*orgqr)(In m, In n, In k, T* a, In lda, const T* tau, T* work, In lwork, int* info);
  void (*larft)(Char direct, Char storev, In m, In k, const T* v, In ldv, const T* tau, T* t,
                In ldt, size_t, size_t);
  void (*larfb)(Char side, Char trans, Char direct, Char storev, In m, In n, In k, const T* v,
                In ldv, const T* t, In ldt, T* c, In ldc, T* work, In ldwork, size_t, size_t,
                size_t, size_t);
  void (*ormqr)(Char side, Char trans, In m, In n, In k, const T* a, In lda, const T* tau, T* c,
                In ldc, T* work, In lwork, int* info, size_t, size_t);
  typename Functions<T>::Gesdd* gesdd;
  typename Functions<T>::Heevd* heevd;
  typename Functions<T>::Geev* geev;
  void (*gels)(Char trans, In m, In n, In columns, T* a, In lda, T* b, In ldb, T* work, In lwork,
               int* info, size_t);
  typename Functions<T>::Gelsy* gelsy;
  typename Functions<T>::Gelsd* gelsd;
  typename Functions<T>::Gelss* gelss;
};

template <class T>
const Table<T>& table() {
  static const Table<T> loaded = [] {
    using openblas::kTypeLetter, openblas::library;
    Table<T> fresh;
#define LAPACK_LOAD(member, name) \
  library().load(fresh.member, (std::string("scipy_") + kTypeLetter<T> + (name) + "_").c_str());
    LAPACK_FUNCTIONS(LAPACK_LOAD)
#undef LAPACK_LOAD
    return fresh;
  }();
  return loaded;
}

// A size as LAPACK takes it: 32 bits, by address.
class Size {
 public:
  explicit Size(int64_t value) : value_(int(value)) {
    CHECK(value <= std::numeric_limits<int>::max(), "a matrix has a size of ", value,
          ", but LAPACK takes at most ", std::numeric_limits<int>::max());
  }
  operator const int*() const { return &value_; }  // NOLINT

 private:
  int value_;
};
// A leading dimension must be positive even for matrices without elements.
Size leading(int64_t value) { return Size(std::max<int64_t>(value, 1)); }

// Workspaces grow with the square of the size, and LAPACK counts them in 32 bits.
void check_order(int64_t n) {
  constexpr int64_t kLargest = 20000;  // 4 n^2 + 7 n < 2^31
  CHECK(n <= kLargest, "a matrix has ", n, " rows or columns, but LAPACK takes at most ", kLargest,
        " here");
}

// Asks a routine for the size of its work, the first time, and calls it.
template <class T, class Routine>
int with_work(std::vector<T>& work, Routine&& routine) {
  int info = 0;
  if (work.empty()) {
    T wanted{};
    routine(&wanted, Size(-1), &info);
    // float32 cannot say all numbers: a little more than it says.
    work.resize(size_t(double(std::real(wanted)) * (1 + 1e-6)) + 1);
  }
  routine(work.data(), Size(int64_t(work.size())), &info);
  return info;
}

template <class V>
auto* sized(V& vector, int64_t size) {
  if (vector.empty()) vector.resize(size_t(std::max<int64_t>(size, 1)));
  return vector.data();
}

}  // namespace

template <class T>
int Lapack<T>::getrf(int64_t m, int64_t n, T* a, int64_t lda, int* pivots) {
  int info = 0;
  table<T>().getrf(Size(m), Size(n), a, leading(lda), pivots, &info);
  return info;
}

template <class T>
void Lapack<T>::laswp(int64_t n, T* a, int64_t lda, int64_t first, int64_t last,
                      const int* pivots) {
  table<T>().laswp(Size(n), a, leading(lda), Size(first), Size(last), pivots, Size(1));
}

template <class T>
void Lapack<T>::gemm_subtract(char trans, int64_t m, int64_t n, int64_t k, const T* a, int64_t lda,
                              const T* b, int64_t ldb, T* c, int64_t ldc) {
  char plain = 'N';
  T alpha(-1), beta(1);
  table<T>().gemm(&trans, &plain, Size(m), Size(n), Size(k), &alpha, a, leading(lda), b,
                  leading(ldb), &beta, c, leading(ldc), 1, 1);
}

template <class T>
int Lapack<T>::getrs(char trans, int64_t n, int64_t columns, const T* a, int64_t lda,
                     const int* pivots, T* b, int64_t ldb) {
  int info = 0;
  table<T>().getrs(&trans, Size(n), Size(columns), a, leading(lda), pivots, b, leading(ldb), &info,
                   1);
  return info;
}

template <class T>
int Lapack<T>::potrf(char uplo, int64_t n, T* a, int64_t lda) {
  int info = 0;
  table<T>().potrf(&uplo, Size(n), a, leading(lda), &info, 1);
  return info;
}

template <class T>
void Lapack<T>::trsm(char side, char uplo, char trans, char diag, int64_t m, int64_t n, const T* a,
                     int64_t lda, T* b, int64_t ldb) {
  T one(1);
  table<T>().trsm(&side, &uplo, &trans, &diag, Size(m), Size(n), &one, a, leading(lda), b,
                  leading(ldb), 1, 1, 1, 1);
}

template <class T>
int Lapack<T>::sytrf(bool hermitian, char uplo, int64_t n, T* a, int64_t lda, int* pivots,
                     Workspace<T>& space) {
  auto* routine = hermitian ? table<T>().hetrf : table<T>().sytrf;
  return with_work(space.work, [&](T* work, In lwork, int* info) {
    routine(&uplo, Size(n), a, leading(lda), pivots, work, lwork, info, 1);
  });
}

template <class T>
int Lapack<T>::sytrs(bool hermitian, char uplo, int64_t n, int64_t columns, const T* a, int64_t lda,
                     const int* pivots, T* b, int64_t ldb) {
  int info = 0;
  auto* routine = hermitian ? table<T>().hetrs : table<T>().sytrs;
  routine(&uplo, Size(n), Size(columns), a, leading(lda), pivots, b, leading(ldb), &info, 1);
  return info;
}

template <class T>
int Lapack<T>::geqrf(int64_t m, int64_t n, T* a, int64_t lda, T* tau, Workspace<T>& space) {
  return with_work(space.work, [&](T* work, In lwork, int* info) {
    table<T>().geqrf(Size(m), Size(n), a, leading(lda), tau, work, lwork, info);
  });
}

template <class T>
int Lapack<T>::orgqr(int64_t m, int64_t n, int64_t k, T* a, int64_t lda, const T* tau,
                     Workspace<T>& space) {
  return with_work(space.work, [&](T* work, In lwork, int* info) {
    table<T>().orgqr(Size(m), Size(n), Size(k), a, leading(lda), tau, work, lwork, info);
  });
}

template <class T>
void Lapack<T>::larft(int64_t m, int64_t k, const T* v, int64_t ldv, const T* tau, T* t,
                      int64_t ldt) {
  char forward = 'F', columns = 'C';
  table<T>().larft(&forward, &columns, Size(m), Size(k), v, leading(ldv), tau, t, leading(ldt), 1,
                   1);
}

template <class T>
void Lapack<T>::larfb(bool adjoint, int64_t m, int64_t n, int64_t k, const T* v, int64_t ldv,
                      const T* t, int64_t ldt, T* c, int64_t ldc, T* work) {
  char left = 'L', forward = 'F', columns = 'C';
  char trans = !adjoint ? 'N' : kIsComplex<T> ? 'C' : 'T';
  table<T>().larfb(&left, &trans, &forward, &columns, Size(m), Size(n), Size(k), v, leading(ldv), t,
                   leading(ldt), c, leading(ldc), work, leading(n), 1, 1, 1, 1);
}

template <class T>
int Lapack<T>::ormqr(char side, bool adjoint, int64_t m, int64_t n, int64_t k, const T* a,
                     int64_t lda, const T* tau, T* c, int64_t ldc, Workspace<T>& space) {
  char trans = !adjoint ? 'N' : kIsComplex<T> ? 'C' : 'T';
  return with_work(space.work, [&](T* work, In lwork, int* info) {
    table<T>().ormqr(&side, &trans, Size(m), Size(n), Size(k), a, leading(lda), tau, c,
                     leading(ldc), work, lwork, info, 1, 1);
  });
}

template <class T>
int Lapack<T>::gesdd(char job, int64_t m, int64_t n, T* a, int64_t lda, Real<T>* s, T* u,
                     int64_t ldu, T* vh, int64_t ldvh, Workspace<T>& space) {
  int64_t k = std::min(m, n);
  check_order(k);
  int* ints = sized(space.ints, 8 * k);
  return with_work(space.work, [&](T* work, In lwork, int* info) {
    if constexpr (kIsComplex<T>) {
      int64_t reals = job == 'N' ? 7 * k : k * std::max(5 * k + 7, 2 * std::max(m, n) + 2 * k + 1);
      table<T>().gesdd(&job, Size(m), Size(n), a, leading(lda), s, u, leading(ldu), vh,
                       leading(ldvh), work, lwork, sized(space.real, reals), ints, info, 1);
    } else {
      table<T>().gesdd(&job, Size(m), Size(n), a, leading(lda), s, u, leading(ldu), vh,
                       leading(ldvh), work, lwork, ints, info, 1);
    }
  });
}

template <class T>
int Lapack<T>::heevd(bool vectors, char uplo, int64_t n, T* a, int64_t lda, Real<T>* values,
                     Workspace<T>& space) {
  check_order(n);
  char job = vectors ? 'V' : 'N';
  int64_t int_count = vectors ? 3 + 5 * n : 1;
  int* ints = sized(space.ints, int_count);
  return with_work(space.work, [&](T* work, In lwork, int* info) {
    if constexpr (kIsComplex<T>) {
      int64_t reals = vectors ? 1 + 5 * n + 2 * n * n : std::max<int64_t>(n, 1);
      table<T>().heevd(&job, &uplo, Size(n), a, leading(lda), values, work, lwork,
                       sized(space.real, reals), Size(reals), ints, Size(int_count), info, 1, 1);
    } else {
      table<T>().heevd(&job, &uplo, Size(n), a, leading(lda), values, work, lwork, ints,
                       Size(int_count), info, 1, 1);
    }
  });
}

template <class T>
int Lapack<T>::geev(int64_t n, T* a, int64_t lda, std::complex<Real<T>>* values,
                    std::complex<Real<T>>* vectors, Workspace<T>& space) {
  check_order(n);
  char none = 'N', right = vectors ? 'V' : 'N';
  if constexpr (kIsComplex<T>) {
    Real<T>* real = sized(space.real, 2 * n);
    return with_work(space.work, [&](T* work, In lwork, int* info) {
      table<T>().geev(&none, &right, Size(n), a, leading(lda), values, nullptr, Size(1), vectors,
                      leading(n), work, lwork, real, info, 1, 1);
    });
  } else {
    // The parts of the eigenvalues, then real vectors: of a conjugate pair, its real and imaginary
    // parts.
    T* wr = sized(space.real, vectors ? 2 * n + n * n : 2 * n);
    T *wi = wr + n, *v = wi + n;
    int failed = with_work(space.work, [&](T* work, In lwork, int* info) {
      table<T>().geev(&none, &right, Size(n), a, leading(lda), wr, wi, nullptr, Size(1), v,
                      leading(n), work, lwork, info, 1, 1);
    });
    for (int64_t j = 0; j < n; ++j) values[j] = {wr[j], wi[j]};
    for (int64_t j = 0; vectors && j < n; ++j) {
      bool is_pair = wi[j] != 0 && j + 1 < n;
      for (int64_t i = 0; i < n; ++i) {
        T real = v[i + j * n], imag = is_pair ? v[i + (j + 1) * n] : T(0);
        vectors[i + j * n] = {real, imag};
        if (is_pair) vectors[i + (j + 1) * n] = {real, -imag};
      }
      j += is_pair;
    }
    return failed;
  }
}

template <class T>
int Lapack<T>::gels(int64_t m, int64_t n, int64_t columns, T* a, int64_t lda, T* b, int64_t ldb,
                    Workspace<T>& space) {
  char trans = 'N';
  return with_work(space.work, [&](T* work, In lwork, int* info) {
    table<T>().gels(&trans, Size(m), Size(n), Size(columns), a, leading(lda), b, leading(ldb), work,
                    lwork, info, 1);
  });
}

template <class T>
int Lapack<T>::gelsy(int64_t m, int64_t n, int64_t columns, T* a, int64_t lda, T* b, int64_t ldb,
                     Real<T> rcond, int* rank, Workspace<T>& space) {
  int* order = sized(space.ints, n);
  std::fill_n(order, n, 0);  // all columns may move
  return with_work(space.work, [&](T* work, In lwork, int* info) {
    if constexpr (kIsComplex<T>) {
      table<T>().gelsy(Size(m), Size(n), Size(columns), a, leading(lda), b, leading(ldb), order,
                       &rcond, rank, work, lwork, sized(space.real, 2 * n), info);
    } else {
      table<T>().gelsy(Size(m), Size(n), Size(columns), a, leading(lda), b, leading(ldb), order,
                       &rcond, rank, work, lwork, info);
    }
  });
}

template <class T>
int Lapack<T>::gelsd(bool simple, int64_t m, int64_t n, int64_t columns, T* a, int64_t lda, T* b,
                     int64_t ldb, Real<T>* s, Real<T> rcond, int* rank, Workspace<T>& space) {
  int64_t k = std::min(m, n);
  check_order(k);
  // Of gelsd's recursion: leaves of 25 singular values, `levels` of them above.
  int64_t levels = 1;
  while ((k >> levels) > 13) ++levels;
  int* ints = sized(space.ints, 3 * k * levels + 11 * k);
  int64_t reals = simple ? 5 * k
                         : 10 * std::max(m, n) + 10 * k * 25 + 8 * k * levels + 3 * 25 * columns +
                               std::max<int64_t>(26 * 26, k * (1 + columns) + 2 * columns);
  return with_work(space.work, [&](T* work, In lwork, int* info) {
    if constexpr (kIsComplex<T>) {
      Real<T>* real = sized(space.real, reals);
      if (simple)
        table<T>().gelss(Size(m), Size(n), Size(columns), a, leading(lda), b, leading(ldb), s,
                         &rcond, rank, work, lwork, real, info);
      else
        table<T>().gelsd(Size(m), Size(n), Size(columns), a, leading(lda), b, leading(ldb), s,
                         &rcond, rank, work, lwork, real, ints, info);
    } else if (simple) {
      table<T>().gelss(Size(m), Size(n), Size(columns), a, leading(lda), b, leading(ldb), s, &rcond,
                       rank, work, lwork, info);
    } else {
      table<T>().gelsd(Size(m), Size(n), Size(columns), a, leading(lda), b, leading(ldb), s, &rcond,
                       rank, work, lwork, ints, info);
    }
  });
}

template struct Lapack<float>;
template struct Lapack<double>;
template struct Lapack<std::complex<float>>;
template struct Lapack<std::complex<double>>;

}  // namespace rushlight::lapack
