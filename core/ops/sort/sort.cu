// Owns the sorts of rows on CUDA. DTYPE is the dtype, KEY an unsigned integer that holds its order:
// uint32_t or uint64_t. All are stable.
//
// Short rows are sorted in shared memory by a bitonic network over (key, place). Long ones go
// through a radix sort, one byte of the key after the other, the lowest first: each block counts
// the bytes of its tile, the counts become places, and each block moves its tile.
#include "core/tensor/formula.cuh"

#include "core/ops/block_scan.cuh"
#include "core/ops/sort/sort_args.h"
#include "core/tensor/convert.h"

namespace rushlight::on_cuda {

constexpr int kWarps = kSortThreads / 32;
constexpr int kItems = kSortTile / kSortThreads;  // of a thread
constexpr int kBins = 256;
static_assert(kBins == kSortThreads);

inline KEY ordered_key(float value) {
  if (value != value) return ~KEY(0);
  uint32_t bits = __builtin_bit_cast(uint32_t, value + 0.0f);  // -0 becomes 0
  return bits >> 31 ? uint32_t(~bits) : bits | uint32_t(1) << 31;
}
inline KEY ordered_key(double value) {
  if (value != value) return ~KEY(0);
  uint64_t bits = __builtin_bit_cast(uint64_t, value + 0.0);
  return KEY(bits >> 63 ? ~bits : bits | uint64_t(1) << 63);
}
inline KEY ordered_key(Half value) { return ordered_key(to_float(value)); }
inline KEY ordered_key(BFloat16 value) { return ordered_key(to_float(value)); }
template <class Integer>
inline KEY ordered_key(Integer value) {
  constexpr bool is_signed = Integer(-1) < Integer(1);
  constexpr KEY top = KEY(1) << (8 * sizeof(Integer) - 1), mask = top | (top - 1);
  return (is_signed ? KEY(value) ^ top : KEY(value)) & mask;
}

// One block sorts `rows` rows, each padded to `width` elements, a power of two, and writes the
// first `keep` of each.
extern "C" __global__ void sort_short(const DTYPE* input, DTYPE* values, int64_t* indices,
                                      int64_t rows, int32_t length, int32_t width,
                                      int32_t rows_per_block, int32_t keep, bool descending) {
  extern __shared__ uint64_t memory[];
  KEY* keys = reinterpret_cast<KEY*>(memory);
  int tile = width * rows_per_block;
  uint32_t* places = reinterpret_cast<uint32_t*>(keys + tile);
  int64_t first_row = int64_t(blockIdx.x) * rows_per_block;
  for (int i = threadIdx.x; i < tile; i += blockDim.x) {
    int64_t row = first_row + i / width;
    int place = i % width;
    bool real = row < rows && place < length;
    KEY key = real ? ordered_key(input[row * length + place]) : KEY(0);
    keys[i] = real ? (descending ? KEY(~key) : key) : ~KEY(0);
    places[i] = real ? uint32_t(place) : ~0u;  // behind all that is real
  }
  __syncthreads();
  for (int span = 2; span <= width; span *= 2) {
    for (int step = span / 2; step > 0; step /= 2) {
      for (int c = threadIdx.x; c < tile / 2; c += blockDim.x) {
        int low = 2 * c - (c & (step - 1)), high = low + step;
        bool ascending = !(low & (width - 1) & span);
        bool greater =
            keys[low] > keys[high] || (keys[low] == keys[high] && places[low] > places[high]);
        if (greater == ascending) {
          KEY key = keys[low];
          keys[low] = keys[high];
          keys[high] = key;
          uint32_t place = places[low];
          places[low] = places[high];
          places[high] = place;
        }
      }
      __syncthreads();
    }
  }
  for (int i = threadIdx.x; i < rows_per_block * keep; i += blockDim.x) {
    int64_t row = first_row + i / keep;
    if (row >= rows) break;
    uint32_t place = places[i / keep * width + i % keep];
    values[row * keep + i % keep] = input[row * length + place];
    indices[row * keep + i % keep] = place;
  }
}

extern "C" __global__ void make_keys(const DTYPE* input, KEY* keys, int64_t numel,
                                     bool descending) {
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= numel) return;
  KEY key = ordered_key(input[i]);
  keys[i] = descending ? KEY(~key) : key;
}

