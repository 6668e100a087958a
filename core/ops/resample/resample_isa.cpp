// Owns the loops of resampling. Rows are summed first, side by side in vectors; then the columns of
// that one row, whose elements are brought to their lanes by shuffles that are planned once. Halves
// become floats as they are read, and are rounded when the columns are summed, too.
#include "core/ops/resample/resample_loops.h"
#include "core/tensor/wide_load.h"

#include "core/tensor/convert.h"  // after wide_load.h

namespace rushlight::RUSHLIGHT_ISA_NAMESPACE {
namespace {

// Elements as they are, or sums rounded to halves.
template <class From, class To>
void copy_rounded(To* to, const From* from, int64_t n) {
  if constexpr (detail::kSame<From, To>) __builtin_memcpy(to, from, size_t(n) * sizeof(To));
  else
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) to[i] = convert<To>(from[i]);
}

// ---- sums of rows ------------------------------------------------------------------------------

// Vectors of outputs whose sums are in registers while the taps go by.
constexpr int kTogether = 4;
template <int n>
struct Count {};

// fixed: the number of taps, or 0 where it is known when the loop runs only.
template <int fixed, class From, class To>
[[gnu::always_inline]] inline void sum_taps(To* out, const From* in, int64_t stride,
                                            const int32_t* index, const Wide<To>* weight,
                                            int64_t taps, int64_t n) {
  using T = Wide<To>;
  constexpr int kStep = kWidth<T>, kKept = fixed ? fixed : 1;
  const From* kept_rows[kKept];
  T kept_weights[kKept];
  for (int k = 0; k < kKept; ++k) {
    kept_rows[k] = in + index[k] * stride;
    kept_weights[k] = weight[k];
  }
  auto row = [&](int64_t k) { return k < kKept ? kept_rows[k] : in + index[k] * stride; };
  auto share = [&](int64_t k) { return k < kKept ? kept_weights[k] : weight[k]; };
  const int64_t count = fixed ? fixed : taps;
  auto some = [&]<int many>(Count<many>, int64_t i) __attribute__((always_inline)) {
    Vector<T> sum[many];
    for (int m = 0; m < many; ++m) sum[m] = broadcast(share(0)) * load_wide(row(0) + i + m * kStep);
#pragma GCC unroll 4
    for (int64_t k = 1; k < count; ++k)
      for (int m = 0; m < many; ++m)
        sum[m] += broadcast(share(k)) * load_wide(row(k) + i + m * kStep);
    for (int m = 0; m < many; ++m) store_rounded(out + i + m * kStep, sum[m]);
  };
  int64_t i = 0;
  for (; i + kTogether * kStep <= n; i += kTogether * kStep) some(Count<kTogether>(), i);
  for (; i + kStep <= n; i += kStep) some(Count<1>(), i);
  if (i < n && n >= kStep) return some(Count<1>(), n - kStep);  // some of them once more
  for (; i < n; ++i) {
    T sum = share(0) * convert<T>(row(0)[i]);
    for (int64_t k = 1; k < count; ++k) sum += share(k) * convert<T>(row(k)[i]);
    out[i] = convert<To>(sum);
  }
}

// The same in loops that the compiler finds vectors for, also where halves are converted and there
// are no instructions for that.
template <class From, class To>
[[gnu::always_inline]] inline void sum_in_runs(To* out, const From* in, int64_t stride,
                                               const int32_t* index, const Wide<To>* weight,
                                               int64_t taps, int64_t n) {
  constexpr int64_t kRun = 256;
  Wide<To> sums[kRun];
  for (int64_t i = 0; i < n; i += kRun) {
    const int64_t run = n - i < kRun ? n - i : kRun;
    for (int64_t k = 0; k < taps; ++k) {
      const From* row = in + index[k] * stride + i;
      const Wide<To> share = weight[k];
      if (k == 0)
#pragma omp simd
        for (int64_t j = 0; j < run; ++j) sums[j] = share * convert<Wide<To>>(row[j]);
      else
#pragma omp simd
        for (int64_t j = 0; j < run; ++j) sums[j] += share * convert<Wide<To>>(row[j]);
    }
    copy_rounded(out + i, sums, run);
  }
}

// The baseline set has no instructions for halves.
template <class From, class To>
constexpr bool kHasVectors = RUSHLIGHT_ISA != 0 || detail::kSame<From, To>;

template <class From, class To>
void sum_rows(To* out, const From* in, int64_t stride, const int32_t* index, const Wide<To>* weight,
              int64_t taps, int64_t n) {
  if (taps == 0) __builtin_memset(out, 0, size_t(n) * sizeof(To));
  else if constexpr (!kHasVectors<From, To>) sum_in_runs(out, in, stride, index, weight, taps, n);
  else if (taps == 2) sum_taps<2>(out, in, stride, index, weight, taps, n);
  else if (taps == 4) sum_taps<4>(out, in, stride, index, weight, taps, n);
  else sum_taps<0>(out, in, stride, index, weight, taps, n);
}

template <class From>
void sum_loop(void* out, const void* in, int64_t stride, const int32_t* index, const void* weight,
              int64_t taps, int64_t n) {
  using T = Wide<From>;
  sum_rows(static_cast<T*>(out), static_cast<const From*>(in), stride, index,
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
template <bool moves, bool has_gaps, class T, class To>
[[gnu::always_inline]] inline void block_of(const ResampleImage& image, const ResampleBlock& block,
                                            const T* row, To* out) {
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
  store_rounded(out + block.begin, sum);
}
#endif

template <bool moves, class T, class To>
void columns_of(const ResampleImage& image, const T* row, To* out) {
  const ResampleWeights& columns = image.columns;
  const T* weight = static_cast<const T*>(columns.weight);
  for (int64_t b = 0; b < image.blocks; ++b) {
    const ResampleBlock& block = image.block[b];
    if (block.taps == kResampleRun) {
      copy_rounded(out + block.begin, row + block.at, block.end - block.begin);
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
        out[o] = convert<To>(row[columns.index[o]]);
      } else {
        T sum = 0;
        for (int64_t k = columns.start[o]; k < columns.start[o + 1]; ++k)
          sum += weight[k] * row[columns.index[k]];
        out[o] = convert<To>(sum);
      }
    }
  }
}

// Elements of one or two bytes that are no halves move only, whatever they stand for.
template <class T>
constexpr bool kMovesOnly = sizeof(T) <= 2;

template <class T, class To>
void pixels_of(const ResampleImage& image, const T* row, To* out) {
  const ResampleWeights& columns = image.columns;
  int64_t n = image.pixel;
  for (int64_t o = 0; o < columns.out; ++o, out += n) {
    int64_t first = columns.start[o], taps = columns.start[o + 1] - first;
    if (columns.moves) copy_rounded(out, row + columns.index[o] * n, n);
    else if constexpr (!kMovesOnly<T>)
      sum_rows(out, row, n, columns.index + first, static_cast<const T*>(columns.weight) + first,
               taps, n);
  }
}

// The same from two rows of inputs, where sums have two taps each: four inputs at once take less
// time than a row of sums between them.
template <class From, class To>
void pixels_of_pairs(const ResampleImage& image, const From* in, int64_t r, To* out) {
  using T = Wide<To>;
  constexpr int64_t kStep = kWidth<T>;
  const ResampleWeights &rows = image.rows, &columns = image.columns;
  int64_t n = image.pixel;
  auto share = [](const ResampleWeights& axis, int64_t tap) {
    return broadcast(static_cast<const T*>(axis.weight)[tap]);
  };
  const From* upper = in + rows.index[2 * r] * image.row;
  const From* lower = in + rows.index[2 * r + 1] * image.row;
  const Vector<T> upper_share = share(rows, 2 * r), lower_share = share(rows, 2 * r + 1);
  auto column = [&](int64_t i) __attribute__((always_inline)) {
    return upper_share * load_wide(upper + i) + lower_share * load_wide(lower + i);
  };
  for (int64_t o = 0; o < columns.out; ++o, out += n) {
    int64_t left = columns.index[2 * o] * n, right = columns.index[2 * o + 1] * n;
    const Vector<T> left_share = share(columns, 2 * o), right_share = share(columns, 2 * o + 1);
    for (int64_t k = 0; k < n; k += kStep) {
      int64_t i = k + kStep <= n ? k : n - kStep;  // the last vector may overlap the one before
      store_rounded(out + i, left_share * column(left + i) + right_share * column(right + i));
    }
  }
}

// Output row r before its columns are summed: an input row or `sums`, to which that is written.
template <class From, class T>
[[gnu::always_inline]] inline const T* sum_row(const ResampleImage& image, const From* in,
                                               int64_t r, T* sums) {
  const ResampleWeights& rows = image.rows;
  int64_t first = rows.start[r];
  if constexpr (detail::kSame<From, T>) {
    const T* row = in + rows.index[first] * image.row;
    if (rows.moves && !image.reads_past_row) return row;
    if (rows.moves) {
      copy_rounded(sums, row, image.row);
      return sums;
    }
  }
  if constexpr (!kMovesOnly<T>)
    sum_rows(sums, in, image.row, rows.index + first, static_cast<const T*>(rows.weight) + first,
             rows.start[r + 1] - first, image.row);
  return sums;
}

// From is To, or the type of its sums where planes have been summed.
template <class From, class To>
void rows_loop(const ResampleImage& image, const void* input, void* output, int64_t row_begin,
               int64_t row_end, void* scratch) {
  using T = Wide<To>;
  const From* in = static_cast<const From*>(input);
  To* out = static_cast<To*>(output);
  const ResampleWeights &rows = image.rows, &columns = image.columns;
  int64_t out_row = columns.out * image.pixel;
  for (int64_t r = row_begin; r < row_end; ++r, out += out_row) {
    if (rows.moves && r > row_begin && rows.index[r] == rows.index[r - 1]) {
      __builtin_memcpy(out, out - out_row, size_t(out_row) * sizeof(To));
      continue;
    }
    if (rows.start[r] == rows.start[r + 1]) {
      __builtin_memset(out, 0, size_t(out_row) * sizeof(To));
      continue;
    }
    if constexpr (!kMovesOnly<T> && kHasVectors<From, To>)
      if (rows.has_pairs && columns.has_pairs && image.pixel >= kWidth<T>) {
        pixels_of_pairs(image, in, r, out);
        continue;
      }
    T* sums = static_cast<T*>(scratch);
    if constexpr (detail::kSame<T, To>)
      if (columns.is_same) sums = out;
    const T* row = sum_row(image, in, r, sums);
    if (columns.is_same) {
      if (static_cast<const void*>(row) != out) copy_rounded(out, row, out_row);
    } else if (image.pixel > 1) {
      pixels_of(image, row, out);
    } else if (kMovesOnly<T> || columns.moves) {
      columns_of<true>(image, row, out);
    } else if constexpr (!kMovesOnly<T>) {
      columns_of<false>(image, row, out);
    }
  }
}

}  // namespace

#if RUSHLIGHT_ISA == 0
#define RUSHLIGHT_LANES {}
#else
#define RUSHLIGHT_LANES \
  {16, kWidth<uint16_t>, kWidth<float>, kWidth<double>, kWidth<float>, kWidth<float>}
#endif

extern const ResampleLoops resample_loops;
constexpr ResampleLoops resample_loops = {
    RUSHLIGHT_LANES,
    {nullptr, nullptr, &sum_loop<float>, &sum_loop<double>, &sum_loop<Half>, &sum_loop<BFloat16>},
    {&rows_loop<uint8_t, uint8_t>, &rows_loop<uint16_t, uint16_t>, &rows_loop<float, float>,
     &rows_loop<double, double>, &rows_loop<Half, Half>, &rows_loop<BFloat16, BFloat16>},
    {nullptr, nullptr, &rows_loop<float, float>, &rows_loop<double, double>,
     &rows_loop<float, Half>, &rows_loop<float, BFloat16>}};

}  // namespace rushlight::RUSHLIGHT_ISA_NAMESPACE
