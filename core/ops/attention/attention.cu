// Owns attention on CUDA, tile by tile, and its gradients: the scores are never in memory.
// Dao et al., "FlashAttention", 2022; Dao, "FlashAttention-2", 2023.
//
// A block keeps a tile of rows, the "fixed" ones, and walks through those of the other side, the
// "inner" ones. The gradients of queries and of keys are walks of their own, which compute scores
// once more, so that each sum is one thread's and nothing depends on an order of threads.
//   ITEM             the dtype in memory
//   COMPUTE, CHUNK   float or double, and how many are 16 bytes; see row.cuh
//   HEAD             features that tiles have room for, a multiple of 16
//   FIXED, INNER     rows of the tiles
//   MMA              whether tensor cores multiply, which take ITEM
//   DROPS            whether weights are dropped
//   BACKWARD         0 or 1
#include "core/ops/row.cuh"

#include "core/device/philox.h"
#include "core/ops/attention/attention_args.h"

// How products of tiles are shared out among threads. Either text says
//   Tile, kLine, kVector     the type of tiles in shared memory, how many are in a row, in a vector
//   kThreads                 of a block
//   Scores, Outputs          what a thread has of the scores and of the sums:
//   kRows                      so many fixed rows,
//   kColumns, kOutputs         and of these so many scores, and sums
//   kRowLanes                neighboring threads that share a fixed row
//   kFixedRun, kInnerRun     how many neighboring rows of a thread begin at a multiple of that
//   fixed_row(i), inner_row(j), feature(f)   which rows and features these are
//   slot(row)                where an inner row lies in its tile
//   multiply(fixed, inner, features, scores), add_products(scores, lines, inner, width, sums)
#if MMA
#include "core/ops/attention/attention_mma.cuh"
#else
#include "core/ops/attention/attention_lanes.cuh"
#endif

namespace rushlight::on_cuda {

constexpr Compute kNever = -Compute(kInfinity);
constexpr int kFixedTile = FIXED * kLine, kInnerTile = INNER * kLine;

// ---- memory ------------------------------------------------------------------------------------

inline int64_t step_to(const AttentionArgs& args, const AttentionOperand& operand, int64_t item) {
  int64_t offset = 0;
  for (int d = args.dims - 1; d >= 0; --d) {
    offset += item % args.sizes[d] * operand.steps[d];
    item /= args.sizes[d];
  }
  return offset;
}

// The rows of one item of an operand.
struct Rows {
  ITEM* at;
  int64_t row, column, count, columns;
  bool vectors;

  Rows(const AttentionArgs& args, const AttentionOperand& operand, int64_t item, int64_t count_in,
       int64_t columns_in)
      : at(static_cast<ITEM*>(operand.data)),
        row(operand.row),
        column(operand.column),
        count(count_in),
        columns(columns_in),
        vectors(operand.vectors) {
    if (at) at += step_to(args, operand, item);
  }

  // Brings `rows` rows from `first` on into a tile, with zeros around them.
  template <int rows, bool in_slots>
  void load(Tile* tile, int64_t first) const {
    auto walk = [&](auto fill) {
      constexpr int kVectors = HEAD / kVector;
      for (int i = int(threadIdx.x); i < rows * kVectors; i += kThreads) {
        int r = i / kVectors, c = i % kVectors * kVector;
        Chunk<Tile, kVector> to{};
        if (first + r < count && c < columns) fill(at + (first + r) * row, c, to);
        *reinterpret_cast<Chunk<Tile, kVector>*>(tile + (in_slots ? slot(r) : r) * kLine + c) = to;
      }
    };
    if (vectors) {
      walk([](const ITEM* from, int c, Chunk<Tile, kVector>& to) {
        Chunk<ITEM, kVector> items = *reinterpret_cast<const Chunk<ITEM, kVector>*>(from + c);
#pragma unroll
        for (int e = 0; e < kVector; ++e) to.at[e] = convert<Tile>(items.at[e]);
      });
    } else {
      walk([&](const ITEM* from, int c, Chunk<Tile, kVector>& to) {
#pragma unroll
        for (int e = 0; e < kVector; ++e)
          if (c + e < columns) to.at[e] = convert<Tile>(from[(c + e) * column]);
      });
    }
  }
  void load_fixed(Tile* tile, int64_t first) const { load<FIXED, false>(tile, first); }
  void load_inner(Tile* tile, int64_t first) const { load<INNER, true>(tile, first); }
  // Writes the thread's part of fixed rows from `first` on, row i multiplied by factors[i].
  void store(int64_t first, const Outputs& sums, const Compute (&factors)[kRows]) const {
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      int64_t r = first + fixed_row(i);
      if (r >= count) continue;
#pragma unroll
      for (int f = 0; f < kOutputs; ++f) {
        int c = feature(f);
        if (c < columns) at[r * row + c * column] = convert<ITEM>(sums[i][f] * factors[i]);
      }
    }
  }
};

