// Owns the kernels of all reductions, compiled once per instruction set. See reduce_loops.h for
// what each function does; every kernel sees at least one row and one column.
#include "core/tensor/row_folds.h"

#include "core/tensor/reduce_folds.h"  // after lanes.h
#include "core/tensor/reduce_loops.h"

namespace rushlight::RUSHLIGHT_ISA_NAMESPACE {
namespace {

// ---- folds: the accumulator is one number -------------------------------------------------------

// Of elements that lie in memory as T or as BFloat16.
template <class R, class T, class Memory = T>
struct Fold {
  static constexpr int64_t kAccumulatorBytes = sizeof(T);
  static constexpr int64_t kWide = 256 / sizeof(T);   // columns that are kept in registers
  static constexpr int64_t kVector = 64 / sizeof(T);  // those of the rest

  static void columns_of_each_row(const void* matrix, int64_t stride, int64_t rows, int64_t columns,
                                  double parameter, void* accumulators) {
    const T p = T(parameter);
    const Memory* in = static_cast<const Memory*>(matrix);
    T* out = static_cast<T*>(accumulators);
    auto merge = [](T a, T b) __attribute__((always_inline)) { return R::merge(a, b); };
    // Eight bfloat16 take longer to read than it saves.
    constexpr int64_t kLeast = detail::kSame<T, Memory> ? detail::kFewLanes : detail::kManyLanes<T>;
    int64_t r = 0;
    if constexpr (kFoldsTogether<T>)
      for (; columns >= kLeast && r + kWidth<T> <= rows; r += kWidth<T>) {
        auto element = [=](int row, int64_t j) __attribute__((always_inline)) {
          return R::map(read(in[(r + row) * stride + j]), p);
        };
        fold_together(columns, element, merge, out + r);
      }
    for (; r < rows; ++r) {
      const Memory* row = in + r * stride;
      out[r] = fold<T>(columns, [=](int64_t j) { return R::map(read(row[j]), p); }, merge);
    }
  }

  static void rows_of_each_column(const void* matrix, int64_t stride, int64_t rows, int64_t columns,
                                  double parameter, void* accumulators) {
    const T p = T(parameter);
    const Memory* in = static_cast<const Memory*>(matrix);
    T* out = static_cast<T*>(accumulators);
    // Few columns: several rows are taken as one wide row, and its halves merged.
    int doublings = 0;
    if (stride == columns)
      while (columns << (doublings + 1) <= kWide) ++doublings;
    if (doublings == 0 || rows < int64_t(2) << doublings)
      return fold_rows(in, stride, rows, columns, p, out);
    const int64_t width = columns << doublings, wide_rows = rows >> doublings;
    T lane[kWide];
    if (width == kWide) {
      fold_lanes(lane, in, width, 0, wide_rows, kWide, p);
      merge_halves<kWide / 2>(lane, columns);
    } else {
      fold_lanes(lane, in, width, 0, wide_rows, width, p);
      for (int64_t half = width / 2; half >= columns; half /= 2) merge_upper(lane, half);
    }
    for (int64_t r = wide_rows << doublings; r < rows; ++r)
      for (int64_t j = 0; j < columns; ++j)
        lane[j] = R::merge(lane[j], R::map(read(in[r * stride + j]), p));
    copy(lane, out, columns);
  }

  static void merge(void* accumulators, int64_t, const void* other, int64_t, int64_t n) {
    T* into = static_cast<T*>(accumulators);
    const T* from = static_cast<const T*>(other);
#pragma omp simd
    for (int64_t j = 0; j < n; ++j) into[j] = R::merge(into[j], from[j]);
  }

  static void finish(const void* accumulators, int64_t count, int64_t n, double parameter,
                     void* first, void*) {
    for (int64_t j = 0; j < n; ++j)
      static_cast<T*>(first)[j] =
          R::finish(static_cast<const T*>(accumulators)[j], count, parameter);
  }

