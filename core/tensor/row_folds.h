// Owns fold_together(): fold() of as many rows as a vector has lanes, at once.
//
// The lanes of a row are merged in the same order, so that the digits are the same. But lanes of
// several rows fill a vector together, down to the last merge.
#pragma once

#include <type_traits>

#include "core/tensor/lanes.h"
#include "core/tensor/vectors.h"

namespace rushlight::RUSHLIGHT_ISA_NAMESPACE {
namespace detail {

// Of vectors in which each row has `lanes` lanes side by side, the first (half 0) or second half of
// those of each row of a, then of b.
template <class T, int lanes, int half, size_t... I>
[[gnu::always_inline]] inline Vector<T> halves_of_rows(Vector<T> a, Vector<T> b, Indices<I...>) {
  constexpr int kHalf = lanes / 2;
  return __builtin_shufflevector(a, b, (int(I) / kHalf * lanes + int(I) % kHalf + half * kHalf)...);
}

template <class T, class Merge>
[[gnu::always_inline]] inline Vector<T> merge_lanes(Vector<T> a, Vector<T> b, const Merge& merge) {
  constexpr int kCount = kWidth<T>;
  T x[kCount], y[kCount];
  store_vector(x, a);
  store_vector(y, b);
#pragma omp simd
  for (int l = 0; l < kCount; ++l) x[l] = merge(x[l], y[l]);
  return load_vector(x);
}

// One lane of each row, from vectors of `lanes` lanes of kWidth<T> / lanes rows each.
template <int lanes, class T, class Merge>
[[gnu::always_inline]] inline Vector<T> merge_rows(const T* from, const Merge& merge) {
  if constexpr (lanes == 1) {
    return load_vector(from);
  } else {
    using All = IndicesTo<size_t(kWidth<T>)>;
    constexpr int kHalf = lanes / 2, kCount = kWidth<T>;
    T merged[kHalf * kCount];
    for (int v = 0; v < kHalf; ++v) {
      Vector<T> a = load_vector(from + 2 * v * kCount),
                b = load_vector(from + (2 * v + 1) * kCount);
      store_vector(merged + v * kCount,
                   merge_lanes<T>(halves_of_rows<T, lanes, 0>(a, b, All{}),
                                  halves_of_rows<T, lanes, 1>(a, b, All{}), merge));
    }
    return merge_rows<kHalf>(merged, merge);
  }
}

// The result for each row of whole multiples of `most` elements, which begin with column `first`.
template <int64_t most, class T, class Element, class Merge>
[[gnu::always_inline]] inline Vector<T> fold_rows(int64_t first, int64_t n, const Element& element,
                                                  const Merge& merge) {
  constexpr int kRows = kWidth<T>, kLanes = kRows < most ? kRows : int(most);
  T lanes[kRows * kLanes];
  for (int row = 0; row < kRows; ++row) {
    T lane[most];
    auto of_row = [&](int64_t j) __attribute__((always_inline)) { return element(row, first + j); };
    fold_lanes<kLanes>(lane, n, of_row, merge);
    for (int l = 0; l < kLanes; ++l) lanes[row * kLanes + l] = lane[l];
  }
  return merge_rows<kLanes>(lanes, merge);
}

}  // namespace detail

// Whether fold_together() is faster: of longer numbers too few fill a vector.
template <class T>
inline constexpr bool kFoldsTogether = std::is_arithmetic_v<T> && sizeof(T) == 4;

// fold() of each of kWidth<T> rows of n >= kFewLanes elements element(row, 0), ...
template <class T, class Element, class Merge>
[[gnu::always_inline]] inline void fold_together(int64_t n, const Element& element,
                                                 const Merge& merge, T* results) {
  constexpr int64_t kMany = detail::kManyLanes<T>, kFew = detail::kFewLanes;
  int64_t i = 0;
  Vector<T> all{};
  if (n >= kMany) {
    all = detail::fold_rows<kMany, T>(0, n, element, merge);
    i = n / kMany * kMany;
  }
  if (n - i >= kFew) {
    Vector<T> part = detail::fold_rows<kFew, T>(i, n - i, element, merge);
    all = i == 0 ? part : detail::merge_lanes<T>(all, part, merge);
    i += (n - i) / kFew * kFew;
  }
  store_vector(results, all);
  for (; i < n; ++i)
    for (int row = 0; row < kWidth<T>; ++row) results[row] = merge(results[row], element(row, i));
}

}  // namespace rushlight::RUSHLIGHT_ISA_NAMESPACE