inline void clear(Outputs& sums) {
#pragma unroll
  for (int i = 0; i < kRows; ++i)
#pragma unroll
    for (int f = 0; f < kOutputs; ++f) sums[i][f] = 0;
}

// ---- scores ------------------------------------------------------------------------------------

// One item of the batch, and where a tile of its scores lies. Fixed rows are queries, or keys.
template <bool keys_fixed>
struct Place {
  const AttentionArgs& args;
  int64_t item, fixed, inner;  // fixed and inner: the first rows
  const void* mask;

  Place(const AttentionArgs& args_in, int64_t item_in, int64_t fixed_in)
      : args(args_in), item(item_in), fixed(fixed_in), inner(0), mask(args_in.mask.data) {
    if (!mask) return;
    int64_t offset = step_to(args, args.mask, item);
    if (args.mask_is_bool) mask = static_cast<const bool*>(mask) + offset;
    else mask = static_cast<const Compute*>(mask) + offset;
  }

  int64_t query(int i, int j) const {
    return keys_fixed ? inner + inner_row(j) : fixed + fixed_row(i);
  }
  int64_t key(int i, int j) const {
    return keys_fixed ? fixed + fixed_row(i) : inner + inner_row(j);
  }
  bool is_inside(int i, int j) const { return query(i, j) < args.queries && key(i, j) < args.keys; }
  bool is_seen(int i, int j) const {
    return is_inside(i, j) && !(args.is_causal && key(i, j) > query(i, j));
  }
  // A score that is seen, scaled and masked.
  Compute masked(Compute score, int i, int j) const {
    score = score * Compute(args.scale);
    if (!mask) return score;
    int64_t at = query(i, j) * args.mask.row + key(i, j) * args.mask.column;
    if (args.mask_is_bool) return static_cast<const bool*>(mask)[at] ? score : kNever;
    return score + static_cast<const Compute*>(mask)[at];
  }
  // What dropout multiplies the weights by. Neighboring keys of a thread share a counter.
  void draw(Scores& noise) const {
    constexpr int kQueries = keys_fixed ? kColumns : kRows, kKeys = keys_fixed ? kRows : kColumns;
    constexpr int kRun = keys_fixed ? kFixedRun : kInnerRun;
    const PhiloxDraw own = args.draw.settled();
#pragma unroll
    for (int u = 0; u < kQueries; ++u) {
      Philox4 four;
#pragma unroll
      for (int v = 0; v < kKeys; ++v) {
        int i = keys_fixed ? v : u, j = keys_fixed ? u : v;
        int64_t k = key(i, j), row = item * args.queries + query(i, j);
        if (v % kRun == 0) four = own.words(uint64_t(row * args.counters_per_row + k / 4));
        int lane = int(k % 4);
        uint32_t word = lane < 2 ? (lane == 0 ? four.x : four.y) : (lane == 2 ? four.z : four.w);
        noise[i][j] = word >= args.threshold ? Compute(args.kept_scale) : Compute(0);
      }
    }
  }
};

inline void drop(Scores& scores, const Scores& noise) {
#pragma unroll
  for (int i = 0; i < kRows; ++i)
#pragma unroll
    for (int j = 0; j < kColumns; ++j)
      scores[i][j] = noise[i][j] == 0 ? Compute(0) : scores[i][j] * noise[i][j];
}

#if BACKWARD

// ---- gradients ---------------------------------------------------------------------------------

