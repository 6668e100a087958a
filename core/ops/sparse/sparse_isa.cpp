// Owns the loops over sparse matrices, compiled once per instruction set.
#include "core/ops/sparse/sparse_loops.h"
#include "core/tensor/lanes.h"
#include "core/tensor/prefetch.h"
#include "core/tensor/wide_load.h"

#include "core/tensor/convert.h"  // after wide_load.h

namespace rushlight::RUSHLIGHT_ISA_NAMESPACE {
namespace {

// Rows at random places arrive late from memory, so they are asked for ahead.
constexpr int64_t kRowsAhead = 8;

// Vectors of columns of one line, in registers while its entries go by, for which all loops over
// them are unrolled. The last one begins at column `last`, and may share some with the one before.
template <int count, class T>
void multiply_block(const SparseLines& lines, int64_t line, const T* values, const T* dense,
                    int64_t n, int64_t last, T* out) {
  constexpr int kStep = kWidth<Wide<T>>;
  auto at = [=](int v) __attribute__((always_inline)) { return v + 1 < count ? v * kStep : last; };
  Vector<Wide<T>> sum[count];
#pragma GCC unroll 12
  for (int v = 0; v < count; ++v) sum[v] = Vector<Wide<T>>{};
  const int64_t end = lines.start[lines.end] - 1;
  for (int64_t k = lines.start[line]; k < lines.start[line + 1]; ++k) {
    Wide<T> value = convert<Wide<T>>(values[lines.entry ? lines.entry[k] : k]);
    const T* row = dense + lines.other[k] * n;
    const int64_t ahead = k + kRowsAhead < end ? k + kRowsAhead : end;
    prefetch(dense + lines.other[ahead] * n, count * kStep * int64_t(sizeof(T)));
#pragma GCC unroll 12
    for (int v = 0; v < count; ++v) sum[v] += value * load_wide(row + at(v));
  }
#pragma GCC unroll 12
  for (int v = 0; v < count; ++v) store_rounded(out + at(v), sum[v]);
}

// The last columns of one line, at most `count` vectors.
template <int count, class T>
[[gnu::always_inline]] inline void multiply_last(const SparseLines& lines, int64_t line,
                                                 const T* values, const T* dense, int64_t n,
                                                 int64_t columns, T* out) {
  constexpr int64_t kStep = kWidth<Wide<T>>;
  if constexpr (count > 1) {
    if (columns <= (count - 1) * kStep)
      return multiply_last<count - 1>(lines, line, values, dense, n, columns, out);
  }
  multiply_block<count>(lines, line, values, dense, n, columns - kStep, out);
}

// The columns of one line, fewer than twice `lanes`, in registers of 8, 4, 2 lanes and 1.
template <int lanes, class T>
void multiply_rest(const SparseLines& lines, int64_t line, const T* values, const T* dense,
                   int64_t n, int64_t columns, T* out) {
  if (columns & lanes) {
    typedef Wide<T> Lanes __attribute__((vector_size(lanes * sizeof(Wide<T>))));
    Lanes sum = {};
    for (int64_t k = lines.start[line]; k < lines.start[line + 1]; ++k) {
      const T* row = dense + lines.other[k] * n;
      Lanes right;
      if constexpr (detail::kSame<T, Wide<T>>) __builtin_memcpy(&right, row, sizeof(right));
      else
        for (int l = 0; l < lanes; ++l) right[l] = convert<Wide<T>>(row[l]);
      sum += convert<Wide<T>>(values[lines.entry ? lines.entry[k] : k]) * right;
    }
    for (int l = 0; l < lanes; ++l) out[l] = convert<T>(sum[l]);
    dense += lanes;
    out += lanes;
  }
  if constexpr (lanes > 1) multiply_rest<lanes / 2>(lines, line, values, dense, n, columns, out);
}

template <class T>
void multiply(const SparseLines& lines, const void* values_in, const void* dense_in, int64_t n,
              void* out_in) {
  constexpr int kVectors = kVectorBytes == 64 ? 4 : 12;
  constexpr int64_t kStep = kWidth<Wide<T>>, kMany = kVectors * kStep;
  const T* values = static_cast<const T*>(values_in);
  const T* dense = static_cast<const T*>(dense_in);
  for (int64_t i = lines.begin; i < lines.end; ++i) {
    T* out = static_cast<T*>(out_in) + i * n;
    if (n < kStep) {
      multiply_rest<kStep / 2>(lines, i, values, dense, n, n, out);
      continue;
    }
    int64_t j = 0;
    for (; n - j > kMany; j += kMany)
      multiply_block<kVectors>(lines, i, values, dense + j, n, kMany - kStep, out + j);
    multiply_last<kVectors>(lines, i, values, dense + j, n, n - j, out + j);
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
constexpr SparseLoops sparse_loops = {
    {multiply<float>, multiply<double>, multiply<Half>, multiply<BFloat16>},
    {dots<float>, dots<double>}};

}  // namespace rushlight::RUSHLIGHT_ISA_NAMESPACE