// counts[row][byte][tile]: how often the byte of the keys at `shift` occurs in each tile.
extern "C" __global__ void count_bytes(const KEY* keys, uint32_t* counts, int64_t length,
                                       int64_t tiles, int32_t shift) {
  __shared__ uint32_t bins[kBins];
  int64_t row = blockIdx.x / tiles, tile = blockIdx.x % tiles;
  bins[threadIdx.x] = 0;
  __syncthreads();
  for (int k = 0; k < kItems; ++k) {
    int64_t i = tile * kSortTile + k * kSortThreads + threadIdx.x;
    if (i < length) atomicAdd(&bins[keys[row * length + i] >> shift & 255], 1u);
  }
  __syncthreads();
  counts[(row * kBins + threadIdx.x) * tiles + tile] = bins[threadIdx.x];
}

// One block for each row and byte: the counts become those of earlier tiles, totals their sum.
extern "C" __global__ void sum_counts(uint32_t* counts, uint32_t* totals, int64_t tiles) {
  uint32_t* own = counts + int64_t(blockIdx.x) * tiles;
  uint32_t carry = 0;
  for (int64_t first = 0; first < tiles; first += blockDim.x) {
    int64_t i = first + threadIdx.x;
    uint32_t total, before = sum_before(i < tiles ? own[i] : 0u, total);
    if (i < tiles) own[i] = carry + before;
    carry += total;
  }
  if (threadIdx.x == 0) totals[blockIdx.x] = carry;
}

// Moves the keys of a tile, and their places, behind those of smaller bytes and earlier tiles. A
// warp takes consecutive keys, so that equal bytes keep their order. No places yet means 0, 1, ...
extern "C" __global__ void move_keys(const KEY* keys, const uint32_t* places, KEY* to_keys,
                                     uint32_t* to_places, const uint32_t* counts,
                                     const uint32_t* totals, int64_t length, int64_t tiles,
                                     int32_t shift) {
  __shared__ uint32_t bins[kWarps][kBins];
  unsigned thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
  int64_t row = blockIdx.x / tiles, tile = blockIdx.x % tiles;
  for (int w = 0; w < kWarps; ++w) bins[w][thread] = 0;
  uint32_t total, smaller = sum_before(totals[row * kBins + thread], total);
  int64_t first = tile * kSortTile + int64_t(warp) * (kSortTile / kWarps) + lane;
  KEY key[kItems];
  uint32_t rank[kItems];
#pragma unroll
  for (int k = 0; k < kItems; ++k) {
    int64_t i = first + k * 32;
    bool real = i < length;
    key[k] = real ? keys[row * length + i] : KEY(0);
    unsigned byte = unsigned(key[k] >> shift & 255);
    unsigned peers = __match_any_sync(~0u, real ? byte : unsigned(kBins));
    unsigned earlier = __popc(peers & ((1u << lane) - 1));
    uint32_t seen = real ? bins[warp][byte] : 0;
    __syncwarp();
    if (real && earlier == 0) bins[warp][byte] = seen + __popc(peers);
    __syncwarp();
    rank[k] = seen + earlier;
  }
  __syncthreads();
  uint32_t start = smaller + counts[(row * kBins + thread) * tiles + tile];
  for (int w = 0; w < kWarps; ++w) {
    uint32_t count = bins[w][thread];
    bins[w][thread] = start;
    start += count;
  }
  __syncthreads();
#pragma unroll
  for (int k = 0; k < kItems; ++k) {
    int64_t i = first + k * 32;
    if (i >= length) continue;
    int64_t to = row * length + bins[warp][key[k] >> shift & 255] + rank[k];
    to_keys[to] = key[k];
    to_places[to] = places ? places[row * length + i] : uint32_t(i);
  }
}

// The first `keep` of each row.
extern "C" __global__ void take_sorted(const DTYPE* input, const uint32_t* places, DTYPE* values,
                                       int64_t* indices, int64_t count, int64_t length,
                                       int64_t keep) {
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= count) return;
  int64_t row = i / keep;
  uint32_t place = places[row * length + i % keep];
  values[i] = input[row * length + place];
  indices[i] = place;
}

inline float comparable(Half value) { return to_float(value); }
inline float comparable(BFloat16 value) { return to_float(value); }
template <class Other>
inline Other comparable(Other value) {
  return value;
}

// Where each value would stand in its sorted row: before equals, or behind them when `right`. NaN
// comes last. Rows of `width` values share a row of the sorted ones; width 0 means that all do.
extern "C" __global__ void search(const DTYPE* sorted, const DTYPE* values, int64_t* places,
                                  int64_t count, int64_t length, int64_t width, bool right) {
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const DTYPE* row = sorted + (width ? i / width * length : 0);
  auto value = comparable(values[i]);
  int64_t low = 0, high = length;
  while (low < high) {
    int64_t middle = low + (high - low) / 2;
    auto there = comparable(row[middle]);
    bool passed = right ? there > value : there >= value;
    if (passed) high = middle;
    else low = middle + 1;
  }
  places[i] = low;
}

}  // namespace rushlight::on_cuda
