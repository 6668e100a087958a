// Owns the shape of the loops that do a chain of arithmetic in one pass over a tile: what an
// operation gives stays in registers for the next. They are compiled once per instruction set.
#pragma once

#include "core/tensor/loops.h"

namespace rushlight {

// What becomes of x and y; `_from` is the other way round.
enum class Arithmetic : uint8_t { add, subtract, subtract_from, multiply, divide, divide_from };

// Begins with x, the first operand, and goes on with one more for each link.
struct Chain {
  struct Link {
    Arithmetic how;
    bool is_number = false;  // whether y is one number for the whole tile
  };
  static constexpr int kMost = 20;

  int count = 0;
  Link links[kMost];
};

// Their `scalars` are a Chain. Every operation rounds: no product is contracted into a sum.
struct ChainLoops {
  PointwiseLoop float32, float64;
};

}  // namespace rushlight
