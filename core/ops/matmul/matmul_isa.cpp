// Owns the matrix product of integers, for which BLAS has no code, and batches of small products.
#include "core/ops/matmul/matmul_loops.h"
#include "core/tensor/lanes.h"

namespace rushlight::RUSHLIGHT_ISA_NAMESPACE {
namespace {

constexpr int64_t kBlock = 512;  // columns of a block of b and c: they stay in the L1 cache

template <class T>
void add_product(int64_t m, int64_t n, int64_t k, const void* a, int64_t a_row, int64_t a_column,
                 const void* b, int64_t b_row, void* c, int64_t c_row) {
  using Wide = decltype(T() + 0u);  // small types would promote to int, which must not overflow
  // A column of c is a row of the product turned.
  if (n == 1 && a_row == 1 && c_row == 1)
    return add_product<T>(1, m, k, b, 0, b_row, a, a_column, c, m);
  if (n == 1 && a_column == 1 && b_row == 1) {
    const T* y = static_cast<const T*>(b);
    for (int64_t i = 0; i < m; ++i) {
      const T* x = static_cast<const T*>(a) + i * a_row;
      T& out = static_cast<T*>(c)[i * c_row];
      out = T(out + sum<Wide>(k, [=](int64_t p) { return Wide(x[p]) * y[p]; }));
    }
    return;
  }
  for (int64_t column = 0; column < n; column += kBlock) {
    int64_t width = n - column < kBlock ? n - column : kBlock;
    for (int64_t i = 0; i < m; ++i) {
      const T* left = static_cast<const T*>(a) + i * a_row;
      T* out = static_cast<T*>(c) + i * c_row + column;
      for (int64_t p = 0; p < k; ++p) {
        Wide factor = left[p * a_column];
        const T* right = static_cast<const T*>(b) + p * b_row + column;
#pragma omp simd
        for (int64_t j = 0; j < width; ++j) out[j] = T(out[j] + factor * right[j]);
      }
    }
  }
}

template <class T>
T dot(int64_t n, const T* x, const T* y) {
  return sum<T>(n, [=](int64_t i) { return x[i] * y[i]; });
}
template <class T>
T short_dot(int64_t n, const T* x, int64_t x_step, const T* y, int64_t y_step) {
  T total = x[0] * y[0];
  for (int64_t i = 1; i < n; ++i) total = total + x[i * x_step] * y[i * y_step];
  return total;
}

template <class T>
void multiply_small(int64_t count, int64_t m, int64_t n, int64_t k, const void* a,
                    BatchStrides a_strides, const void* b, BatchStrides b_strides, void* c) {
  constexpr int64_t kShort = 8;
  const T* left = static_cast<const T*>(a);
  const T* right = static_cast<const T*>(b);
  T* out = static_cast<T*>(c);
  const int64_t x_step = a_strides.column, y_step = b_strides.row;
  const bool in_rows = k >= kShort && x_step == 1 && y_step == 1;
  for (; count > 0; --count, left += a_strides.step, right += b_strides.step)
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) {
        const T* x = left + i * a_strides.row;
        const T* y = right + j * b_strides.column;
        *out++ = in_rows ? dot(k, x, y) : short_dot(k, x, x_step, y, y_step);
      }
}

}  // namespace

extern const SmallProducts small_products;
constexpr SmallProducts small_products = {{&multiply_small<float>, &multiply_small<double>}};

extern const IntegerProducts integer_products;
constexpr IntegerProducts integer_products = {{&add_product<uint8_t>, &add_product<uint16_t>,
                                               &add_product<uint32_t>, &add_product<uint64_t>}};

}  // namespace rushlight::RUSHLIGHT_ISA_NAMESPACE
