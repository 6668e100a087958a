// Owns LaneLayout: where the elements of tensors lie that a kernel walks together, as host and
// device both see it.
#pragma once

#include "core/tensor/divisor.h"

namespace rushlight {

// What a thread moves at once where memory is in order, and aligned to it.
inline constexpr int kVectorBytes = 16;

// Dims that a kernel walks after those that all lanes walk as one are joined.
inline constexpr int kMaxKernelDims = 16;

template <int kLanes>
struct LaneLayout {
  int32_t dims;
  int64_t sizes[kMaxKernelDims];     // the last dim is the innermost
  Divisor divisors[kMaxKernelDims];  // of the sizes, where there are fewer than 2^31 elements
  int64_t strides[kLanes][kMaxKernelDims];  // in elements

  // The quotient by the size of a dim, and what is left. Divisions of 64 bits are slow.
  uint32_t divide(int dim, uint32_t& number) const {
    uint32_t quotient = divisors[dim].quotient(number);
    number -= quotient * uint32_t(sizes[dim]);
    return quotient;
  }
  uint64_t divide(int dim, uint64_t& number) const {
    uint64_t quotient = number / uint64_t(sizes[dim]);
    number -= quotient * uint64_t(sizes[dim]);
    return quotient;
  }
};

}  // namespace rushlight
