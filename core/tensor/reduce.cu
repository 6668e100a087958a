// Owns the kernels of reductions on CUDA. Each is compiled for what these macros name:
//   REDUCER          what is computed: Fold<Sum, float>, Indexed<Maximum, double>, ...
//   COMPUTE          the type that elements are converted to
//   MEMORY, RESULT   the types of elements and of results in memory
//   VECTOR           elements that a thread loads at once; they lie side by side and are aligned
//   WALK_ROWS        the threads of a row of the block share the elements of one result,
//   WALK_COLUMNS     those of a column of the block do, while neighbors make other results,
//   WALK_PARTIALS    or they merge what the pieces gave, likewise
//
// A thread adds elements at a fixed distance and the threads' states are merged as a tree, so
// digits depend on sizes only. Rounding errors grow as in Note [Pairwise sums].
#include "core/tensor/formula.cuh"

#include "core/tensor/convert.h"
#include "core/tensor/limits.cuh"
#include "core/tensor/pack.cuh"
#include "core/tensor/reduce_args.h"
#include "core/tensor/reduce_folds.h"
#include "core/tensor/shuffle.cuh"

namespace rushlight::on_cuda {

// ---- reducers -----------------------------------------------------------------------------------

// A State, start() over no elements, add() of an element and its position, merge() of two states
// in any order, and finish(), which writes a result.

template <class T>
T neutral(Sum) {
  return T(0);
}
template <class T>
T neutral(Product) {
  return T(1);
}
template <class T>
T neutral(Maximum) {
  return kLowest<T>;
}
template <class T>
T neutral(Minimum) {
  return kHighest<T>;
}

template <class To, class From>
void store(void* results, int64_t at, From value) {
  if (results) static_cast<To*>(results)[at] = convert<To>(value);
}

template <class R, class T>
struct Fold {
  using State = T;
  static State start() { return neutral<T>(R()); }
  static void add(State& state, T x, int64_t, double parameter) {
    state = R::merge(state, R::map(x, T(parameter)));
  }
  static State merge(State a, State b) { return R::merge(a, b); }
  static void finish(const ReduceArgs& args, int64_t at, State state) {
    store<RESULT>(args.first, at, R::finish(state, args.reduced.numel, args.parameter));
  }
};

// The extreme element and its position: of equal ones the first wins, and NaN over all numbers.
template <class R, class T>
struct Indexed {
  struct State {
    T value;
    int64_t position;
  };
  static State start() { return {neutral<T>(R()), kHighest<int64_t>}; }
  static void add(State& state, T x, int64_t position, double) {
    state = merge(state, {x, position});
  }
  static State merge(State a, State b) { return wins(b, a) ? b : a; }
  static void finish(const ReduceArgs& args, int64_t at, State state) {
    store<RESULT>(args.first, at, state.value);
    store<int64_t>(args.second, at, state.position);
  }

