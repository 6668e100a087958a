// Owns the shape of the index loops, which are compiled once per instruction set.
#pragma once

#include "core/tensor/loops.h"

namespace rushlight {

struct IndexLoops {
  // Whether all places are from 0 to size - 1.
  bool (*in_range)(const int64_t* places, int64_t n, int64_t size);
  // The least and the greatest of some numbers.
  void (*bounds)(const int64_t* numbers, int64_t n, int64_t* least, int64_t* greatest);
  // to[k] = from[places[k] * stride + k * step], in elements of 1, 2, 4, 8 and 16 bytes.
  void (*take[5])(const void* from, int64_t stride, int64_t step, const int64_t* places, int64_t n,
                  void* to);
  // to[k] += from[k] for real dtypes, in the order of DType.
  void (*add[kRealTypes])(void* to, const void* from, int64_t n);
  // to[k] = the larger or the smaller of to[k] and from[k], NaN if one is, for float and double.
  void (*maximum[2])(void* to, const void* from, int64_t n);
  void (*minimum[2])(void* to, const void* from, int64_t n);
  int64_t (*count)(const bool* flags, int64_t n);
  // Writes the places of true flags, plus `first`, to `to`, where there are at most `most`.
  void (*list)(const bool* flags, int64_t n, int64_t first, int64_t most, int64_t* to);
  // Writes the places of values in [low, low + width) to `to`; returns their number.
  int64_t (*list_between)(const int64_t* values, int64_t n, int64_t low, uint64_t width,
                          int64_t* to);
};

// Those of the instruction set in use.
const IndexLoops& index_loops();

}  // namespace rushlight
