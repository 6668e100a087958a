// Owns the products of tiles of attention by the ordinary arithmetic, see attention.cu: 16 x 16
// threads share a tile of scores.
#pragma once

namespace rushlight::on_cuda {

using Tile = Compute;
constexpr int kThreads = 256;
constexpr int kSide = 16;  // threads along each side of a tile of scores
constexpr int kEach = FIXED / kSide;
constexpr int kRows = kEach, kColumns = kEach, kOutputs = HEAD / kSide;
constexpr int kRowLanes = kSide;
constexpr int kFixedRun = kEach, kInnerRun = kEach;
constexpr int kVector = kAttentionVector / sizeof(Tile);
constexpr int kLine = attention_line(HEAD, sizeof(Tile));
constexpr int kScoreLine = attention_line(INNER, sizeof(Tile));
// How many neighboring features a thread sums.
constexpr int kPack = kOutputs % 4 == 0 && kVector == 4 ? 4 : kOutputs % 2 == 0 ? 2 : 1;
static_assert(FIXED == INNER && kEach <= kVector && kVector == kChunk);

using Scores = Compute[kRows][kColumns];
using Outputs = Compute[kRows][kOutputs];

inline int x() { return int(threadIdx.x) % kSide; }
inline int y() { return int(threadIdx.x) / kSide; }
inline int fixed_row(int i) { return y() * kEach + i; }
inline int inner_row(int j) { return x() * kEach + j; }
inline int feature(int f) { return (f / kPack * kSide + x()) * kPack + f % kPack; }
// The inner rows that threads read at once are neighbors in the tile.
inline int slot(int row) { return row % kEach * kSide + row / kEach; }

// scores = fixed @ inner.T
inline void multiply(const Tile* fixed, const Tile* inner, int features, Scores& scores) {
#pragma unroll
  for (int i = 0; i < kEach; ++i)
#pragma unroll
    for (int j = 0; j < kEach; ++j) scores[i][j] = 0;
#pragma unroll 2
  for (int e = 0; e < features; e += kVector) {
    Chunk<Tile> left[kEach], right[kEach];
#pragma unroll
    for (int i = 0; i < kEach; ++i)
      left[i] = *reinterpret_cast<const Chunk<Tile>*>(fixed + fixed_row(i) * kLine + e);
#pragma unroll
    for (int j = 0; j < kEach; ++j)
      right[j] = *reinterpret_cast<const Chunk<Tile>*>(inner + (j * kSide + x()) * kLine + e);
#pragma unroll
    for (int q = 0; q < kVector; ++q)
#pragma unroll
      for (int i = 0; i < kEach; ++i)
#pragma unroll
        for (int j = 0; j < kEach; ++j)
          scores[i][j] = multiply_add(left[i].at[q], right[j].at[q], scores[i][j]);
  }
}

// sums += scores @ inner, of `width` inner rows. `lines` is a tile for the scores, whose rows only
// threads of one warp share.
inline void add_products(const Scores& scores, Tile* lines, const Tile* inner, int width,
                         Outputs& sums) {
  __syncwarp();
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    Chunk<Tile, kEach> line;
#pragma unroll
    for (int j = 0; j < kEach; ++j) line.at[j] = scores[i][j];
    *reinterpret_cast<Chunk<Tile, kEach>*>(lines + fixed_row(i) * kScoreLine + inner_row(0)) = line;
  }
  __syncwarp();
#pragma unroll 2
  for (int p = 0; p < width; p += kVector) {
    Chunk<Tile> left[kEach];
#pragma unroll
    for (int i = 0; i < kEach; ++i)
      left[i] = *reinterpret_cast<const Chunk<Tile>*>(lines + fixed_row(i) * kScoreLine + p);
#pragma unroll
    for (int q = 0; q < kVector; ++q) {
      const Tile* from = inner + slot(p + q) * kLine;
#pragma unroll
      for (int f = 0; f < kOutputs; f += kPack) {
        Chunk<Tile, kPack> right = *reinterpret_cast<const Chunk<Tile, kPack>*>(from + feature(f));
#pragma unroll
        for (int i = 0; i < kEach; ++i)
#pragma unroll
          for (int e = 0; e < kPack; ++e)
            sums[i][f + e] = multiply_add(left[i].at[q], right.at[e], sums[i][f + e]);
      }
    }
  }
}

}  // namespace rushlight::on_cuda
