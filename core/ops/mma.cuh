// Owns the products of small matrices of Half or BFloat16 by tensor cores, which a warp computes
// together: every function here is called by all its lanes.
//
// Note [Fragments]
// A lane has a few elements of each matrix, two neighbors in a word, the first in the lower half.
// Of a matrix of 8 x 8 elements lane 4 g + t has [g][2 t] and [g][2 t + 1]. A 16 x 16 matrix a is
// four of those: rows 0 to 7, rows 8 to 15, and the same of columns 8 to 15. A 16 x 8 matrix b has
// its neighbors in a column: [2 t][g] and [2 t + 1][g], then those 8 rows below. A sum c is 16 x 8
// floats: [g][2 t], [g][2 t + 1], [g + 8][2 t] and [g + 8][2 t + 1].
// See mma.m16n8k16 and ldmatrix in the PTX ISA.
#pragma once

#include "core/tensor/convert.h"

namespace rushlight::on_cuda {

// Two numbers as neighbors.
template <class Item>
uint32_t pack_two(float first, float second) {
#ifdef RUSHLIGHT_SHIM
  return uint32_t(convert<Item>(first).bits) | uint32_t(convert<Item>(second).bits) << 16;
#else
  uint32_t pair;
  if constexpr (detail::kSame<Item, Half>)
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
  else asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
  return pair;
#endif
}

// Loads four matrices of 8 x 8 elements from shared memory, those of an a or of two b's: lane
// 8 i + r says where row r of matrix i begins, at a multiple of 16 bytes. With `transposed`,
// neighbors come from a column.
template <bool transposed, class Item>
void load_matrices(uint32_t (&pairs)[4], const Item* row) {
#ifdef RUSHLIGHT_SHIM
  int lane = int(threadIdx.x % 32), g = lane / 4, t = lane % 4;
  for (int i = 0; i < 4; ++i) {
    auto at = [&](int r, int c) {
      uint64_t from = __shfl_sync(~0u, uint64_t(row), 8 * i + r);
      return uint32_t(reinterpret_cast<const Item*>(from)[c].bits);
    };
    pairs[i] =
        transposed ? at(2 * t, g) | at(2 * t + 1, g) << 16 : at(g, 2 * t) | at(g, 2 * t + 1) << 16;
  }
#else
#define RUSHLIGHT_LOAD(trans)                                                              \
  asm volatile("ldmatrix.sync.aligned.m8n8.x4" trans ".shared.b16 {%0, %1, %2, %3}, [%4];" \
               : "=r"(pairs[0]), "=r"(pairs[1]), "=r"(pairs[2]), "=r"(pairs[3])            \
               : "r"(uint32_t(__cvta_generic_to_shared(row)))                              \
               : "memory")
  if constexpr (transposed) RUSHLIGHT_LOAD(".trans");
  else RUSHLIGHT_LOAD("");
#undef RUSHLIGHT_LOAD
#endif
}

template <bool transposed, class Item>
void load_matrices(uint32_t (&pairs)[2][2], const Item* row) {
  uint32_t all[4];
  load_matrices<transposed>(all, row);
#pragma unroll
  for (int k = 0; k < 4; ++k) pairs[k / 2][k % 2] = all[k];
}

// c += a @ b
template <class Item>
void multiply_add_16_8_16(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
#ifdef RUSHLIGHT_SHIM
  int lane = int(threadIdx.x % 32), g = lane / 4, t = lane % 4;
  auto element = [](uint32_t pair, int k) {
    return convert<float>(Item{uint16_t(k % 2 ? pair >> 16 : pair)});
  };
  for (int from = 0; from < 4; ++from) {
    uint32_t rows[4], columns[2][2];
    for (int r = 0; r < 4; ++r) rows[r] = __shfl_sync(~0u, a[r], 4 * g + from);
    for (int column = 0; column < 2; ++column)
      for (int r = 0; r < 2; ++r)
        columns[column][r] = __shfl_sync(~0u, b[r], 4 * (2 * t + column) + from);
    for (int i = 0; i < 4; ++i)
      for (int k = 0; k < 4; ++k)
        c[i] += element(rows[i / 2 + k / 2 * 2], k) * element(columns[i % 2][k / 2], k);
  }
#else
#define RUSHLIGHT_MMA(type)                                                                    \
  asm("mma.sync.aligned.m16n8k16.row.col.f32." type "." type ".f32 "                           \
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"                        \
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])                                         \
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]))
  if constexpr (detail::kSame<Item, Half>) RUSHLIGHT_MMA("f16");
  else RUSHLIGHT_MMA("bf16");
#undef RUSHLIGHT_MMA
#endif
}

}  // namespace rushlight::on_cuda
