// Owns the shape of the loops that round, which are compiled once per instruction set.
#pragma once

#include "core/tensor/loops.h"

namespace rushlight {

// Convert floats to a half type and back.
struct RoundLoops {
  CastLoop float16, bfloat16;
};

}  // namespace rushlight
