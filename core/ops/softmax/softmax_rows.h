// Owns the exponentials of rows and their sums, which softmax, log_softmax and cross_entropy share.
#pragma once

#include "core/tensor/lanes.h"
#include "core/tensor/row_lanes.h"

namespace rushlight::RUSHLIGHT_ISA_NAMESPACE {

inline constexpr int64_t kRowsTogether = 16;  // that share the vectors of log
// Shorter rows are reduced as many at once as vectors have lanes.
inline constexpr int64_t kShortRow = 256;

// Short rows where they lie, or copied to where they are filled up with -inf to whole blocks of
// kRowLanes elements.
template <class T>
class WholeRows {
 public:
  WholeRows(const T* x, int64_t rows, int64_t n)
      : data(x), width((n + kRowLanes - 1) / kRowLanes * kRowLanes) {
    if (width == n) return;
    data = padded_;
    for (int64_t r = 0; r < rows; ++r, x += n) {
      T* to = padded_ + r * width;
      int64_t last = width - kRowLanes;
      for (int64_t j = 0; j < last; j += kRowLanes) copy_block(x + j, to + j);
      fill(to + last, -T(__builtin_inf()), kRowLanes);
      if (last > 0) copy_block(x + n - kRowLanes, to + n - kRowLanes);
      else
        for (int64_t j = 0; j < n; ++j) to[j] = x[j];
    }
  }
  // Where the exponentials may be kept, for rows that go to y in the end.
  T* results(T* y) { return data == padded_ ? padded_ : y; }

  const T* data;
  int64_t width;  // also from row to row

 private:
  [[gnu::always_inline]] static void copy_block(const T* from, T* to) {
    __builtin_memcpy(to, from, kRowLanes * sizeof(T));
  }

  T padded_[kWidth<T> * kShortRow];
};

// Up to kWidth<T> rows. The exponentials go to y, which may be the rows themselves, unless it is
// null.
template <bool keeps, class T>
[[gnu::always_inline]] inline void sum_exponentials_of(const WholeRows<T>& x, int64_t rows,
                                                       T* largest, T* sum, T* y) {
  RowLanes<T> lanes[kWidth<T>];
  T merged[kWidth<T>];
  for (auto& lane : lanes) fill(lane, -T(__builtin_inf()), kRowLanes);
  for (int64_t r = 0; r < rows; ++r) {
    const T* row = x.data + r * x.width;
    fold_row(x.width, lanes[r], [=](int64_t j) { return row[j]; }, Larger());
  }
  store_vector(merged, merge_lanes<T>(lanes, Larger()));
  auto add = [](auto a, auto b) { return a + b; };
  for (int64_t r = 0; r < rows; ++r) {
    const T* row = x.data + r * x.width;
    T* out = y + r * x.width;
    const T above = largest[r] = merged[r];
    auto exponential = [=](int64_t j) {
      T e = exp_nonpositive(row[j] - above);
      if constexpr (keeps) out[j] = e;
      return e;
    };
    fill(lanes[r], T(0), kRowLanes);
    fold_row(x.width, lanes[r], exponential, add);
  }
  store_vector(merged, merge_lanes<T>(lanes, add));
  for (int64_t r = 0; r < rows; ++r) sum[r] = merged[r];
}

// Calls f(first, count) for groups of at most `most` rows.
template <class F>
[[gnu::always_inline]] inline void for_each_group(int64_t rows, int64_t most, const F& f) {
  for (int64_t first = 0; first < rows; first += most)
    f(first, rows - first < most ? rows - first : most);
}

// The largest of each of up to kRowsTogether rows, and the log of the sum of exp(x - largest).
// All lanes of log are always there, so that digits never depend on how many rows there are.
template <class T>
void log_totals(const T* x, int64_t rows, int64_t n, T (&largest)[kRowsTogether],
                T (&total)[kRowsTogether]) {
  for (T& value : total) value = T(1);  // whose log is cheap
  if (n < kShortRow) {
    for (int64_t r = 0; r < rows; r += kWidth<T>) {
      int64_t few = rows - r < kWidth<T> ? rows - r : kWidth<T>;
      WholeRows<T> whole(x + r * n, few, n);
      sum_exponentials_of<false>(whole, few, largest + r, total + r, static_cast<T*>(nullptr));
    }
  } else {
    for (int64_t r = 0; r < rows; ++r) {
      const T* row = x + r * n;
      const T above = largest[r] = fold<T>(n, [=](int64_t i) { return row[i]; }, Larger());
      total[r] = sum<T>(n, [=](int64_t i) { return exp_nonpositive(row[i] - above); });
    }
  }
#pragma omp simd
  for (int64_t r = 0; r < kRowsTogether; ++r) total[r] = log(total[r]);
}

}  // namespace rushlight::RUSHLIGHT_ISA_NAMESPACE
