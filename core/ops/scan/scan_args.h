// Owns the arguments of the kernels of scans, as host and device both see them.
#pragma once

#include "core/tensor/loops.h"

namespace rushlight {

// Threads of a block, and elements that each of them takes at once from a line in one run.
inline constexpr int kScanThreads = 256;
inline constexpr int kScanItems = 4;
// Bytes of a state, at most.
inline constexpr int kMaxScanState = 32;

// A line runs along the dim of the scan: inner of them start side by side.
struct ScanArgs {
  const void* input;
  const void* factor;  // of linear scans
  void* result;
  void* positions;  // of extremes
  // States by line and piece: what the pieces give by themselves, or what comes before each. Null
  // where a piece is the whole line.
  void* carries;
  int64_t lines, length, inner;
  int64_t piece, pieces;  // elements of a block, and blocks of a line
  bool reverse;
  bool vectors;      // items lie side by side and are aligned
  bool only_totals;  // writes nothing but carries
};

}  // namespace rushlight
