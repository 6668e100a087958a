// Owns fold(): the reduction of a contiguous run in a fixed number of lanes, for kernels that are
// compiled once per instruction set.
//
// The lanes are those of the widest processor on all of them, so that the digits never depend on
// the instruction set; many short chains of additions also keep the rounding error small.
#pragma once

#include "core/tensor/formula.h"

namespace rushlight::RUSHLIGHT_ISA_NAMESPACE {
namespace detail {

// Lanes of a run that has so many elements, and of a shorter one or of what is left of it.
template <class T>
inline constexpr int64_t kManyLanes = 256 / sizeof(T);  // four vectors of 512 bits hide the latency
inline constexpr int64_t kFewLanes = 8;

// Whole multiples of `lanes` elements, n >= lanes. The lanes are merged until `kept` are left.
template <int64_t kept, int64_t lanes, class T, class Element, class Merge>
[[gnu::always_inline]] inline void fold_lanes(T (&lane)[lanes], int64_t n, const Element& element,
                                              const Merge& merge) {
#pragma omp simd
  for (int64_t l = 0; l < lanes; ++l) lane[l] = element(l);
  for (int64_t i = lanes; i + lanes <= n; i += lanes) {
#pragma omp simd
    for (int64_t l = 0; l < lanes; ++l) lane[l] = merge(lane[l], element(i + l));
  }
#pragma GCC unroll 8
  for (int64_t half = lanes / 2; half >= kept; half /= 2)
    for (int64_t l = 0; l < half; ++l) lane[l] = merge(lane[l], lane[l + half]);
}

template <int64_t lanes, class T, class Element, class Merge>
[[gnu::always_inline]] inline T fold_all_lanes(int64_t n, const Element& element,
                                               const Merge& merge) {
  T lane[lanes];
  fold_lanes<1>(lane, n, element, merge);
  return lane[0];
}

}  // namespace detail

// merge(...) of element(0), ..., element(n - 1), for n > 0.
template <class T, class Element, class Merge>
[[gnu::always_inline]] inline T fold(int64_t n, const Element& element, const Merge& merge) {
  constexpr int64_t kMany = detail::kManyLanes<T>, kFew = detail::kFewLanes;
  int64_t i = 0;
  T all{};
  if (n >= kMany) {
    all = detail::fold_all_lanes<kMany, T>(n, element, merge);
    i = n / kMany * kMany;
  }
  if (n - i >= kFew) {
    auto rest = [&](int64_t j) __attribute__((always_inline)) { return element(i + j); };
    T part = detail::fold_all_lanes<kFew, T>(n - i, rest, merge);
    all = i == 0 ? part : merge(all, part);
    i += (n - i) / kFew * kFew;
  }
  if (i == 0) all = element(i++);
  for (; i < n; ++i) all = merge(all, element(i));
  return all;
}

// The sum of element(0), ..., element(n - 1), for n >= 0.
template <class T, class Element>
[[gnu::always_inline]] inline T sum(int64_t n, const Element& element) {
  return n == 0 ? T(0) : fold<T>(n, element, [](T a, T b) { return T(a + b); });
}

}  // namespace rushlight::RUSHLIGHT_ISA_NAMESPACE
