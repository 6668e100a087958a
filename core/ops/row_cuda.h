// Owns the launch arithmetic that kernels of row.cuh share.
#pragma once

#include <algorithm>
#include <bit>
#include <initializer_list>

#include "core/base/ceil_div.h"
#include "core/device/cuda_kernel_map.h"
#include "core/tensor/cuda_types.h"
#include "core/tensor/tensor.h"

namespace rushlight {

// What a kernel is given for a tensor that may be undefined.
inline void* address_or_null(const Tensor& t) { return t.defined() ? t.address() : nullptr; }

// Elements that a thread takes at once: 16 bytes of the largest dtype.
inline int chunk_of(std::initializer_list<DType> dtypes) {
  size_t largest = 1;
  for (DType dtype : dtypes) largest = std::max(largest, dtype_size(dtype));
  return int(16 / largest);
}

// Whether every tensor (undefined ones aside) starts at a whole chunk of its elements.
inline bool starts_at_chunk(int chunk, std::initializer_list<const Tensor*> tensors) {
  return std::ranges::all_of(tensors, [=](const Tensor* t) {
    return !t->defined() ||
           reinterpret_cast<uintptr_t>(t->address()) % (size_t(chunk) * t->itemsize()) == 0;
  });
}

// How many threads share a row of n elements, and how many are in a block. Short rows are shared
// by some lanes of a warp, long ones by a block that keeps them in registers if it can.
struct RowTeams {
  int team, threads;
  unsigned blocks;

  RowTeams(int64_t rows, int64_t n, int chunk) {
    constexpr int64_t kKept = 4, kWarp = 32;
    int64_t chunks = ceil_div(n, chunk);
    if (chunks <= kWarp * kKept) {
      team = int(std::bit_ceil(uint64_t(std::min(chunks, kWarp))));
      threads = 256;
    } else {
      int64_t wanted = round_up(chunks / kKept, kWarp);
      team = threads = int(std::clamp<int64_t>(wanted, 64, 512));
    }
    blocks = cuda::blocks_for(rows * team, threads);
  }
};

// How the rows of a matrix are cut for columns.cuh: into enough pieces to fill a GPU, of at least
// some rows. By the shape alone, so that sums are the same on every GPU.
struct ColumnPieces {
  static constexpr int64_t kColumns = 32, kRows = 8, kBlocks = 512;
  unsigned blocks;  // of columns
  int64_t count, rows;

  ColumnPieces(int64_t total, int64_t columns) : blocks(cuda::blocks_for(columns, kColumns)) {
    int64_t most = std::clamp<int64_t>(kBlocks / std::max(blocks, 1u), 1, 256);
    rows = std::max(ceil_div(total, most), 4 * kRows);
    count = ceil_div(total, rows);
  }
  static cuda::Dim3 block() { return {unsigned(kColumns), unsigned(kRows)}; }
};

}  // namespace rushlight
