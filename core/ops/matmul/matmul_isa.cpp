// Owns the matrix product of integers, for which BLAS has no code.
#include "core/ops/matmul/matmul_loops.h"
#include "core/tensor/formula.h"

namespace rushlight::RUSHLIGHT_ISA_NAMESPACE {
namespace {

constexpr int64_t kBlock = 512;  // columns of a block of b and c: they stay in the L1 cache

template <class T>
void add_product(int64_t m, int64_t n, int64_t k, const void* a, int64_t a_row, int64_t a_column,
                 const void* b, int64_t b_row, void* c, int64_t c_row) {
  using Wide = decltype(T() + 0u);  // small types would promote to int, which must not overflow
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

}  // namespace

extern const IntegerProducts integer_products;
constexpr IntegerProducts integer_products = {{&add_product<uint8_t>, &add_product<uint16_t>,
                                               &add_product<uint32_t>, &add_product<uint64_t>}};

}  // namespace rushlight::RUSHLIGHT_ISA_NAMESPACE
