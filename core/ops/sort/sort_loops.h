// Owns the shape of the loops of sorting, which are compiled once per instruction set.
#pragma once

#include "core/tensor/loops.h"

namespace rushlight {

struct KeyBounds {
  uint64_t least, greatest;
};

inline constexpr int64_t kRankedTogether = 16;

struct SortLoops {
  // Writes an unsigned integer of the same order for each of n > 0 elements `stride` apart, and
  // returns their bounds; NaN is the greatest number, and -0 equals 0. The order is the opposite
  // when `descending`. uint32 for elements of up to 4 bytes, else uint64; for real dtypes in the
  // order of DType.
  KeyBounds (*keys[kRealTypes])(const void* from, int64_t stride, int64_t n, bool descending,
                                void* to);
  // Writes the rank of each of n keys among all, where of equals the first comes first. Keys and
  // ranks are uint32, or uint64 for [1]. Compares all pairs: for few keys. Both have room for a
  // multiple of kRankedTogether.
  void (*ranks[2])(const void* keys, int64_t n, void* ranks);
};

// Those of the instruction set in use.
const SortLoops& sort_loops();

}  // namespace rushlight
