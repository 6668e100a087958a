// Owns the kernels of scans on CUDA. Each is compiled for what these macros name:
//   SCANNER                   what is computed: Running<Add, double>, Extreme<Maximum, float>, ...
//   COMPUTE, MEMORY, RESULT   the type of elements as they are scanned, as they lie, as they leave
//   EXTREME                   defined where positions are written too
//   WALK_ROWS                 LINE_THREADS threads share a line in one run,
//   WALK_COLUMNS              each thread has its own line, and neighbors lie side by side,
//   WALK_CARRIES              or a warp turns the totals of a line's pieces into their starts
//
// Partial results are merged as a tree whose form, and so the digits, depend on sizes only.
#include "core/tensor/formula.cuh"

#include "core/ops/scan/scan_args.h"
#include "core/tensor/convert.h"
#include "core/tensor/limits.cuh"
#include "core/tensor/pack.cuh"
#include "core/tensor/shuffle.cuh"

namespace rushlight::on_cuda {

// ---- scanners -----------------------------------------------------------------------------------

// A State, start() of no elements, of() one, merge() of earlier with later ones, and the result().

struct Add {
  template <class T>
  static T start() {
    return T(0);
  }
  template <class T>
  static T merge(T before, T after) {
    return before + after;
  }
};
struct Multiply {
  template <class T>
  static T start() {
    return T(1);
  }
  template <class T>
  static T merge(T before, T after) {
    return before * after;
  }
};
struct AddExponentials {
  template <class T>
  static T start() {
    return kLowest<T>;
  }
  template <class T>
  static T merge(T before, T after) {
    return logaddexp(before, after);
  }
};

template <class Op, class T>
struct Running {
  using State = T;
  static State start() { return Op::template start<T>(); }
  static State of(COMPUTE x, COMPUTE, int64_t) { return convert<T>(x); }
  static State merge(State before, State after) { return Op::merge(before, after); }
  static COMPUTE result(State state) { return convert<COMPUTE>(state); }
};

// The map from the result before some elements to the one after them.
template <class T>
struct Linear {
  struct State {
    T factor, value;
  };
  static State start() { return {T(1), T(0)}; }
  static State of(COMPUTE x, COMPUTE factor, int64_t i) {
    return {i == 0 ? T(0) : convert<T>(factor), convert<T>(x)};
  }
  static State merge(State before, State after) {
    return {before.factor * after.factor, after.value + after.factor * before.value};
  }
  static COMPUTE result(State state) { return convert<COMPUTE>(state.value); }
};

struct Maximum {
  template <class T>
  static T start() {
    return kLowest<T>;
  }
  template <class T>
  static bool keeps(T before, T after) {
    return before > after;
  }
};
struct Minimum {
  template <class T>
  static T start() {
    return kHighest<T>;
  }
  template <class T>
  static bool keeps(T before, T after) {
    return before < after;
  }
};

// The last of equal elements wins, and NaN over all numbers.
template <class R, class T>
struct Extreme {
  struct State {
    T value;
    int64_t position;
  };
  static State start() { return {R::template start<T>(), 0}; }
  static State of(COMPUTE x, COMPUTE, int64_t i) { return {x, i}; }
  static State merge(State before, State after) {
    bool keeps = !isnan(after.value) && (isnan(before.value) | R::keeps(before.value, after.value));
    return keeps ? before : after;
  }
  static COMPUTE result(State state) { return state.value; }
};

using Scanner = SCANNER;
using State = Scanner::State;
static_assert(sizeof(State) <= kMaxScanState);

// ---- elements -----------------------------------------------------------------------------------

struct Line {
  int64_t first, step;
  Line(const ScanArgs& args, int64_t line) {
    first = line / args.inner * args.length * args.inner + line % args.inner;
    if (args.reverse) first += (args.length - 1) * args.inner;
    step = args.reverse ? -args.inner : args.inner;
  }
  int64_t at(int64_t i) const { return first + i * step; }
};

struct Part {
  int64_t begin, end;
  Part(const ScanArgs& args) {
    begin = blockIdx.y * args.piece;
    end = begin + args.piece < args.length ? begin + args.piece : args.length;
  }
};

// Where the state of this block's piece of a line stands.
State* carry_of(const ScanArgs& args, int64_t line) {
  return static_cast<State*>(args.carries) + line * args.pieces + blockIdx.y;
}
State start_of(const ScanArgs& args, int64_t line) {
  return args.carries && !args.only_totals ? *carry_of(args, line) : Scanner::start();
}

#ifdef EXTREME
void write_position(const ScanArgs& args, int64_t at, State state) {
  static_cast<int64_t*>(args.positions)[at] = state.position;
}
#else
void write_position(const ScanArgs&, int64_t, State) {}
#endif

// ---- threads share a line -----------------------------------------------------------------------

#ifndef WALK_COLUMNS

constexpr unsigned kWarp = 32;

// The states of the threads before this one in the line, merged; `whole` becomes that of all.
State merge_before(State state, State& whole) {
  unsigned lane = threadIdx.x % kWarp;
  for (unsigned n = 1; n < kWarp; n *= 2) {
    State other = shuffle_up(state, n);
    if (lane >= n) state = Scanner::merge(other, state);
  }
  State before = shuffle_up(state, 1);
  if (lane == 0) before = Scanner::start();
  whole = shuffle_from(state, kWarp - 1);
#if LINE_THREADS > 32
  __shared__ State of_warps[LINE_THREADS / kWarp];
  unsigned warp = threadIdx.x / kWarp;
  if (lane == 0) of_warps[warp] = whole;
  __syncthreads();
  whole = Scanner::start();
  for (unsigned w = 0; w < LINE_THREADS / kWarp; ++w) {
    if (w == warp) before = Scanner::merge(whole, before);
    whole = Scanner::merge(whole, of_warps[w]);
  }
  __syncthreads();
#endif
  return before;
}

#endif

#ifdef WALK_ROWS

template <class T>
using Vector = Pack<T, kScanItems>;

// Items i, i + 1, ... of a line, of which n exist.
template <class T>
Vector<T> load(const ScanArgs& args, const void* from, const Line& line, int64_t i, int64_t n) {
  const T* data = static_cast<const T*>(from);
  Vector<T> items;
  if (args.vectors && n >= kScanItems) {
    int64_t lowest = line.at(args.reverse ? i + kScanItems - 1 : i);
    Vector<T> loaded = *reinterpret_cast<const Vector<T>*>(data + lowest);
#pragma unroll
    for (int k = 0; k < kScanItems; ++k)
      items.at[k] = args.reverse ? loaded.at[kScanItems - 1 - k] : loaded.at[k];
  } else {
#pragma unroll
    for (int k = 0; k < kScanItems; ++k)
      if (k < n) items.at[k] = data[line.at(i + k)];
  }
  return items;
}

void write(const ScanArgs& args, const Line& line, int64_t i, int64_t n, State before,
           const State (&states)[kScanItems]) {
  RESULT* data = static_cast<RESULT*>(args.result);
  Vector<RESULT> items;
#pragma unroll
  for (int k = 0; k < kScanItems; ++k) {
    State state = Scanner::merge(before, states[k]);
    items.at[k] = convert<RESULT>(Scanner::result(state));
    if (k < n) write_position(args, line.at(i + k), state);
  }
  if (args.vectors && n >= kScanItems) {
    Vector<RESULT> stored;
#pragma unroll
    for (int k = 0; k < kScanItems; ++k)
      stored.at[k] = args.reverse ? items.at[kScanItems - 1 - k] : items.at[k];
    int64_t lowest = line.at(args.reverse ? i + kScanItems - 1 : i);
    *reinterpret_cast<Vector<RESULT>*>(data + lowest) = stored;
  } else {
#pragma unroll
    for (int k = 0; k < kScanItems; ++k)
      if (k < n) data[line.at(i + k)] = items.at[k];
  }
}

extern "C" __global__ void run(const __grid_constant__ ScanArgs args) {
  int64_t index = int64_t(blockIdx.x) * blockDim.y + threadIdx.y;
  bool exists = index < args.lines;
  Line line(args, exists ? index : 0);
  Part part(args);
  State carry = exists ? start_of(args, index) : Scanner::start();
  for (int64_t tile = part.begin; tile < part.end; tile += LINE_THREADS * kScanItems) {
    int64_t i = tile + threadIdx.x * kScanItems, n = exists ? part.end - i : 0;
    Vector<MEMORY> x = load<MEMORY>(args, args.input, line, i, n), factor = x;
    if (args.factor) factor = load<MEMORY>(args, args.factor, line, i, n);
    State states[kScanItems];
#pragma unroll
    for (int k = 0; k < kScanItems; ++k) {
      State state =
          k < n ? Scanner::of(convert<COMPUTE>(x.at[k]), convert<COMPUTE>(factor.at[k]), i + k)
                : Scanner::start();
      states[k] = k == 0 ? state : Scanner::merge(states[k - 1], state);
    }
    State whole, before = merge_before(states[kScanItems - 1], whole);
    if (!args.only_totals) write(args, line, i, n, Scanner::merge(carry, before), states);
    carry = Scanner::merge(carry, whole);
  }
  if (args.only_totals && exists && threadIdx.x == 0) *carry_of(args, index) = carry;
}

#endif

// ---- each thread has a line ---------------------------------------------------------------------

#ifdef WALK_COLUMNS

extern "C" __global__ void run(const __grid_constant__ ScanArgs args) {
  int64_t index = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (index >= args.lines) return;
  const MEMORY* __restrict__ input = static_cast<const MEMORY*>(args.input);
  const MEMORY* __restrict__ factor = static_cast<const MEMORY*>(args.factor);
  RESULT* __restrict__ result = static_cast<RESULT*>(args.result);
  Line line(args, index);
  Part part(args);
  State state = start_of(args, index);
#pragma unroll 4
  for (int64_t i = part.begin; i < part.end; ++i) {
    int64_t at = line.at(i);
    COMPUTE x = convert<COMPUTE>(input[at]), by = factor ? convert<COMPUTE>(factor[at]) : x;
    state = Scanner::merge(state, Scanner::of(x, by, i));
    if (args.only_totals) continue;
    result[at] = convert<RESULT>(Scanner::result(state));
    write_position(args, at, state);
  }
  if (args.only_totals) *carry_of(args, index) = state;
}

#endif

// ---- a warp has the pieces of a line ------------------------------------------------------------

#ifdef WALK_CARRIES

extern "C" __global__ void run(const __grid_constant__ ScanArgs args) {
  int64_t index = int64_t(blockIdx.x) * blockDim.y + threadIdx.y;
  bool exists = index < args.lines;
  State* carries = static_cast<State*>(args.carries) + index * args.pieces;
  State carry = Scanner::start();
  for (int64_t tile = 0; tile < args.pieces; tile += kWarp) {
    int64_t piece = tile + threadIdx.x;
    bool is_piece = exists && piece < args.pieces;
    State whole, before = merge_before(is_piece ? carries[piece] : Scanner::start(), whole);
    if (is_piece) carries[piece] = Scanner::merge(carry, before);
    carry = Scanner::merge(carry, whole);
  }
}

#endif

}  // namespace rushlight::on_cuda