 private:
  [[gnu::always_inline]] static T read(Memory x) {
    if constexpr (detail::kSame<T, Memory>) return x;
    else return to_float(x);
  }
  [[gnu::always_inline]] static void copy(const T* from, T* to, int64_t n) {
#pragma omp simd
    for (int64_t l = 0; l < n; ++l) to[l] = from[l];
  }
  // Folds rows [begin, end) of `width` columns, of which row 0 begins the lanes.
  [[gnu::always_inline]] static void fold_lanes(T* lane, const Memory* in, int64_t stride,
                                                int64_t begin, int64_t end, int64_t width, T p) {
    if (begin == 0) {
#pragma omp simd
      for (int64_t l = 0; l < width; ++l) lane[l] = R::map(read(in[l]), p);
      ++begin;
    }
    for (int64_t r = begin; r < end; ++r) {
      const Memory* row = in + r * stride;
#pragma omp simd
      for (int64_t l = 0; l < width; ++l) lane[l] = R::merge(lane[l], R::map(read(row[l]), p));
    }
  }
  [[gnu::always_inline]] static void merge_upper(T* lane, int64_t half) {
#pragma omp simd
    for (int64_t l = 0; l < half; ++l) lane[l] = R::merge(lane[l], lane[half + l]);
  }
  // 2 * half lanes become `columns`.
  template <int64_t half>
  [[gnu::always_inline]] static void merge_halves(T* lane, int64_t columns) {
    if constexpr (half > 0) {
      if (half < columns) return;
      merge_upper(lane, half);
      merge_halves<half / 2>(lane, columns);
    }
  }
  static void fold_rows(const Memory* in, int64_t stride, int64_t rows, int64_t columns, T p,
                        T* out) {
    // Rows between a read and a write of the accumulators. They stay in registers if they can, and
    // the rows in the L1 cache, where they are passed over several times.
    const int64_t together = columns <= kWide ? 64 : 8;
    for (int64_t r = 0; r < rows; r += together) {
      const int64_t end = r + together < rows ? r + together : rows;
      auto fold_chunk = [=](int64_t j, int64_t width) __attribute__((always_inline)) {
        T lane[kWide];
        if (r > 0) copy(out + j, lane, width);
        fold_lanes(lane, in + j, stride, r, end, width, p);
        copy(lane, out + j, width);
      };
      int64_t j = 0;
      for (; j + kWide <= columns; j += kWide) fold_chunk(j, kWide);
      for (; j + 2 * kVector <= columns; j += 2 * kVector) fold_chunk(j, 2 * kVector);
      for (; j + kVector <= columns; j += kVector) fold_chunk(j, kVector);
      if (j < columns) fold_chunk(j, columns - j);
    }
  }
};

// Sums of complex numbers are those of their parts, which lie side by side.
template <class R, class T>
struct FoldParts {
  using Parts = Fold<R, T>;
  static constexpr int64_t kAccumulatorBytes = 2 * sizeof(T);

  static void columns_of_each_row(const void* matrix, int64_t stride, int64_t rows, int64_t columns,
                                  double parameter, void* accumulators) {
    for (int64_t r = 0; r < rows; ++r)
      Parts::rows_of_each_column(static_cast<const T*>(matrix) + 2 * r * stride, 2, columns, 2,
                                 parameter, static_cast<T*>(accumulators) + 2 * r);
  }
  static void rows_of_each_column(const void* matrix, int64_t stride, int64_t rows, int64_t columns,
                                  double parameter, void* accumulators) {
    Parts::rows_of_each_column(matrix, 2 * stride, rows, 2 * columns, parameter, accumulators);
  }
  static void merge(void* accumulators, int64_t count, const void* other, int64_t other_count,
                    int64_t n) {
    Parts::merge(accumulators, count, other, other_count, 2 * n);
  }
  static void finish(const void* accumulators, int64_t count, int64_t n, double parameter,
                     void* first, void* second) {
    Parts::finish(accumulators, count, 2 * n, parameter, first, second);
  }
};

// ---- the extreme element and its position -------------------------------------------------------

// Accumulators: n positions, then n values. A position counts from the first element of its part.
template <class R, class T>
struct Indexed {
  static constexpr int64_t kAccumulatorBytes = sizeof(int64_t) + sizeof(T);
  static constexpr int64_t kWide = 256 / sizeof(T);  // columns that fill the vectors

