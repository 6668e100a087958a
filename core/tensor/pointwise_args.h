// Owns the arguments of the pointwise kernels, as host and device both see them.
#pragma once

#include "core/tensor/lane_layout.h"
#include "core/tensor/loops.h"

namespace rushlight {

// An operand that is a number comes by value, another by address.
struct PointwiseArgs {
  const void* operands[kMaxOperands];
  alignas(16) char numbers[kMaxOperands][16];  // in the type that the formula reads
  alignas(16) char scalars[kMaxScalars][16];   // likewise
  void* result;
  int64_t numel;
  // Bit k: operand k has one element, which lies at operands[k], or in numbers[k] if that is null.
  uint32_t single;
};

// Where all lie in one order, a thread moves so many vectors.
inline constexpr int kVectors = 2;

// In any other layout a thread has so many elements, a block's width apart, whose loads overlap.
inline constexpr int kScattered = 4;

// Of the operands, then the result.
using PointwiseLayout = LaneLayout<kMaxOperands + 1>;

}  // namespace rushlight
