// Owns the check of the numbers that say where windows lie: of convolutions, pools and folds.
#pragma once

#include <limits>

#include "core/base/error.h"
#include "core/base/shape.h"

namespace rushlight {

// Kernels count with 32 bits.
inline constexpr int64_t kLargestOfWindow = std::numeric_limits<int32_t>::max();

inline void check_window_range(ShapeRef list, const char* name, int64_t least) {
  for (int64_t value : list)
    CHECK(value >= least && value <= kLargestOfWindow, name, " ", ShapeText{list},
          " is out of range: each number must be at least ", least, " and below 2^31.");
}

// Refuses a list that has not `dims` numbers from `least` to below 2^31.
inline void check_window_numbers(ShapeRef list, int64_t dims, const char* name, int64_t least) {
  CHECK(int64_t(list.size()) == dims, name, " must have ", dims, " numbers, one for each spatial ",
        "dim, but is ", ShapeText{list}, ".");
  check_window_range(list, name, least);
}

}  // namespace rushlight