  static bool replaces(T x, T value) { return R::before(x, value) | (isnan(x) & !isnan(value)); }

  static void columns_of_each_row(const void* matrix, int64_t stride, int64_t rows, int64_t columns,
                                  double parameter, void* accumulators) {
    const T* in = static_cast<const T*>(matrix);
    int64_t* positions = static_cast<int64_t*>(accumulators);
    T* values = reinterpret_cast<T*>(positions + rows);
    Fold<R, T>::columns_of_each_row(matrix, stride, rows, columns, parameter, values);
    for (int64_t r = 0; r < rows; ++r) positions[r] = find(in + r * stride, columns, values[r]);
  }

  static void rows_of_each_column(const void* matrix, int64_t stride, int64_t rows, int64_t columns,
                                  double, void* accumulators) {
    const T* in = static_cast<const T*>(matrix);
    int64_t* positions = static_cast<int64_t*>(accumulators);
    T* values = reinterpret_cast<T*>(positions + columns);
    int64_t together = stride == columns ? kWide / columns : 1;
    if (together < 2 || rows < 2 * together)
      return look_at_rows(in, stride, rows, columns, positions, values);
    // Few columns: several rows are taken as one wide row, and its parts compared.
    int64_t wide_positions[kWide];
    T wide[kWide];
    int64_t wide_rows = rows / together;
    look_at_rows(in, together * stride, wide_rows, together * columns, wide_positions, wide);
    for (int64_t j = 0; j < columns; ++j) {
      T value = wide[j];
      int64_t position = wide_positions[j] * together;
      auto look_at = [&](T x, int64_t r) {
        if (!replaces(x, value) && !(matches(x, value) && r < position)) return;
        value = x;
        position = r;
      };
      for (int64_t k = 1; k < together; ++k)
        look_at(wide[k * columns + j], wide_positions[k * columns + j] * together + k);
      for (int64_t r = wide_rows * together; r < rows; ++r) look_at(in[r * stride + j], r);
      values[j] = value;
      positions[j] = position;
    }
  }

  static void merge(void* accumulators, int64_t count, const void* other, int64_t, int64_t n) {
    int64_t* positions = static_cast<int64_t*>(accumulators);
    T* values = reinterpret_cast<T*>(positions + n);
    const int64_t* other_positions = static_cast<const int64_t*>(other);
    const T* other_values = reinterpret_cast<const T*>(other_positions + n);
    for (int64_t j = 0; j < n; ++j) {
      if (!replaces(other_values[j], values[j])) continue;
      values[j] = other_values[j];
      positions[j] = count + other_positions[j];
    }
  }

  static void finish(const void* accumulators, int64_t, int64_t n, double, void* first,
                     void* second) {
    const int64_t* positions = static_cast<const int64_t*>(accumulators);
    const T* values = reinterpret_cast<const T*>(positions + n);
    for (int64_t j = 0; j < n; ++j) {
      static_cast<T*>(first)[j] = values[j];
      static_cast<int64_t*>(second)[j] = positions[j];
    }
  }

