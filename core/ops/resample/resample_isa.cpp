// Owns the loops of resampling. Rows are summed first, side by side in vectors; then the columns of
// that one row, whose elements are brought to their lanes by shuffles that are planned once.
#include "core/ops/resample/resample_loops.h"
#include "core/tensor/vectors.h"

namespace rushlight::RUSHLIGHT_ISA_NAMESPACE {
namespace {

// ---- sums of rows ------------------------------------------------------------------------------

template <int taps, bool adds, class T>
[[gnu::always_inline]] inline void sum_taps(T* out, const T* in, int64_t stride,
                                            const int32_t* index, const T* weight, int64_t n) {
  const T* from[taps];
  T w[taps];
  for (int k = 0; k < taps; ++k) {
    from[k] = in + index[k] * stride;
    w[k] = weight[k];
  }
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    T sum = adds ? out[i] : w[0] * from[0][i];
    if (adds) sum += w[0] * from[0][i];
    for (int k = 1; k < taps; ++k) sum += w[k] * from[k][i];
    out[i] = sum;
  }
}

template <bool adds, class T>
void sum_some(T* out, const T* in, int64_t stride, const int32_t* index, const T* weight,
              int64_t taps, int64_t n) {
  if (taps == 4) sum_taps<4, adds>(out, in, stride, index, weight, n);
  else if (taps == 3) sum_taps<3, adds>(out, in, stride, index, weight, n);
  else if (taps == 2) sum_taps<2, adds>(out, in, stride, index, weight, n);
  else sum_taps<1, adds>(out, in, stride, index, weight, n);
}

template <class T>
void sum_rows(T* out, const T* in, int64_t stride, const int32_t* index, const T* weight,
              int64_t taps, int64_t n) {
  if (taps == 0) {
    for (int64_t i = 0; i < n; ++i) out[i] = 0;
    return;
  }
  for (int64_t k = 0; k < taps; k += 4) {
    int64_t some = taps - k < 4 ? taps - k : 4;
    if (k == 0) sum_some<false>(out, in, stride, index, weight, some, n);
    else sum_some<true>(out, in, stride, index + k, weight + k, some, n);
  }
}

template <class T>
void sum_loop(void* out, const void* in, int64_t stride, const int32_t* index, const void* weight,
              int64_t taps, int64_t n) {
  sum_rows(static_cast<T*>(out), static_cast<const T*>(in), stride, index,
           static_cast<const T*>(weight), taps, n);
}

// ---- the columns of a row ----------------------------------------------------------------------

template <class T, size_t bytes = sizeof(T)>
struct Lane {
  using type = int32_t;
};
template <class T>
struct Lane<T, 8> {
  using type = int64_t;
};
template <class T>
struct Lane<T, 2> {
  using type = int16_t;
};

#if RUSHLIGHT_ISA != 0
// Where an element moves it keeps its bits, whatever they stand for.
template <bool moves, bool has_gaps, class T>
[[gnu::always_inline]] inline void block_of(const ResampleImage& image, const ResampleBlock& block,
                                            const T* row, T* out) {
  typedef typename Lane<T>::type Lanes __attribute__((vector_size(kWidth<T> * sizeof(T))));
  const int64_t* base = image.base + block.at;
  const auto* lanes = static_cast<const typename Lane<T>::type*>(image.lanes);
  const T* weights = static_cast<const T*>(image.weights);
  Vector<T> sum{};
  for (int64_t k = 0; k < block.taps; ++k) {
    Lanes order;
    __builtin_memcpy(&order, lanes + (block.at + k) * kWidth<T>, sizeof(order));
    Vector<T> x =
        pick<T>(load_vector(row + base[k]), load_vector(row + base[k] + kWidth<T>), order);
    if constexpr (has_gaps) x = order < 0 ? Vector<T>{} : x;
    if constexpr (moves) sum = x;
    else sum = multiply_add(x, load_vector(weights + (block.at + k) * kWidth<T>), sum);
  }
  store_vector(out + block.begin, sum);
}
#endif

template <bool moves, class T>
void columns_of(const ResampleImage& image, const T* row, T* out) {
  const ResampleWeights& columns = image.columns;
  const T* weight = static_cast<const T*>(columns.weight);
  for (int64_t b = 0; b < image.blocks; ++b) {
    const ResampleBlock& block = image.block[b];
    if (block.taps == kResampleRun) {
      __builtin_memcpy(out + block.begin, row + block.at,
                       size_t(block.end - block.begin) * sizeof(T));
      continue;
    }
#if RUSHLIGHT_ISA != 0
    if constexpr (sizeof(T) > 1) {
      if (block.taps) {
        if constexpr (moves) block_of<true, false>(image, block, row, out);
        else if (block.has_gaps) block_of<false, true>(image, block, row, out);
        else block_of<false, false>(image, block, row, out);
        continue;
      }
    }
#endif
    for (int64_t o = block.begin; o < block.end; ++o) {
      if constexpr (moves) {
        out[o] = row[columns.index[o]];
      } else {
        T sum = 0;
        for (int64_t k = columns.start[o]; k < columns.start[o + 1]; ++k)
          sum += weight[k] * row[columns.index[k]];
        out[o] = sum;
      }
    }
  }
}

template <class T>
void pixels_of(const ResampleImage& image, const T* row, T* out) {
  const ResampleWeights& columns = image.columns;
  int64_t n = image.pixel;
  for (int64_t o = 0; o < columns.out; ++o, out += n) {
    int64_t first = columns.start[o], taps = columns.start[o + 1] - first;
    if (columns.moves) __builtin_memcpy(out, row + columns.index[o] * n, size_t(n) * sizeof(T));
    else
      sum_rows(out, row, n, columns.index + first, static_cast<const T*>(columns.weight) + first,
               taps, n);
  }
}

// Elements of one or two bytes move only, whatever they stand for.
template <class T>
constexpr bool kMovesOnly = sizeof(T) <= 2;

template <class T>
void rows_loop(const ResampleImage& image, const void* input, void* output, int64_t row_begin,
               int64_t row_end, void* scratch) {
  const T* in = static_cast<const T*>(input);
  T* out = static_cast<T*>(output);
  const ResampleWeights &rows = image.rows, &columns = image.columns;
  int64_t out_row = columns.out * image.pixel;
  for (int64_t r = row_begin; r < row_end; ++r, out += out_row) {
    int64_t first = rows.start[r], taps = rows.start[r + 1] - first;
    if (rows.moves && r > row_begin && rows.index[r] == rows.index[r - 1]) {
      __builtin_memcpy(out, out - out_row, size_t(out_row) * sizeof(T));
      continue;
    }
    if (taps == 0) {
      __builtin_memset(out, 0, size_t(out_row) * sizeof(T));
      continue;
    }
    T* sums = columns.is_same ? out : static_cast<T*>(scratch);
    const T* row = sums;
    if (!rows.moves)
      sum_rows(sums, in, image.row, rows.index + first, static_cast<const T*>(rows.weight) + first,
               taps, image.row);
    else if (!columns.is_same && !image.reads_past_row) row = in + rows.index[r] * image.row;
    else __builtin_memcpy(sums, in + rows.index[r] * image.row, size_t(image.row) * sizeof(T));
    if (columns.is_same) continue;
    if (image.pixel > 1) pixels_of(image, row, out);
    else if (kMovesOnly<T> || columns.moves) columns_of<true>(image, row, out);
    else if constexpr (!kMovesOnly<T>) columns_of<false>(image, row, out);
  }
}

}  // namespace

#if RUSHLIGHT_ISA == 0
#define RUSHLIGHT_LANES {0, 0, 0, 0}
#else
#define RUSHLIGHT_LANES {16, kWidth<uint16_t>, kWidth<float>, kWidth<double>}
#endif

extern const ResampleLoops resample_loops;
constexpr ResampleLoops resample_loops = {
    RUSHLIGHT_LANES,
    {nullptr, nullptr, &sum_loop<float>, &sum_loop<double>},
    {&rows_loop<uint8_t>, &rows_loop<uint16_t>, &rows_loop<float>, &rows_loop<double>}};

}  // namespace rushlight::RUSHLIGHT_ISA_NAMESPACE
