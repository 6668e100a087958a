#include "core/device/openblas.h"

#include <algorithm>
#include <complex>
#include <limits>
#include <string>
#include <type_traits>

#include "core/base/ceil_div.h"
#include "core/device/dynamic_library.h"
#include "core/device/threads.h"

namespace rushlight::openblas {

const DynamicLibrary& library() {
  static const DynamicLibrary opened = [] {
    DynamicLibrary found(
        {"OpenBLAS", {"libscipy_openblas.so"}, {"scipy_openblas32/lib"}, "scipy-openblas32"});
    found.find<void(int)>("scipy_openblas_set_num_threads")(1);
    return found;
  }();
  return opened;
}

namespace {

// CBLAS as the package exports it, with 32-bit integers. Complex scalars go by address.
template <class T>
using ScalarArgument = std::conditional_t<kIsComplex<T>, const T*, T>;
enum Order : int { kRowMajor = 101 };
enum Transpose : int { kNoTranspose = 111, kTranspose = 112 };

// _(name in Functions, name in the library after scipy_cblas_ and the type's letter)
#define OPENBLAS_FUNCTIONS(_) \
  _(gemm, "gemm")             \
  _(gemv, "gemv")             \
  _(dot, kIsComplex<T> ? "dotu_sub" : "dot")

template <class T>
struct Functions {
  using Gemm = void(Order, Transpose, Transpose, int m, int n, int k, ScalarArgument<T> alpha,
                    const T* a, int lda, const T* b, int ldb, ScalarArgument<T> beta, T* c,
                    int ldc);
  using Gemv = void(Order, Transpose, int m, int n, ScalarArgument<T> alpha, const T* a, int lda,
                    const T* x, int incx, ScalarArgument<T> beta, T* y, int incy);
  using RealDot = T(int n, const T* x, int incx, const T* y, int incy);
  using ComplexDot = void(int n, const T* x, int incx, const T* y, int incy, T* result);

  Gemm* gemm;
  Gemv* gemv;
  std::conditional_t<kIsComplex<T>, ComplexDot, RealDot>* dot;
};

template <class T>
const Functions<T>& functions() {
  static const Functions<T> table = [] {
    Functions<T> loaded;
#define OPENBLAS_LOAD(member, name) \
  library().load(loaded.member, (std::string("scipy_cblas_") + kTypeLetter<T> + (name)).c_str());
    OPENBLAS_FUNCTIONS(OPENBLAS_LOAD)
#undef OPENBLAS_LOAD
    return loaded;
  }();
  return table;
}

template <class T>
ScalarArgument<T> argument(const T& value) {
  if constexpr (kIsComplex<T>) {
    return &value;
  } else {
    return value;
  }
}

template <class... Sizes>
void check_sizes(Sizes... sizes) {
  constexpr int64_t kLargest = std::numeric_limits<int>::max();
  CHECK(((sizes <= kLargest) && ...), "a matrix has a size or stride above ", kLargest,
        ", the most that OpenBLAS takes");
}

int64_t threads_for(double multiplications) {
  if (multiplications < 2 * kMultiplicationsPerThread) return 1;
  return std::min<int64_t>(num_threads(), multiplications / kMultiplicationsPerThread);
}

// The tiles of c, about one per thread: of all grids, the one whose tiles read least of a and b.
struct Tiles {
  Tiles(int64_t m, int64_t n, int64_t threads) : rows(m), columns(n) {
    for (int64_t grid_rows = threads; grid_rows >= 1; --grid_rows) {
      if (threads % grid_rows != 0) continue;
      int64_t tile_rows = tile_size(m, grid_rows);
      int64_t tile_columns = tile_size(n, threads / grid_rows);
      if (tile_rows + tile_columns < rows + columns) {
        rows = tile_rows;
        columns = tile_columns;
      }
    }
    across = ceil_div(n, columns);
    count = ceil_div(m, rows) * across;
  }

  // Multiples of 16, because OpenBLAS's kernels are that wide.
  static int64_t tile_size(int64_t size, int64_t parts) {
    return std::min(size, round_up(ceil_div(size, parts), 16));
  }