 private:
  static void look_at_rows(const T* in, int64_t stride, int64_t rows, int64_t columns,
                           int64_t* positions, T* values) {
    for (int64_t j = 0; j < columns; ++j) {
      positions[j] = 0;
      values[j] = in[j];
    }
    for (int64_t r = 1; r < rows; ++r) {
      const T* row = in + r * stride;
#pragma omp simd
      for (int64_t j = 0; j < columns; ++j) {
        bool better = replaces(row[j], values[j]);
        values[j] = better ? row[j] : values[j];
        positions[j] = better ? r : positions[j];
      }
    }
  }
  static bool matches(T x, T value) { return (x == value) | (isnan(x) & isnan(value)); }
  static int64_t find(const T* row, int64_t n, T value) {
    constexpr int64_t kStep = 64;
    int64_t i = 0;
    for (; i + kStep <= n; i += kStep) {
      int found = 0;
#pragma omp simd reduction(| : found)
      for (int64_t l = 0; l < kStep; ++l) found |= matches(row[i + l], value);
      if (found) break;
    }
    while (!matches(row[i], value)) ++i;
    return i;
  }
};

// ---- mean and sum of squared differences --------------------------------------------------------

// Accumulators, in double: n means, then n sums of squares of differences from the mean. A kernel
// takes the differences from a rounded mean, and corrects by their own mean for the rounding.
// Source: Chan, Golub, LeVeque, "Updating formulae and a pairwise algorithm for computing sample
// variances", 1979, equations 2.1 and 3.1.
template <class T, bool root>
struct Moments {
  static constexpr int64_t kAccumulatorBytes = 2 * sizeof(double);
  static constexpr int64_t kWide = 128 / sizeof(T);  // columns that are kept in registers

  static void columns_of_each_row(const void* matrix, int64_t stride, int64_t rows, int64_t columns,
                                  double, void* accumulators) {
    double* means = static_cast<double*>(accumulators);
    for (int64_t r = 0; r < rows; ++r) {
      const T* row = static_cast<const T*>(matrix) + r * stride;
      const T mean = sum<T>(columns, [=](int64_t j) { return row[j]; }) / T(columns);
      T rest = sum<T>(columns, [=](int64_t j) { return row[j] - mean; });
      T squares = sum<T>(columns, [=](int64_t j) { return (row[j] - mean) * (row[j] - mean); });
      correct(mean, rest, squares, columns, means[r], means[rows + r]);
    }
  }

  static void rows_of_each_column(const void* matrix, int64_t stride, int64_t rows, int64_t columns,
                                  double, void* accumulators) {
    const T* in = static_cast<const T*>(matrix);
    double* means = static_cast<double*>(accumulators);
    auto take_chunk = [=](int64_t j, int64_t width) __attribute__((always_inline)) {
      T mean[kWide]{}, rest[kWide]{}, squares[kWide]{};
      for (int64_t r = 0; r < rows; ++r) {
#pragma omp simd
        for (int64_t l = 0; l < width; ++l) mean[l] = mean[l] + in[r * stride + j + l];
      }
      for (int64_t l = 0; l < width; ++l) mean[l] = mean[l] / T(rows);
      for (int64_t r = 0; r < rows; ++r) {
#pragma omp simd
        for (int64_t l = 0; l < width; ++l) {
          T difference = in[r * stride + j + l] - mean[l];
          rest[l] = rest[l] + difference;
          squares[l] = squares[l] + difference * difference;
        }
      }
      for (int64_t l = 0; l < width; ++l)
        correct(mean[l], rest[l], squares[l], rows, means[j + l], means[columns + j + l]);
    };
    int64_t j = 0;
    for (; j + kWide <= columns; j += kWide) take_chunk(j, kWide);
    if (j < columns) take_chunk(j, columns - j);
  }

  static void merge(void* accumulators, int64_t count, const void* other, int64_t other_count,
                    int64_t n) {
    double *means = static_cast<double*>(accumulators), *squares = means + n;
    const double *other_means = static_cast<const double*>(other), *other_squares = other_means + n;
    const double share = double(other_count) / double(count + other_count);
    const double weight = double(count) * share;
#pragma omp simd
    for (int64_t j = 0; j < n; ++j) {
      double difference = other_means[j] - means[j];
      means[j] = means[j] + difference * share;
      squares[j] = squares[j] + other_squares[j] + difference * difference * weight;
    }
  }