// Sums of output * grad for each query, a warp each.
extern "C" __global__ void __launch_bounds__(kThreads) dots(AttentionArgs args) {
  int64_t row = int64_t(blockIdx.x) * (kThreads / 32) + threadIdx.x / 32;
  if (row >= args.items * args.queries) return;
  int64_t item = row / args.queries, query = row % args.queries;
  Rows output(args, args.output, item, args.queries, args.value_features);
  Rows grad(args, args.grad, item, args.queries, args.value_features);
  Compute sum = 0;
  for (int64_t c = threadIdx.x % 32; c < args.value_features; c += 32)
    sum += convert<Compute>(output.at[query * output.row + c * output.column]) *
           convert<Compute>(grad.at[query * grad.row + c * grad.column]);
#pragma unroll
  for (int lanes = 16; lanes > 0; lanes /= 2) sum += __shfl_xor_sync(kAllLanes, sum, lanes);
  if (threadIdx.x % 32 == 0) static_cast<Compute*>(args.dots)[row] = sum;
}

// The gradients of a tile of queries; or of keys, with that of their values.
template <bool keys_fixed>
void sum_grads(const AttentionArgs& args) {
  extern __shared__ Chunk<Tile, kVector> memory[];
  Tile* fixed = reinterpret_cast<Tile*>(memory);
  Tile *fixed_value = fixed + kFixedTile, *inner = fixed_value + kFixedTile;
  Tile *inner_value = inner + kInnerTile, *lines = inner_value + kInnerTile;
  int64_t count = keys_fixed ? args.keys : args.queries;
  int64_t inner_count = keys_fixed ? args.queries : args.keys;
  int64_t tiles = (count + FIXED - 1) / FIXED, tile = blockIdx.x % tiles, item = blockIdx.x / tiles;
  if (!keys_fixed) tile = tiles - 1 - tile;  // late queries see most keys: those blocks begin first
  int64_t first = tile * FIXED;

  Rows query(args, args.query, item, args.queries, args.features);
  Rows key(args, args.key, item, args.keys, args.features);
  Rows value(args, args.value, item, args.keys, args.value_features);
  Rows grad(args, args.grad, item, args.queries, args.value_features);
  (keys_fixed ? key : query).load_fixed(fixed, first);
  (keys_fixed ? value : grad).load_fixed(fixed_value, first);
  const Compute* logsumexp = static_cast<const Compute*>(args.logsumexp) + item * args.queries;
  const Compute* dots = static_cast<const Compute*>(args.dots) + item * args.queries;
  Compute* grad_mask = keys_fixed ? nullptr : static_cast<Compute*>(args.grad_mask);
  const AttentionOperand& result = keys_fixed ? args.grad_key : args.grad_query;
  bool wants_values = keys_fixed && args.grad_value.data;

  Place<keys_fixed> place(args, item, first);
  Outputs sums, value_sums;
  clear(sums);
  if constexpr (keys_fixed) clear(value_sums);
  int64_t end = inner_count;
  if (args.is_causal && keys_fixed) place.inner = first / INNER * INNER;
  if (args.is_causal && !keys_fixed && end > first + FIXED) end = first + FIXED;
  for (; place.inner < end; place.inner += INNER) {
    __syncthreads();
    (keys_fixed ? query : key).load_inner(inner, place.inner);
    (keys_fixed ? grad : value).load_inner(inner_value, place.inner);
    __syncthreads();
    Scores weights, slopes;
    multiply(fixed, inner, int(args.features), weights);
    multiply(fixed_value, inner_value, int(args.value_features), slopes);
#if DROPS
    Scores noise;
    place.draw(noise);
    drop(slopes, noise);
#endif
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
#pragma unroll
      for (int j = 0; j < kColumns; ++j) {
        Compute weight = 0, slope = 0;
        if (place.is_seen(i, j)) {
          int64_t q = place.query(i, j);
          // A query that sees nothing has weights 0.
          Compute shift = logsumexp[q] == kNever ? -kNever : logsumexp[q];
          weight = quick_exp(place.masked(weights[i][j], i, j) - shift);
          slope = weight * (slopes[i][j] - dots[q]);
        }
        weights[i][j] = weight;
        slopes[i][j] = slope;
        if (grad_mask && place.is_inside(i, j))
          grad_mask[(item * args.queries + place.query(i, j)) * args.keys + place.key(i, j)] =
              slope;
      }
    }
    int64_t rest = inner_count - place.inner;
    int width = rest < INNER ? int(rest) : INNER;
    if constexpr (keys_fixed) {
      if (wants_values) {
#if DROPS
        drop(weights, noise);
#endif
        add_products(weights, lines, inner_value, width, value_sums);
      }
    }
    if (result.data) add_products(slopes, lines, inner, width, sums);
  }
  Compute scales[kRows], ones[kRows];
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    scales[i] = Compute(args.scale);
    ones[i] = 1;
  }
  if (result.data) Rows(args, result, item, count, args.features).store(first, sums, scales);
  if constexpr (keys_fixed) {
    if (wants_values)
      Rows(args, args.grad_value, item, count, args.value_features).store(first, value_sums, ones);
  }
}

