// Owns the calls into OpenBLAS (the scipy-openblas32 package), which is opened at first use.
//
// Matrices are row-major; dtypes are float32, float64, complex64, complex128; strides are positive
// and a result does not overlap what it is made of. OpenBLAS itself runs on one thread and we split
// large products: its own pool beside OpenMP's costs milliseconds.
#pragma once

#include <complex>
#include <cstdint>
#include <type_traits>

#include "core/base/dtype.h"
#include "core/base/scalar.h"

namespace rushlight {
class DynamicLibrary;
}

namespace rushlight::openblas {

// The opened library and its letter for a type, for LAPACK, whose wrapper is lapack.h.
const DynamicLibrary& library();
template <class T>
inline constexpr char kTypeLetter = std::is_same_v<T, float>                 ? 's'
                                    : std::is_same_v<T, double>              ? 'd'
                                    : std::is_same_v<T, std::complex<float>> ? 'c'
                                                                             : 'z';
template <class T>
inline constexpr bool kIsComplex = !std::is_floating_point_v<T>;

// c = alpha * op(a) @ op(b) + beta * c, where op transposes when the flag says so.
// a holds m x k, b k x n and c m x n elements after op; lda, ldb, ldc are the distances between
// rows as they lie in memory. With beta = 0, c may hold anything, NaN too.
void gemm(DType dtype, bool trans_a, bool trans_b, int64_t m, int64_t n, int64_t k,
          const Scalar& alpha, const void* a, int64_t lda, const void* b, int64_t ldb,
          const Scalar& beta, void* c, int64_t ldc);

// y = alpha * op(a) @ x + beta * y, where a holds rows x columns elements before op.
void gemv(DType dtype, bool trans_a, int64_t rows, int64_t columns, const Scalar& alpha,
          const void* a, int64_t lda, const void* x, int64_t incx, const Scalar& beta, void* y,
          int64_t incy);

// *result = sum of x[i] * y[i], without conjugation.
void dot(DType dtype, int64_t n, const void* x, int64_t incx, const void* y, int64_t incy,
         void* result);

}  // namespace rushlight::openblas