  static void finish(const void* accumulators, int64_t count, int64_t n, double correction,
                     void* first, void* second) {
    const double *means = static_cast<const double*>(accumulators), *squares = means + n;
    const double freedom = double(count) - correction;
    for (int64_t j = 0; j < n; ++j) {
      double variance = squares[j] / (freedom > 0 ? freedom : 0);
      static_cast<T*>(first)[j] = T(root ? sqrt(variance) : variance);
      static_cast<T*>(second)[j] = T(means[j]);
    }
  }

 private:
  static void correct(T mean, T rest, T squares, int64_t count, double& exact_mean,
                      double& exact_squares) {
    double shift = double(rest) / double(count);
    exact_mean = double(mean) + shift;
    exact_squares = double(squares) - double(rest) * shift;
  }
};

// ---- log(sum(exp(x))) ---------------------------------------------------------------------------

template <class T>
constexpr T kLargest = T(0);
template <>
constexpr float kLargest<float> = __FLT_MAX__;
template <>
constexpr double kLargest<double> = __DBL_MAX__;

// Accumulators: n shifts, then n sums of exp(x - shift). A shift is the largest element, made
// finite, so that no difference of infinities arises.
template <class T>
struct LogSumExp {
  static constexpr int64_t kAccumulatorBytes = 2 * sizeof(T);

  static T finite(T x) { return min(max(x, -kLargest<T>), kLargest<T>); }

  static void columns_of_each_row(const void* matrix, int64_t stride, int64_t rows, int64_t columns,
                                  double parameter, void* accumulators) {
    const T* in = static_cast<const T*>(matrix);
    T* shifts = static_cast<T*>(accumulators);
    T* sums = shifts + rows;
    Fold<Maximum, T>::columns_of_each_row(matrix, stride, rows, columns, parameter, shifts);
    for (int64_t r = 0; r < rows; ++r) {
      const T* row = in + r * stride;
      T shift = shifts[r] = finite(shifts[r]);
      sums[r] = sum<T>(columns, [=](int64_t j) { return exp(row[j] - shift); });
    }
  }

  static void rows_of_each_column(const void* matrix, int64_t stride, int64_t rows, int64_t columns,
                                  double parameter, void* accumulators) {
    const T* in = static_cast<const T*>(matrix);
    T* shifts = static_cast<T*>(accumulators);
    T* sums = shifts + columns;
    Fold<Maximum, T>::rows_of_each_column(matrix, stride, rows, columns, parameter, shifts);
    for (int64_t j = 0; j < columns; ++j) {
      shifts[j] = finite(shifts[j]);
      sums[j] = T(0);
    }
    for (int64_t r = 0; r < rows; ++r) {
      const T* row = in + r * stride;
#pragma omp simd
      for (int64_t j = 0; j < columns; ++j) sums[j] = sums[j] + exp(row[j] - shifts[j]);
    }
  }

  static void merge(void* accumulators, int64_t, const void* other, int64_t, int64_t n) {
    T* shifts = static_cast<T*>(accumulators);
    T* sums = shifts + n;
    const T* other_shifts = static_cast<const T*>(other);
    const T* other_sums = other_shifts + n;
#pragma omp simd
    for (int64_t j = 0; j < n; ++j) {
      T shift = max(shifts[j], other_shifts[j]);
      sums[j] = sums[j] * exp(shifts[j] - shift) + other_sums[j] * exp(other_shifts[j] - shift);
      shifts[j] = shift;
    }
  }

  static void finish(const void* accumulators, int64_t, int64_t n, double, void* first, void*) {
    const T* shifts = static_cast<const T*>(accumulators);
    const T* sums = shifts + n;
    for (int64_t j = 0; j < n; ++j) static_cast<T*>(first)[j] = shifts[j] + log(sums[j]);
  }
};

// ---- the number of elements that are not zero --------------------------------------------------

// Counts in lanes as wide as T; a row has at most a block of elements.
template <class T, class Lane>
struct Count {
  static constexpr int64_t kAccumulatorBytes = sizeof(int64_t);

