// Owns the loops over sparse matrices, compiled once per instruction set.
#include "core/ops/sparse/sparse_loops.h"
#include "core/tensor/lanes.h"
#include "core/tensor/vectors.h"

namespace rushlight::RUSHLIGHT_ISA_NAMESPACE {
namespace {

// Vectors of columns of one line, in registers while its entries go by.
template <int count, class T>
void multiply_block(const SparseLines& lines, int64_t line, const T* values, const T* dense,
                    int64_t n, T* out) {
  Vector<T> sum[count] = {};
  for (int64_t k = lines.start[line]; k < lines.start[line + 1]; ++k) {
    T value = values[lines.entry ? lines.entry[k] : k];
    const T* row = dense + lines.other[k] * n;
#pragma GCC unroll 8
    for (int v = 0; v < count; ++v) sum[v] += value * load_vector(row + v * kWidth<T>);
  }
  for (int v = 0; v < count; ++v) store_vector(out + v * kWidth<T>, sum[v]);
}

template <class T>
void multiply(const SparseLines& lines, const void* values_in, const void* dense_in, int64_t n,
              void* out_in) {
  constexpr int kVectors = kVectorBytes == 64 ? 4 : 8;
  constexpr int64_t kMany = kVectors * kWidth<T>;
  const T* values = static_cast<const T*>(values_in);
  const T* dense = static_cast<const T*>(dense_in);
  for (int64_t i = lines.begin; i < lines.end; ++i) {
    T* out = static_cast<T*>(out_in) + i * n;
    int64_t j = 0;
    for (; j + kMany <= n; j += kMany)
      multiply_block<kVectors>(lines, i, values, dense + j, n, out + j);
    for (; j + kWidth<T> <= n; j += kWidth<T>)
      multiply_block<1>(lines, i, values, dense + j, n, out + j);
    if (j == n) continue;
    T sum[kWidth<T>] = {};
    for (int64_t k = lines.start[i]; k < lines.start[i + 1]; ++k) {
      T value = values[lines.entry ? lines.entry[k] : k];
      const T* row = dense + lines.other[k] * n + j;
      for (int64_t c = 0; c < n - j; ++c) sum[c] += value * row[c];
    }
    for (int64_t c = 0; c < n - j; ++c) out[j + c] = sum[c];
  }
}

template <class T>
void dots(const SparseLines& lines, const void* left_in, const void* right_in, int64_t n,
          void* out_in) {
  T* out = static_cast<T*>(out_in);
  for (int64_t i = lines.begin; i < lines.end; ++i) {
    const T* left = static_cast<const T*>(left_in) + i * n;
    for (int64_t k = lines.start[i]; k < lines.start[i + 1]; ++k) {
      const T* right = static_cast<const T*>(right_in) + lines.other[k] * n;
      out[lines.entry ? lines.entry[k] : k] =
          sum<T>(n, [&](int64_t j) __attribute__((always_inline)) { return left[j] * right[j]; });
    }
  }
}

}  // namespace

extern const SparseLoops sparse_loops;
constexpr SparseLoops sparse_loops = {{multiply<float>, multiply<double>},
                                      {dots<float>, dots<double>}};

}  // namespace rushlight::RUSHLIGHT_ISA_NAMESPACE
