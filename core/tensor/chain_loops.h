// Owns the shape of the loops that do a chain of arithmetic in one pass over a tile: what an
// operation gives stays in registers for the next. They are compiled once per instruction set.
#pragma once

#include "core/tensor/loops.h"

namespace rushlight {

// What becomes of x and y, `_from` with the two the other way round, or of x alone.
enum class Arithmetic : uint8_t {
  add,
  subtract,
  subtract_from,
  multiply,
  divide,
  divide_from,
  negate,
  absolute,
  square,
  relu,
  round_float16,
  round_bfloat16,  // a float to a half and back
};

// What lies in memory: numbers of the type that is computed with or, of floats, halves.
enum class Element : uint8_t { whole, float16, bfloat16 };

// Begins with x, the first operand, and does one link after the other.
struct Chain {
  struct Link {
    Arithmetic how;
    int8_t operand = 1;      // y among the operands; no matter where x is alone
    bool is_number = false;  // whether y is one number for the whole tile
    Element element = Element::whole;
  };
  static constexpr int kMost = 32;

  int count = 0;
  Link links[kMost];
  Element first = Element::whole, result = Element::whole;
};

inline bool has_two_operands(Arithmetic how) { return how < Arithmetic::negate; }

// Their `scalars` are a Chain. Every operation rounds: no product is contracted into a sum.
struct ChainLoops {
  PointwiseLoop float32, float64;
};

}  // namespace rushlight
