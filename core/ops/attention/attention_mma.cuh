// Owns the products of tiles of attention by tensor cores, see attention.cu: a warp has 16 fixed
// rows, and turns scores into operands where they are, in registers.
#pragma once

#include "core/ops/mma.cuh"

namespace rushlight::on_cuda {

using Tile = ITEM;
constexpr int kThreads = FIXED / 16 * 32;
constexpr int kRows = 2, kColumns = INNER / 4, kOutputs = HEAD / 4;
constexpr int kRowLanes = 4;
constexpr int kFixedRun = 1, kInnerRun = 2;
constexpr int kVector = kAttentionVector / sizeof(Tile);
constexpr int kLine = attention_line(HEAD, sizeof(Tile));

using Scores = float[kRows][kColumns];
using Outputs = float[kRows][kOutputs];

inline int group() { return int(threadIdx.x) % 32 / 4; }
inline int pair() { return int(threadIdx.x) % 4 * 2; }
inline int fixed_row(int i) { return int(threadIdx.x) / 32 * 16 + group() + 8 * i; }
inline int inner_row(int j) { return j / 2 * 8 + pair() + j % 2; }
inline int feature(int f) { return f / 2 * 8 + pair() + f % 2; }
inline int slot(int row) { return row; }

// scores = fixed @ inner.T
inline void multiply(const Tile* fixed, const Tile* inner, int features, Scores& scores) {
  float sums[INNER / 8][4] = {};
  int lane = int(threadIdx.x) % 32;
  const Tile* left = fixed + (fixed_row(0) - group() + lane % 16) * kLine + lane / 16 * 8;
  const Tile* right = inner + (lane / 16 * 8 + lane % 8) * kLine + lane / 8 % 2 * 8;
#pragma unroll 2
  for (int e = 0; e < features; e += 16) {
    uint32_t a[4];
    load_matrices<false>(a, left + e);
#pragma unroll
    for (int n = 0; n < INNER / 8; n += 2) {
      uint32_t b[2][2];
      load_matrices<false>(b, right + n * 8 * kLine + e);
      multiply_add_fragments<Tile>(sums[n], a, b[0]);
      multiply_add_fragments<Tile>(sums[n + 1], a, b[1]);
    }
  }
#pragma unroll
  for (int i = 0; i < kRows; ++i)
#pragma unroll
    for (int j = 0; j < kColumns; ++j) scores[i][j] = sums[j / 2][i * 2 + j % 2];
}

// sums += scores @ inner, of `width` inner rows.
inline void add_products(const Scores& scores, Tile*, const Tile* inner, int width, Outputs& sums) {
#pragma unroll
  for (int p = 0; p < INNER; p += 16) {
    if (p >= width) break;
    uint32_t a[4];
#pragma unroll
    for (int k = 0; k < 4; ++k)
      a[k] = pack_two<Tile>(scores[k % 2][p / 4 + k / 2 * 2], scores[k % 2][p / 4 + k / 2 * 2 + 1]);
    int lane = int(threadIdx.x) % 32;
    const Tile* right = inner + (p + lane % 16) * kLine + lane / 16 * 8;
#pragma unroll
    for (int n = 0; n < HEAD / 8; n += 2) {
      uint32_t b[2][2];
      load_matrices<true>(b, right + n * 8);
#pragma unroll
      for (int f = 2 * n; f < 2 * n + 4; f += 2) {
        float part[4] = {sums[0][f], sums[0][f + 1], sums[1][f], sums[1][f + 1]};
        multiply_add_fragments<Tile>(part, a, b[f / 2 - n]);
        sums[0][f] = part[0];
        sums[0][f + 1] = part[1];
        sums[1][f] = part[2];
        sums[1][f + 1] = part[3];
      }
    }
  }
}

}  // namespace rushlight::on_cuda
