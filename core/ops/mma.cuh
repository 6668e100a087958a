// Owns the products of small matrices by tensor cores, which a warp computes together: every
// function here is called by all its lanes. Items are Half, BFloat16 or, rounded to TF32, float.
//
// Note [Fragments]
// A lane has a few words of each matrix; a word is two neighbors of 16 bits, the first in the lower
// half, or one float. Of a matrix of 8 rows of 16 bytes lane 4 g + t has word t of row g. The left
// operand a is four of those, 16 rows of 32 bytes: the upper rows, the lower rows, and the same of
// the other 16 bytes. The right operand b is two, 8 columns of 32 bytes, where what is said of rows
// holds for columns. A sum c is 16 x 8 floats: [g][2 t], [g][2 t + 1], and the same of row g + 8.
// See mma.m16n8k16, mma.m16n8k8 and ldmatrix in the PTX ISA.
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

// To the nearest number with 10 bits of fraction; of the rest tensor cores would see nothing.
inline float round_to_tf32(float x) {
  uint32_t bits;
#ifdef RUSHLIGHT_SHIM
  bits = __builtin_bit_cast(uint32_t, x);
  if (x - x == 0) bits = (bits + 0x1000) & ~0x1fffu;
#else
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x));
#endif
  return __builtin_bit_cast(float, bits);
}

// Loads four matrices from shared memory, those of an a or of two b's: lane 8 i + r says where row
// r of matrix i begins, at a multiple of 16 bytes. With `transposed`, which is for 16 bits, words
// are neighbors in a column.
template <bool transposed, class Item>
void load_matrices(uint32_t (&words)[4], const Item* row) {
#ifdef RUSHLIGHT_SHIM
  int lane = int(threadIdx.x % 32), g = lane / 4, t = lane % 4;
  for (int i = 0; i < 4; ++i) {
    auto row_at = [&](int r) {
      return reinterpret_cast<const uint32_t*>(__shfl_sync(~0u, uint64_t(row), 8 * i + r));
    };
    if constexpr (transposed) {
      auto element = [&](int r) { return row_at(r)[g / 2] >> (g % 2 * 16) & 0xffff; };
      words[i] = element(2 * t) | element(2 * t + 1) << 16;
    } else {
      words[i] = row_at(g)[t];
    }
  }
#else
#define RUSHLIGHT_LOAD(trans)                                                              \
  asm volatile("ldmatrix.sync.aligned.m8n8.x4" trans ".shared.b16 {%0, %1, %2, %3}, [%4];" \
               : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])            \
               : "r"(uint32_t(__cvta_generic_to_shared(row)))                              \
               : "memory")
  if constexpr (transposed) RUSHLIGHT_LOAD(".trans");
  else RUSHLIGHT_LOAD("");
#undef RUSHLIGHT_LOAD
#endif
}
template <bool transposed, class Item>
void load_matrices(uint32_t (&words)[2][2], const Item* row) {
  uint32_t all[4];
  load_matrices<transposed>(all, row);
#pragma unroll
  for (int k = 0; k < 4; ++k) words[k / 2][k % 2] = all[k];
}

// c += a @ b
template <class Item>
void multiply_add_fragments(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
#ifdef RUSHLIGHT_SHIM
  int lane = int(threadIdx.x % 32), g = lane / 4, t = lane % 4;
  constexpr int kItems = int(sizeof(uint32_t) / sizeof(Item));
  auto item = [](uint32_t word, int k) {
    if constexpr (kItems == 1) return __builtin_bit_cast(float, word);
    else return convert<float>(Item{uint16_t(word >> (16 * k))});
  };
  for (int from = 0; from < 4; ++from) {
    uint32_t rows[4], columns[2][2];
    for (int r = 0; r < 4; ++r) rows[r] = __shfl_sync(~0u, a[r], 4 * g + from);
    for (int column = 0; column < 2; ++column)
      for (int r = 0; r < 2; ++r)
        columns[column][r] = __shfl_sync(~0u, b[r], 4 * (2 * t + column) + from);
    for (int i = 0; i < 4; ++i)
      for (int k = 0; k < 2; ++k)
        for (int e = 0; e < kItems; ++e)
          c[i] += item(rows[i / 2 + 2 * k], e) * item(columns[i % 2][k], e);
  }
#else
#define RUSHLIGHT_MMA(shape, type)                                             \
  asm("mma.sync.aligned." shape ".row.col.f32." type "." type ".f32 "          \
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"        \
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])                         \
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]))
  if constexpr (detail::kSame<Item, Half>) RUSHLIGHT_MMA("m16n8k16", "f16");
  else if constexpr (detail::kSame<Item, BFloat16>) RUSHLIGHT_MMA("m16n8k16", "bf16");
  else RUSHLIGHT_MMA("m16n8k8", "tf32");
#undef RUSHLIGHT_MMA
#endif
}

}  // namespace rushlight::on_cuda
