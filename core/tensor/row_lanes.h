// Owns the reduction of several short rows at once, for kernels that are compiled once per
// instruction set: each row is folded into lanes, and the lanes of all rows are merged together,
// which costs hardly more than those of one.
//
// Element j of a row belongs to lane j % kRowLanes on every instruction set, and lanes are merged
// by halves, so that digits never depend on it, nor on how many rows there are.
#pragma once

#include "core/tensor/vectors.h"

namespace rushlight::RUSHLIGHT_ISA_NAMESPACE {

inline constexpr int64_t kRowLanes = 16;
template <class T>
using RowLanes = T[kRowLanes];

template <class T>
[[gnu::always_inline]] inline void fill(T* x, T value, int64_t n) {
  for (int64_t j = 0; j < n; ++j) x[j] = value;
}

// NaN need not win where exponentials are summed next: it makes their sum NaN.
struct Larger {
  template <class T>
  [[gnu::always_inline]] T operator()(T a, T b) const {
    return a > b ? a : b;
  }
};

// Merges element(0), ..., element(n - 1) into the lanes, n being a multiple of kRowLanes.
template <class T, class Element, class Merge>
[[gnu::always_inline]] inline void fold_row(int64_t n, RowLanes<T>& lane, const Element& element,
                                            const Merge& merge) {
  for (int64_t j = 0; j < n; j += kRowLanes) {
#pragma omp simd
    for (int64_t l = 0; l < kRowLanes; ++l) lane[l] = merge(lane[l], element(j + l));
  }
}

// Lane r of the result is what all lanes of row r come to.
template <class T, class Merge>
[[gnu::always_inline]] inline Vector<T> merge_lanes(RowLanes<T> (&rows)[kWidth<T>],
                                                    const Merge& merge) {
  Vector<T> a[kWidth<T>];
  for (int r = 0; r < kWidth<T>; ++r) {
    for (int64_t half = kRowLanes / 2; half >= kWidth<T>; half /= 2)
      for (int64_t l = 0; l < half; ++l) rows[r][l] = merge(rows[r][l], rows[r][l + half]);
    a[r] = load_vector(rows[r]);
  }
#pragma GCC unroll 4
  for (int half = kWidth<T> / 2; half > 0; half /= 2)
#pragma GCC unroll 8
    for (int r = 0; r < half; ++r)
      a[r] = merge(interleave<T, 0>(a[r], a[r + half]), interleave<T, 1>(a[r], a[r + half]));
  return a[0];
}

}  // namespace rushlight::RUSHLIGHT_ISA_NAMESPACE