  static void columns_of_each_row(const void* matrix, int64_t stride, int64_t rows, int64_t columns,
                                  double, void* accumulators) {
    for (int64_t r = 0; r < rows; ++r) {
      const T* row = static_cast<const T*>(matrix) + r * stride;
      static_cast<int64_t*>(accumulators)[r] =
          int64_t(sum<Lane>(columns, [=](int64_t j) { return Lane(row[j] != T(0)); }));
    }
  }

  static void rows_of_each_column(const void* matrix, int64_t stride, int64_t rows, int64_t columns,
                                  double, void* accumulators) {
    const T* in = static_cast<const T*>(matrix);
    int64_t* counts = static_cast<int64_t*>(accumulators);
    for (int64_t j = 0; j < columns; ++j) counts[j] = 0;
    for (int64_t r = 0; r < rows; ++r) {
#pragma omp simd
      for (int64_t j = 0; j < columns; ++j) counts[j] += in[r * stride + j] != T(0);
    }
  }

  static void merge(void* accumulators, int64_t count, const void* other, int64_t other_count,
                    int64_t n) {
    Fold<Sum, int64_t>::merge(accumulators, count, other, other_count, n);
  }

  static void finish(const void* accumulators, int64_t, int64_t n, double, void* first, void*) {
    for (int64_t j = 0; j < n; ++j)
      static_cast<int64_t*>(first)[j] = static_cast<const int64_t*>(accumulators)[j];
  }
};

// ---- the table ----------------------------------------------------------------------------------

template <class Kernels>
constexpr Reducer make_reducer() {
  return {Kernels::kAccumulatorBytes, &Kernels::columns_of_each_row, &Kernels::rows_of_each_column,
          &Kernels::merge, &Kernels::finish};
}

template <class T, class Lane>
constexpr void add_floating(ReduceLoops& loops, Compute compute) {
  auto set = [&](Reduction r, Reducer reducer) { loops.of[int(r)][int(compute)] = reducer; };
  set(Reduction::sum, make_reducer<Fold<Sum, T>>());
  set(Reduction::mean, make_reducer<Fold<Mean, T>>());
  set(Reduction::nan_sum, make_reducer<Fold<NanSum, T>>());
  set(Reduction::product, make_reducer<Fold<Product, T>>());
  set(Reduction::maximum, make_reducer<Fold<Maximum, T>>());
  set(Reduction::minimum, make_reducer<Fold<Minimum, T>>());
  set(Reduction::indexed_maximum, make_reducer<Indexed<Maximum, T>>());
  set(Reduction::indexed_minimum, make_reducer<Indexed<Minimum, T>>());
  set(Reduction::variance, make_reducer<Moments<T, false>>());
  set(Reduction::deviation, make_reducer<Moments<T, true>>());
  set(Reduction::norm_1, make_reducer<Fold<Norm1, T>>());
  set(Reduction::norm_2, make_reducer<Fold<Norm2, T>>());
  set(Reduction::norm_p, make_reducer<Fold<NormP, T>>());
  set(Reduction::norm_max, make_reducer<Fold<NormMax, T>>());
  set(Reduction::norm_min, make_reducer<Fold<NormMin, T>>());
  set(Reduction::log_sum_exp, make_reducer<LogSumExp<T>>());
  set(Reduction::count, make_reducer<Count<T, Lane>>());
}

template <class R, class... T>
constexpr void add_narrow(Reducer (&reducers)[kNarrowCount]) {
  static_assert(sizeof...(T) == kNarrowCount);
  int i = 0;
  ((reducers[i++] = make_reducer<Fold<R, T>>()), ...);
}

constexpr ReduceLoops make_loops() {
  ReduceLoops loops{};
  add_floating<float, int32_t>(loops, Compute::f32);
  add_floating<double, int64_t>(loops, Compute::f64);
  auto set = [&](Reduction r, Compute compute, Reducer reducer) {
    loops.of[int(r)][int(compute)] = reducer;
  };
  // Unsigned, because sums and products of integers wrap around.
  auto set_totals = [&](Compute compute) {
    set(Reduction::sum, compute, make_reducer<Fold<Sum, uint64_t>>());
    set(Reduction::nan_sum, compute, make_reducer<Fold<Sum, uint64_t>>());
    set(Reduction::product, compute, make_reducer<Fold<Product, uint64_t>>());
  };
  set_totals(Compute::i64);
  set_totals(Compute::u64);
  set(Reduction::sum, Compute::c64, make_reducer<FoldParts<Sum, float>>());
  set(Reduction::sum, Compute::c128, make_reducer<FoldParts<Sum, double>>());
  set(Reduction::mean, Compute::c64, make_reducer<FoldParts<Mean, float>>());
  set(Reduction::mean, Compute::c128, make_reducer<FoldParts<Mean, double>>());
  set(Reduction::product, Compute::c64, make_reducer<Fold<Product, PlainComplex<float>>>());
  set(Reduction::product, Compute::c128, make_reducer<Fold<Product, PlainComplex<double>>>());
  set(Reduction::count, Compute::i64, make_reducer<Count<int64_t, int64_t>>());
  set(Reduction::maximum, Compute::i64, make_reducer<Fold<Maximum, int64_t>>());
  set(Reduction::minimum, Compute::i64, make_reducer<Fold<Minimum, int64_t>>());
  set(Reduction::indexed_maximum, Compute::i64, make_reducer<Indexed<Maximum, int64_t>>());
  set(Reduction::indexed_minimum, Compute::i64, make_reducer<Indexed<Minimum, int64_t>>());
  // A bool is a byte of 0 or 1.
  add_narrow<Maximum, uint8_t, uint8_t, int8_t, int16_t, int32_t>(loops.narrow_maximum);
  add_narrow<Minimum, uint8_t, uint8_t, int8_t, int16_t, int32_t>(loops.narrow_minimum);
  auto set_bfloat16 = [&](Reduction r, Reducer reducer) { loops.of_bfloat16[int(r)] = reducer; };
  set_bfloat16(Reduction::sum, make_reducer<Fold<Sum, float, BFloat16>>());
  set_bfloat16(Reduction::mean, make_reducer<Fold<Mean, float, BFloat16>>());
  set_bfloat16(Reduction::nan_sum, make_reducer<Fold<NanSum, float, BFloat16>>());
  set_bfloat16(Reduction::maximum, make_reducer<Fold<Maximum, float, BFloat16>>());
  set_bfloat16(Reduction::minimum, make_reducer<Fold<Minimum, float, BFloat16>>());
  set_bfloat16(Reduction::norm_2, make_reducer<Fold<Norm2, float, BFloat16>>());
#if RUSHLIGHT_ISA == 0
  set(Reduction::count, Compute::u64, make_reducer<Count<uint64_t, int64_t>>());
  set(Reduction::maximum, Compute::u64, make_reducer<Fold<Maximum, uint64_t>>());
  set(Reduction::minimum, Compute::u64, make_reducer<Fold<Minimum, uint64_t>>());
  set(Reduction::indexed_maximum, Compute::u64, make_reducer<Indexed<Maximum, uint64_t>>());
  set(Reduction::indexed_minimum, Compute::u64, make_reducer<Indexed<Minimum, uint64_t>>());
#endif
  return loops;
}

}  // namespace

extern const ReduceLoops reduce_loops;
constexpr ReduceLoops reduce_loops = make_loops();

}  // namespace rushlight::RUSHLIGHT_ISA_NAMESPACE
