// Owns how a value meets the element that it is scattered to. Also compiled once per instruction
// set, so it includes no library and every function inlines.
#pragma once

#include "core/base/half.h"

namespace rushlight {

enum class Scatter { write, add, multiply, maximum, minimum };
inline constexpr int kScatterCount = int(Scatter::minimum) + 1;

namespace detail {

[[gnu::always_inline]] inline Half rounded_as(Half, float x) { return to_half(x); }
[[gnu::always_inline]] inline BFloat16 rounded_as(BFloat16, float x) { return to_bfloat16(x); }

}  // namespace detail

// Integers wrap around, and a NaN wins against every number. Not for bools: see CombinedAs.
template <Scatter how, class T>
[[gnu::always_inline]] inline T combined(T a, T b) {
  constexpr bool is_sum = how == Scatter::add, is_maximum = how == Scatter::maximum;
  if constexpr (how == Scatter::write) {
    return b;
  } else if constexpr (requires { to_float(a); }) {
    return detail::rounded_as(a, combined<how>(to_float(a), to_float(b)));
  } else if constexpr (is_maximum || how == Scatter::minimum) {
    // In two steps, which are two instructions and no jump.
    T better = is_maximum ? (a > b ? a : b) : (a < b ? a : b);
    return a != a ? a : better;
  } else if constexpr (T(0.5f) == T(0)) {
    return is_sum ? T(uint64_t(a) + uint64_t(b)) : T(uint64_t(a) * uint64_t(b));
  } else {
    return is_sum ? a + b : a * b;
  }
}

}  // namespace rushlight
