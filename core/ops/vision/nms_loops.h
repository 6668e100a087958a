// Owns the shape of the loop of nms that is compiled once per instruction set.
#pragma once

#include "core/tensor/loops.h"

namespace rushlight {

// Marks in `gone` (n flags, zero before, as wide as coordinates) the boxes that one before them
// removes. boxes: n left edges, then n tops, right edges, bottoms and areas.
struct NmsLoops {
  void (*suppress[2])(const void* boxes, int64_t n, double threshold, void* gone);  // float, double
};

}  // namespace rushlight
