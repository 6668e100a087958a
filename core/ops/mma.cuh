// Owns the products of small matrices by tensor cores, which a warp computes together.
//   ITEM   Half or BFloat16
#pragma once

#include "core/base/half.h"

namespace rushlight::on_cuda {

// Two neighboring elements, the first in the lower half.
inline uint32_t pack_two(float first, float second) {
#define RUSHLIGHT_BITS(x) uint32_t(__builtin_bit_cast(uint16_t, convert<ITEM>(x)))
  return RUSHLIGHT_BITS(first) | RUSHLIGHT_BITS(second) << 16;
#undef RUSHLIGHT_BITS
}

// Where the elements of a 16 x 16 matrix a, a 16 x 8 matrix b and a 16 x 8 sum c lie: lane 4 g + t
// has, in pairs, a[g][2 t], a[g + 8][2 t], a[g][2 t + 8], a[g + 8][2 t + 8], with the neighbors of
// these in their row; b[2 t][g] and b[2 t + 8][g], with the neighbors in their column; and
// c[g][2 t], c[g][2 t + 1], c[g + 8][2 t], c[g + 8][2 t + 1]. See mma.m16n8k16 in the PTX ISA.
// c += a @ b
inline void multiply_add_16_8_16(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
#ifdef RUSHLIGHT_SHIM
  int lane = int(threadIdx.x % 32), g = lane / 4, t = lane % 4;
  auto element = [](uint32_t pair, int k) {
    return convert<float>(__builtin_bit_cast(ITEM, uint16_t(k % 2 ? pair >> 16 : pair)));
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
  constexpr bool kIsHalf = detail::kSame<ITEM, Half>;
#define RUSHLIGHT_MMA(type)                                                                    \
  asm("mma.sync.aligned.m16n8k16.row.col.f32." type "." type ".f32 "                           \
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"                        \
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])                                         \
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]))
  if constexpr (kIsHalf) RUSHLIGHT_MMA("f16");
  else RUSHLIGHT_MMA("bf16");
#undef RUSHLIGHT_MMA
#endif
}

}  // namespace rushlight::on_cuda
