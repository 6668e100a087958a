// Owns the sizes of the sort kernels, as host and device both see them.
#pragma once

namespace rushlight {

inline constexpr int kSortThreads = 256;  // of a block
inline constexpr int kSortTile = 2048;    // keys that a block of the radix sort moves
inline constexpr int kSortShared = 2048;  // elements of the longest row sorted in shared memory

}  // namespace rushlight
