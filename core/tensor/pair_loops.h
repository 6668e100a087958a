// Owns the shape of the loops that do two operations of arithmetic in one pass over a tile. They
// are compiled once per instruction set.
#pragma once

#include "core/tensor/loops.h"

namespace rushlight {

enum class Arithmetic : uint8_t { add, subtract, multiply };
inline constexpr int kArithmeticCount = 3;

// Of operands a, b and c: second(first(a, b), c), or, when swapped, second(c, first(a, b)).
struct PairLoops {
  PointwiseLoop run[2][kArithmeticCount][kArithmeticCount][2];  // [double][first][second][swapped]
};

}  // namespace rushlight
