// Owns the arguments of the index kernels, as host and device both see them.
#pragma once

#include <stdint.h>

namespace rushlight {

// Dims after those that can be walked as one are joined, outermost first.
inline constexpr int kMaxIndexDims = 16;
struct IndexLayout {
  int32_t dims;
  int64_t sizes[kMaxIndexDims];
  int64_t strides[kMaxIndexDims];
};

// The elements that an index picks, one thread each: `before` dims, then the positions of the
// index, then `after` dims. Strides are in bytes.
struct PickedArgs {
  char* picked;
  const int64_t* offsets;  // by position, in units of offset_bytes
  const int64_t* order;  // positions by offset, then by place; null where no two offsets are equal
  int64_t offset_bytes;
  int64_t positions, after_count, total;
  IndexLayout before, after;
};

// Threads of a block, and the flags that it counts or lists.
inline constexpr int kIndexThreads = 256;
inline constexpr int kFlagsPerBlock = 2048;

// Sorted positions that one thread combines at most.
inline constexpr int kRunChunk = 64;

}  // namespace rushlight