  int64_t rows, columns, across, count;
};

template <class T>
void typed_gemv(bool trans_a, int64_t rows, int64_t columns, T alpha, const T* a, int64_t lda,
                const T* x, int64_t incx, T beta, T* y, int64_t incy) {
  auto part = [&](int64_t begin, int64_t end) {  // of y
    int64_t size = end - begin;
    functions<T>().gemv(kRowMajor, trans_a ? kTranspose : kNoTranspose, int(trans_a ? rows : size),
                        int(trans_a ? size : columns), argument(alpha),
                        a + (trans_a ? begin : begin * lda), int(lda), x, int(incx), argument(beta),
                        y + begin * incy, int(incy));
  };
  int64_t outputs = trans_a ? columns : rows;
  if (rows == 0 || columns == 0) {  // BLAS leaves y alone
    for (int64_t i = 0; i < outputs; ++i) y[i * incy] = beta == T(0) ? T(0) : beta * y[i * incy];
    return;
  }
  int64_t threads = threads_for(double(rows) * double(columns));
  parallel_for(0, outputs, threads == 1 ? outputs : ceil_div(outputs, threads), part);
}

template <class T>
void typed_gemm(bool trans_a, bool trans_b, int64_t m, int64_t n, int64_t k, T alpha, const T* a,
                int64_t lda, const T* b, int64_t ldb, T beta, T* c, int64_t ldc) {
  // A column without gaps is a row as well: OpenBLAS sums rows faster.
  if (n == 1 && !trans_b && ldb == 1) {
    trans_b = true;
    ldb = k;
  }
  // OpenBLAS's matrix kernels are slow on vectors.
  if (m == 1) {
    return typed_gemv(!trans_b, trans_b ? n : k, trans_b ? k : n, alpha, b, ldb, a,
                      trans_a ? lda : 1, beta, c, 1);
  }
  if (n == 1) {
    return typed_gemv(trans_a, trans_a ? k : m, trans_a ? m : k, alpha, a, lda, b,
                      trans_b ? 1 : ldb, beta, c, ldc);
  }
  auto tile = [&](int64_t row, int64_t rows, int64_t column, int64_t columns) {
    functions<T>().gemm(kRowMajor, trans_a ? kTranspose : kNoTranspose,
                        trans_b ? kTranspose : kNoTranspose, int(rows), int(columns), int(k),
                        argument(alpha), a + (trans_a ? row : row * lda), int(lda),
                        b + (trans_b ? column * ldb : column), int(ldb), argument(beta),
                        c + row * ldc + column, int(ldc));
  };
  int64_t threads = threads_for(double(m) * double(n) * double(k));
  if (threads == 1) return tile(0, m, 0, n);
  Tiles tiles(m, n, threads);
  parallel_for(0, tiles.count, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      int64_t row = i / tiles.across * tiles.rows, column = i % tiles.across * tiles.columns;
      tile(row, std::min(tiles.rows, m - row), column, std::min(tiles.columns, n - column));
    }
  });
}

// Calls f with a value-less tag of the C++ type.
template <class F>
void visit_blas_type(DType dtype, F&& f) {
  switch (dtype) {
    case DType::float32: return f(Tag<float>{});
    case DType::float64: return f(Tag<double>{});
    case DType::complex64: return f(Tag<std::complex<float>>{});
    case DType::complex128: return f(Tag<std::complex<double>>{});
    default: ASSERT(!"a dtype of OpenBLAS");
  }
}

}  // namespace

void gemm(DType dtype, bool trans_a, bool trans_b, int64_t m, int64_t n, int64_t k,
          const Scalar& alpha, const void* a, int64_t lda, const void* b, int64_t ldb,
          const Scalar& beta, void* c, int64_t ldc) {
  check_sizes(m, n, k, lda, ldb, ldc);
  visit_blas_type(dtype, [&]<class T>(Tag<T>) {
    typed_gemm<T>(trans_a, trans_b, m, n, k, alpha.to<T>(), static_cast<const T*>(a), lda,
                  static_cast<const T*>(b), ldb, beta.to<T>(), static_cast<T*>(c), ldc);
  });
}

void gemv(DType dtype, bool trans_a, int64_t rows, int64_t columns, const Scalar& alpha,
          const void* a, int64_t lda, const void* x, int64_t incx, const Scalar& beta, void* y,
          int64_t incy) {
  check_sizes(rows, columns, lda, incx, incy);
  visit_blas_type(dtype, [&]<class T>(Tag<T>) {
    typed_gemv<T>(trans_a, rows, columns, alpha.to<T>(), static_cast<const T*>(a), lda,
                  static_cast<const T*>(x), incx, beta.to<T>(), static_cast<T*>(y), incy);
  });
}

void dot(DType dtype, int64_t n, const void* x, int64_t incx, const void* y, int64_t incy,
         void* result) {
  check_sizes(n, incx, incy);
  visit_blas_type(dtype, [&]<class T>(Tag<T>) {
    const T* left = static_cast<const T*>(x);
    const T* right = static_cast<const T*>(y);
    T* sum = static_cast<T*>(result);
    if constexpr (kIsComplex<T>) {
      functions<T>().dot(int(n), left, int(incx), right, int(incy), sum);
    } else {
      *sum = functions<T>().dot(int(n), left, int(incx), right, int(incy));
    }
  });
}

}  // namespace rushlight::openblas
