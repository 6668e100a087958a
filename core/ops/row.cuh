// Owns what kernels over rows share: how threads walk the elements of a row, and how they merge
// what each of them found. Macros say what differs:
//   COMPUTE   the type that is computed in
//   CHUNK     elements that a thread takes at once: 16 bytes of the largest type in memory
#pragma once

#include "core/tensor/formula.cuh"

#include "core/tensor/convert.h"
#include "core/tensor/pack.cuh"
#include "core/tensor/shuffle.cuh"

namespace rushlight::on_cuda {

using Compute = COMPUTE;
constexpr int kChunk = CHUNK;
constexpr int kKept = 4;           // chunks that a thread keeps in registers
constexpr int kRowThreads = 512;   // of a block, at most
constexpr int kDownThreads = 256;  // of a block whose threads lie in two dims
constexpr unsigned kAllLanes = ~0u;

// The processor's own exponential of float: it is faster than the formulas' one.
inline float quick_exp(float x) { return ::expf(x); }
inline double quick_exp(double x) { return ::exp(x); }

template <class T, int n = kChunk>
using Chunk = Pack<T, n>;
template <class T>
using ChunkWords = Words<T, kChunk>;

// How the thread `rank` of `size` goes through n elements, chunk by chunk: by vectors where rows
// are aligned, else by single elements, neighbors for neighboring threads.
template <bool vectors>
struct Walk {
  int64_t n;
  int rank, size;

  int64_t at(int64_t chunk, int e) const {
    if constexpr (vectors) return (chunk * size + rank) * kChunk + e;
    else return (chunk * kChunk + e) * size + rank;
  }
  bool has(int64_t chunk, int e) const { return at(chunk, vectors ? 0 : e) < n; }

  template <class T>
  ChunkWords<T> load(const T* row, int64_t chunk) const {
    ChunkWords<T> words{};
    if constexpr (vectors) {
      if (has(chunk, 0)) words = *reinterpret_cast<const ChunkWords<T>*>(row + at(chunk, 0));
      return words;
    } else {
      Chunk<T> loaded{};
#pragma unroll
      for (int e = 0; e < kChunk; ++e)
        if (has(chunk, e)) loaded.at[e] = row[at(chunk, e)];
      return __builtin_bit_cast(ChunkWords<T>, loaded);
    }
  }
  template <class T>
  void store(T* row, int64_t chunk, const Chunk<T>& values) const {
    if constexpr (vectors) {
      *reinterpret_cast<Chunk<T>*>(row + at(chunk, 0)) = values;
    } else {
#pragma unroll
      for (int e = 0; e < kChunk; ++e)
        if (has(chunk, e)) row[at(chunk, e)] = values.at[e];
    }
  }
  // Loads the first chunks of this thread, all before any is waited for. Single elements would take
  // a register each; they are left to the cache.
  template <class Loaded, class Load>
  void keep(Loaded (&kept)[kKept], Load load) const {
    if constexpr (vectors)
#pragma unroll
      for (int chunk = 0; chunk < kKept; ++chunk) kept[chunk] = load(chunk);
  }
  // Calls f(chunk, load(chunk)) for all chunks of this thread.
  template <class Loaded, class Load, class F>
  void for_each(const Loaded (&kept)[kKept], Load load, F f) const {
    if constexpr (vectors)
#pragma unroll
      for (int chunk = 0; chunk < kKept; ++chunk)
        if (has(chunk, 0)) f(int64_t(chunk), kept[chunk]);
    for (int64_t chunk = vectors ? kKept : 0; has(chunk, 0); ++chunk) f(chunk, load(chunk));
  }
};

// What threads merge is a struct S of Compute numbers with merge(S, S); S::none() is before any.
struct Sums {
  Compute first, second;
  static Sums none() { return {0, 0}; }
};
inline Sums merge(const Sums& a, const Sums& b) { return {a.first + b.first, a.second + b.second}; }

// The count of numbers, their mean, and the sum of squared differences from it.
// Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm for computing sample
// variances", 1979.
struct Moments {
  Compute count, mean, squares;
  static Moments none() { return {0, 0, 0}; }
};
inline Moments merge(const Moments& a, const Moments& b) {
  Compute count = a.count + b.count;
  if (count == 0) return a;
  Compute delta = b.mean - a.mean, share = b.count / count;
  return {count, a.mean + delta * share, a.squares + b.squares + delta * delta * a.count * share};
}

template <class S>
S merged_lanes(S own, int lanes) {
  for (int offset = lanes / 2; offset > 0; offset /= 2)
    own = merge(own, shuffle_xor(own, unsigned(offset)));
  return shuffle_from(own, 0, lanes);  // merging may round differently in another order
}

// Merges what `size` neighboring threads have: a power of two up to a warp, or the whole block,
// which is one row of warps. All get the result, and all threads of the block call it.
template <class S>
S merged(S own, int size) {
  own = merged_lanes(own, size < 32 ? size : 32);
  if (size <= 32) return own;
  __shared__ S parts[32];
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  if (lane == 0) parts[warp] = own;
  __syncthreads();
  own = lane < size / 32 ? parts[lane] : S::none();
  __syncthreads();
  return merged_lanes(own, 32);
}

// Merges what the threads of one x have; blockDim.y is a power of two.
template <class S>
S merged_down(const S& own) {
  __shared__ S parts[kDownThreads];
  int at = threadIdx.y * blockDim.x + threadIdx.x;
  parts[at] = own;
  __syncthreads();
  for (unsigned half = blockDim.y / 2; half > 0; half /= 2) {
    if (threadIdx.y < half) parts[at] = merge(parts[at], parts[at + half * blockDim.x]);
    __syncthreads();
  }
  S all = parts[threadIdx.x];
  __syncthreads();
  return all;
}

}  // namespace rushlight::on_cuda