extern "C" __global__ void __launch_bounds__(kThreads) query_grads(AttentionArgs args) {
  sum_grads<false>(args);
}
extern "C" __global__ void __launch_bounds__(kThreads) key_grads(AttentionArgs args) {
  sum_grads<true>(args);
}

#else

// ---- the forward pass --------------------------------------------------------------------------

// Over the threads that share a fixed row.
template <class Merge>
Compute merged_row(Compute own, Merge merge) {
#pragma unroll
  for (int lanes = kRowLanes / 2; lanes > 0; lanes /= 2)
    own = merge(own, __shfl_xor_sync(kAllLanes, own, lanes));
  return own;
}

extern "C" __global__ void __launch_bounds__(kThreads) attend(AttentionArgs args) {
  extern __shared__ Chunk<Tile, kVector> memory[];
  Tile* fixed = reinterpret_cast<Tile*>(memory);
  Tile *inner = fixed + kFixedTile, *lines = inner + kInnerTile;
  int64_t tiles = (args.queries + FIXED - 1) / FIXED, item = blockIdx.x / tiles;
  int64_t first = (tiles - 1 - blockIdx.x % tiles) * FIXED;  // late queries see most keys

  Rows query(args, args.query, item, args.queries, args.features);
  Rows key(args, args.key, item, args.keys, args.features);
  Rows value(args, args.value, item, args.keys, args.value_features);
  query.load_fixed(fixed, first);
  Place<false> place(args, item, first);
  Outputs sums;
  clear(sums);
  Compute largest[kRows], total[kRows];
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    largest[i] = kNever;
    total[i] = 0;
  }
  // NaN need not win here: it makes the total NaN.
  auto larger = [](Compute a, Compute b) { return a > b ? a : b; };
  auto add = [](Compute a, Compute b) { return a + b; };
  int64_t end = args.keys;
  if (args.is_causal && end > first + FIXED) end = first + FIXED;
  for (; place.inner < end; place.inner += INNER) {
    __syncthreads();
    key.load_inner(inner, place.inner);
    __syncthreads();
    Scores weights;
    multiply(fixed, inner, int(args.features), weights);
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      Compute top = kNever, part = 0;
#pragma unroll
      for (int j = 0; j < kColumns; ++j) {
        weights[i][j] = place.is_seen(i, j) ? place.masked(weights[i][j], i, j) : kNever;
        top = larger(top, weights[i][j]);
      }
      top = larger(merged_row(top, larger), largest[i]);
      // Nothing seen so far has another score than -inf: any number keeps their exponentials 0.
      Compute shift = top == kNever ? Compute(0) : top;
#pragma unroll
      for (int j = 0; j < kColumns; ++j) {
        weights[i][j] = quick_exp(weights[i][j] - shift);
        part += weights[i][j];
      }
      Compute factor = quick_exp(largest[i] - shift);
      total[i] = multiply_add(total[i], factor, merged_row(part, add));
      largest[i] = top;
#pragma unroll
      for (int f = 0; f < kOutputs; ++f) sums[i][f] *= factor;
    }
#if DROPS
    Scores noise;
    place.draw(noise);
    drop(weights, noise);
#endif
    __syncthreads();
    value.load_inner(inner, place.inner);  // in the place of the keys
    __syncthreads();
    int64_t rest = args.keys - place.inner;
    add_products(weights, lines, inner, rest < INNER ? int(rest) : INNER, sums);
  }
  Compute factors[kRows];
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    factors[i] = total[i] == 0 ? Compute(0) : 1 / total[i];
    int64_t q = first + fixed_row(i);
    if (threadIdx.x % kRowLanes == 0 && q < args.queries)
      static_cast<Compute*>(args.logsumexp)[item * args.queries + q] = largest[i] + log(total[i]);
  }
  Rows(args, args.output, item, args.queries, args.value_features).store(first, sums, factors);
}

#endif

}  // namespace rushlight::on_cuda