 private:
  static bool wins(State a, State b) {
    if (isnan(a.value) != isnan(b.value)) return isnan(a.value);
    if (a.value == b.value || isnan(a.value)) return a.position < b.position;
    return R::before(a.value, b.value);
  }
};

// Source: Welford, "Note on a method for calculating corrected sums of squares and products", 1962;
// for merge() Chan, Golub, LeVeque, 1979, as on the CPU.
template <class T, bool root>
struct Moments {
  struct State {
    T count, mean, squares;  // of differences from the mean
  };
  static State start() { return {T(0), T(0), T(0)}; }
  static void add(State& state, T x, int64_t, double) {
    T difference = x - state.mean;
    state.count += T(1);
    state.mean += difference / state.count;
    state.squares += difference * (x - state.mean);
  }
  static State merge(State a, State b) {
    if (a.count == T(0)) return b;
    if (b.count == T(0)) return a;
    T count = a.count + b.count, share = b.count / count, difference = b.mean - a.mean;
    return {count, a.mean + difference * share,
            a.squares + b.squares + difference * difference * (a.count * share)};
  }
  static void finish(const ReduceArgs& args, int64_t at, State state) {
    double freedom = double(args.reduced.numel) - args.parameter;
    double variance = double(state.squares) / (freedom > 0 ? freedom : 0);
    store<RESULT>(args.first, at, T(root ? sqrt(variance) : variance));
    store<RESULT>(args.second, at, state.mean);
  }
};

template <class T>
inline constexpr T kLargest = T(0x1.fffffep127);
template <>
inline constexpr double kLargest<double> = 0x1.fffffffffffffp1023;

// The sum of exp(x - shift). The shift is the largest element, made finite, so that no difference
// of infinities arises.
template <class T>
struct LogSumExp {
  struct State {
    T shift, sum;
  };
  static State start() { return {-kLargest<T>, T(0)}; }
  static void add(State& state, T x, int64_t, double) {
    if (!(x <= state.shift)) {
      T shift = min(max(x, -kLargest<T>), kLargest<T>);
      state.sum *= exp(state.shift - shift);
      state.shift = shift;
    }
    state.sum += exp(x - state.shift);
  }
  static State merge(State a, State b) {
    T shift = max(a.shift, b.shift);
    return {shift, a.sum * exp(a.shift - shift) + b.sum * exp(b.shift - shift)};
  }
  static void finish(const ReduceArgs& args, int64_t at, State state) {
    store<RESULT>(args.first, at, state.shift + log(state.sum));
  }
};

using Reducer = REDUCER;
using State = Reducer::State;
static_assert(sizeof(State) <= kMaxReduceState);

// ---- where elements lie -------------------------------------------------------------------------

// Index is as narrow as numel allows, because divisions of 64 bits are slow. Not inlined, as they
// are long too.
template <class Index>
__noinline__ int64_t walk(const ReduceDims& space, const int64_t* strides, Index index) {
  int64_t offset = 0;
  for (int d = space.dims - 1; d > 0; --d) {
    Index size = Index(space.sizes[d]);
    offset += int64_t(index % size) * strides[d];
    index /= size;
  }
  return offset + int64_t(index) * strides[0];
}
int64_t offset_of(const ReduceDims& space, const int64_t* strides, int64_t index) {
  if (space.dims == 0) return 0;
  if (space.dims == 1) return index * strides[0];
  if (space.numel < int64_t(1) << 32) return walk(space, strides, uint32_t(index));
  return walk(space, strides, uint64_t(index));
}

// Whether the reduced elements lie at one distance: their loads overlap only without divisions.
template <bool even>
int64_t reduced_offset(const ReduceArgs& args, int64_t index) {
  if constexpr (even) return index * args.reduced.strides[0];
  else return offset_of(args.reduced, args.reduced.strides, index);
}

using Elements = Pack<MEMORY, VECTOR>;

// The first element of an output.
const MEMORY* elements_of(const ReduceArgs& args, int64_t output) {
  return static_cast<const MEMORY*>(args.input) +
         offset_of(args.outputs, args.outputs.strides, output);
}

// The reduced elements of this block.
struct Part {
  int64_t begin, end;
  Part(const ReduceArgs& args) {
    begin = blockIdx.y * args.piece;
    end = begin + args.piece < args.reduced.numel ? begin + args.piece : args.reduced.numel;
  }
};

// Writes a result, or what the piece gave to it.
void keep(const ReduceArgs& args, int64_t output, State state) {
  if (args.partials)
    static_cast<State*>(args.partials)[blockIdx.y * args.outputs.numel + output] = state;
  else Reducer::finish(args, offset_of(args.outputs, args.result_strides, output), state);
}

// ---- threads of a row share the elements --------------------------------------------------------

#ifdef WALK_ROWS

// Chains that a thread adds side by side: few where states are large, to save registers.
constexpr int kChains = VECTOR > 4 && sizeof(State) > 8 ? 4 : VECTOR;

template <bool even>
State reduce_part(const ReduceArgs& args, const MEMORY* from) {
  Part part(args);
  State states[kChains];
#pragma unroll
  for (int c = 0; c < kChains; ++c) states[c] = Reducer::start();
  int64_t vectors_end = part.begin + (part.end - part.begin) / VECTOR * VECTOR;
  int64_t step = int64_t(blockDim.x) * VECTOR;
#pragma unroll(even ? 4 : 1)
  for (int64_t i = part.begin + threadIdx.x * VECTOR; i < vectors_end; i += step) {
    const MEMORY* at = from + reduced_offset<even>(args, i);
    Elements loaded = *reinterpret_cast<const Elements*>(at);
#pragma unroll
    for (int e = 0; e < VECTOR; ++e)
      Reducer::add(states[e % kChains], convert<COMPUTE>(loaded.at[e]), i + e, args.parameter);
  }
#if VECTOR > 1
  for (int64_t i = vectors_end + threadIdx.x; i < part.end; i += blockDim.x) {
    const MEMORY* at = from + reduced_offset<even>(args, i);
    Reducer::add(states[0], convert<COMPUTE>(*at), i, args.parameter);
  }
#endif
#pragma unroll
  for (int c = 1; c < kChains; ++c) states[0] = Reducer::merge(states[0], states[c]);
  return states[0];
}
State reduce_part(const ReduceArgs& args, int64_t output) {
  if (output >= args.outputs.numel) return Reducer::start();
  const MEMORY* from = elements_of(args, output);
  return args.reduced.dims <= 1 ? reduce_part<true>(args, from) : reduce_part<false>(args, from);
}

// The whole of a row of the block, for its first thread. A row is a power of two.
State merge_row(State state) {
  constexpr unsigned kWarp = 32;
  for (unsigned n = (blockDim.x < kWarp ? blockDim.x : kWarp) / 2; n > 0; n /= 2)
    state = Reducer::merge(state, shuffle_xor(state, n));
  if (blockDim.x <= kWarp) return state;
  __shared__ State of_warps[kReduceThreads / kWarp];
  unsigned warp = (threadIdx.y * blockDim.x + threadIdx.x) / kWarp;
  if (threadIdx.x % kWarp == 0) of_warps[warp] = state;
  __syncthreads();
  if (threadIdx.x == 0)
    for (unsigned w = 1; w < blockDim.x / kWarp; ++w)
      state = Reducer::merge(state, of_warps[warp + w]);
  return state;
}

extern "C" __global__ void run(const __grid_constant__ ReduceArgs args) {
  int64_t output = int64_t(blockIdx.x) * blockDim.y + threadIdx.y;
  State state = merge_row(reduce_part(args, output));
  if (threadIdx.x == 0 && output < args.outputs.numel) keep(args, output, state);
}

#else

// ---- threads of a column share the elements, or the pieces --------------------------------------

struct Columns {
  State at[VECTOR];
};

#ifdef WALK_COLUMNS

template <bool even>
void add_part(const ReduceArgs& args, const MEMORY* from, Columns& columns) {
  Part part(args);
#pragma unroll(even ? 4 : 1)
  for (int64_t i = part.begin + threadIdx.y; i < part.end; i += blockDim.y) {
    const MEMORY* at = from + reduced_offset<even>(args, i);
    Elements loaded = *reinterpret_cast<const Elements*>(at);
#pragma unroll
    for (int e = 0; e < VECTOR; ++e)
      Reducer::add(columns.at[e], convert<COMPUTE>(loaded.at[e]), i, args.parameter);
  }
}
void add_part(const ReduceArgs& args, int64_t output, Columns& columns) {
  const MEMORY* from = elements_of(args, output);
  if (args.reduced.dims <= 1) add_part<true>(args, from, columns);
  else add_part<false>(args, from, columns);
}

#else

void add_part(const ReduceArgs& args, int64_t output, Columns& columns) {
  const State* partials = static_cast<const State*>(args.input) + output;
  for (int64_t i = threadIdx.y; i < args.pieces; i += blockDim.y)
    columns.at[0] = Reducer::merge(columns.at[0], partials[i * args.outputs.numel]);
}

#endif

// The whole of a column of the block, for its first thread. A column is a power of two.
Columns merge_column(Columns columns) {
  __shared__ State shared[VECTOR][kReduceThreads];
  unsigned thread = threadIdx.y * blockDim.x + threadIdx.x;
  for (unsigned n = blockDim.y / 2; n > 0; n /= 2) {
    if (threadIdx.y >= n && threadIdx.y < 2 * n)
      for (int e = 0; e < VECTOR; ++e) shared[e][thread] = columns.at[e];
    __syncthreads();
    if (threadIdx.y < n)
      for (int e = 0; e < VECTOR; ++e)
        columns.at[e] = Reducer::merge(columns.at[e], shared[e][thread + n * blockDim.x]);
  }
  return columns;
}

extern "C" __global__ void run(const __grid_constant__ ReduceArgs args) {
  int64_t output = (int64_t(blockIdx.x) * blockDim.x + threadIdx.x) * VECTOR;
  Columns columns;
#pragma unroll
  for (State& state : columns.at) state = Reducer::start();
  if (output < args.outputs.numel) add_part(args, output, columns);
  columns = merge_column(columns);
  if (threadIdx.y == 0 && output < args.outputs.numel)
    for (int e = 0; e < VECTOR; ++e) keep(args, output + e, columns.at[e]);
}

#endif

}  // namespace rushlight::on_cuda
