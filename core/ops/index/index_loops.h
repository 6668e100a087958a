// Owns the shape of the index loops, which are compiled once per instruction set.
#pragma once

#include "core/ops/index/combine.h"
#include "core/tensor/loops.h"

namespace rushlight {

// Combines to[k] with the elements of `from`, which lie `step` bytes apart.
using CombineLoop = void (*)(void* to, const void* from, int64_t step, int64_t n);

// How far elements of a loop are apart, in elements: from one place to the next, and from one
// iteration to the next.
struct AtSteps {
  int64_t place, to, places, from;

  bool operator==(const AtSteps&) const = default;
};
using CombineAtLoop = int64_t (*)(void* to, const int64_t* places, const void* from, AtSteps steps,
                                  int64_t n, int64_t size);

struct IndexLoops {
  // Whether all places are from 0 to size - 1.
  bool (*in_range)(const int64_t* places, int64_t n, int64_t size);
  // The least and the greatest of some numbers.
  void (*bounds)(const int64_t* numbers, int64_t n, int64_t* least, int64_t* greatest);
  // offsets[k] += places[k * step] * stride, or = if it is the first; negative places count from
  // `size`. Returns whether all are from -size to size - 1.
  bool (*add_offsets)(int64_t* offsets, const int64_t* places, int64_t step, int64_t n,
                      int64_t size, int64_t stride, bool is_first);
  // By Scatter, but null for write; for real dtypes in the order of DType, but null for bool.
  CombineLoop combine[kScatterCount][kRealTypes];
  // Combines the element at place k of `to` with element k of `from`, one after the other, up to
  // the first place that is not from 0 to size - 1; returns how many these are. By Scatter, for
  // float16 and bfloat16.
  CombineAtLoop combine_at[kScatterCount][2];
  // Flags are true unless they are 0.
  int64_t (*count)(const uint8_t* flags, int64_t n);
  // Writes the places of true flags, plus `first`, to `to`, where there are at most `most`.
  void (*list)(const uint8_t* flags, int64_t n, int64_t first, int64_t most, int64_t* to);
  // Writes the places of values in [low, low + width) to `to`; returns their number.
  int64_t (*list_between)(const int64_t* values, int64_t n, int64_t low, uint64_t width,
                          int64_t* to);
};

// Those of the instruction set in use.
const IndexLoops& index_loops();

}  // namespace rushlight
