// Owns the binary search in a sorted row.
#pragma once

#include <array>
#include <cstdint>

namespace rushlight {

// How many elements at the front of each of `many` rows goes_on(element, k) holds for. No jump
// depends on the data, and no search waits for another.
template <int64_t many, class T, class GoesOn>
std::array<int64_t, many> count_first(const std::array<const T*, many>& rows, int64_t length,
                                      GoesOn goes_on) {
  std::array<int64_t, many> counts{};
  for (int64_t n = length; n > 0;) {
    int64_t half = (n + 1) / 2;
    for (size_t k = 0; k < many; ++k)
      counts[k] += goes_on(rows[k][counts[k] + half - 1], k) ? half : 0;
    n -= half;
  }
  return counts;
}

}  // namespace rushlight
