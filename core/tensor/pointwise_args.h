// Owns the arguments of the pointwise kernels, as host and device both see them.
#pragma once

#include "core/tensor/divisor.h"
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

// Where all lie in one order, a thread moves kVectors vectors; memory is aligned to them.
inline constexpr int kVectorBytes = 16;
inline constexpr int kVectors = 2;

// In any other layout a thread has so many elements, a block's width apart, whose loads overlap.
inline constexpr int kScattered = 4;

// Dims that a kernel walks after those that all lanes walk as one are joined.
inline constexpr int kMaxKernelDims = 16;
struct PointwiseLayout {
  int32_t dims;
  int64_t sizes[kMaxKernelDims];     // the last dim is the innermost
  Divisor divisors[kMaxKernelDims];  // of the sizes, where there are fewer than 2^31 elements
  // In elements of each lane: the operands, then the result.
  int64_t strides[kMaxOperands + 1][kMaxKernelDims];
};

}  // namespace rushlight
