// Owns the binary search in a sorted row.
#pragma once

#include <cstdint>

namespace rushlight {

// How many elements at the front of a row `goes_on` holds for. No jump depends on the data.
template <class T, class GoesOn>
int64_t count_first(const T* row, int64_t length, GoesOn goes_on) {
  const T* from = row;
  for (int64_t n = length; n > 0;) {
    int64_t half = (n + 1) / 2;
    from += goes_on(from[half - 1]) ? half : 0;
    n -= half;
  }
  return from - row;
}

}  // namespace rushlight
