// Owns the shape of the loops of sorting, which are compiled once per instruction set.
#pragma once

#include "core/tensor/loops.h"

namespace rushlight {

struct KeyBounds {
  uint64_t least, greatest;
};

inline constexpr int64_t kRowsTogether = 8;  // that are sorted side by side
inline constexpr int64_t kShortRow = 512;    // elements of such a row at most

// A key, and how many are smaller.
struct KeyOfRank {
  uint32_t key;
  int64_t before;
};

struct SortLoops {
  // Writes an unsigned integer of the same order for each of n > 0 elements `stride` apart, and
  // returns their bounds; NaN is the greatest number, and -0 equals 0. The order is the opposite
  // when `descending`. uint32 for elements of up to 4 bytes, else uint64; for real dtypes in the
  // order of DType.
  KeyBounds (*keys[kRealTypes])(const void* from, int64_t stride, int64_t n, bool descending,
                                void* to);
  // Writes the least of the keys g, g + groups, g + 2 groups ... of n for each g < groups <= n.
  void (*least32)(const uint32_t* keys, int64_t n, int64_t groups, uint32_t* to);
  void (*least64)(const uint64_t* keys, int64_t n, int64_t groups, uint64_t* to);
  // The key that n of them with these bounds have at a rank when they are sorted. Looks at all keys
  // once for each bit that differs.
  KeyOfRank (*at_rank)(const uint32_t* keys, int64_t n, KeyBounds bounds, int64_t rank);
  // Finds the first `keep` elements of kRowsTogether rows of up to kShortRow, which start at `rows`
  // and lie `stride` apart, in the order of these keys: order[rank * kRowsTogether + row] becomes
  // the place of the element of that rank in its row, where of equals the first comes first. Makes
  // the same comparisons in all rows, and compares 32 bits: returns a bit for each row where that
  // did not suffice.
  uint32_t (*short_rows[kRealTypes])(const void* const* rows, int64_t stride, int64_t length,
                                     int64_t keep, bool descending, uint16_t* order);
};

// Those of the instruction set in use.
const SortLoops& sort_loops();

}  // namespace rushlight
