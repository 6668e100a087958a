// Owns softmax and log_softmax on CUDA, and their gradients. Macros say which:
//   LOGS            0 or 1
//   BACKWARD        0 or 1
//   INPUT, RESULT   dtypes in memory; the gradient has INPUT for what comes in
//   COMPUTE, CHUNK  see row.cuh
#include "core/ops/row.cuh"

namespace rushlight::on_cuda {

constexpr Compute kLowest = -Compute(kInfinity);

// One element of the input; or of the gradient, with the result of the forward pass.
struct Element {
  Compute x, y;
};

#if BACKWARD

struct State {
  Compute total;
  static State none() { return {0}; }
};
inline State merge(const State& a, const State& b) { return {a.total + b.total}; }

template <int n>
void add(State& state, const Element (&elements)[n], const bool (&present)[n]) {
#pragma unroll
  for (int e = 0; e < n; ++e)
    if (present[e]) state.total += LOGS ? elements[e].x : elements[e].x * elements[e].y;
}

struct Outcome {
  Compute total;
  explicit Outcome(const State& state) : total(state.total) {}
  Compute operator()(const Element& e) const {
    return LOGS ? e.x - quick_exp(e.y) * total : e.y * (e.x - total);
  }
};

#else

// The largest number so far, and the sum of exp(x - largest).
// Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018.
struct State {
  Compute largest, total;
  static State none() { return {kLowest, 0}; }
};
// NaN need not win here: it makes the total NaN.
inline Compute larger(Compute a, Compute b) { return a > b ? a : b; }
// What is subtracted: -infinity - -infinity would be NaN where there was nothing yet.
inline Compute shift_of(Compute largest) { return largest == kLowest ? Compute(0) : largest; }

inline State merge(const State& a, const State& b) {
  Compute largest = larger(a.largest, b.largest), shift = shift_of(largest);
  return {largest, a.total * quick_exp(a.largest - shift) + b.total * quick_exp(b.largest - shift)};
}

template <int n>
void add(State& state, const Element (&elements)[n], const bool (&present)[n]) {
  Compute largest = state.largest;
#pragma unroll
  for (int e = 0; e < n; ++e)
    if (present[e]) largest = larger(largest, elements[e].x);
  Compute shift = shift_of(largest);
  if (largest != state.largest) state = {largest, state.total * quick_exp(state.largest - shift)};
#pragma unroll
  for (int e = 0; e < n; ++e)
    if (present[e]) state.total += quick_exp(elements[e].x - shift);
}

struct Outcome {
  Compute largest, last;
  explicit Outcome(const State& state)
      : largest(state.largest), last(LOGS ? log(state.total) : 1 / state.total) {}
  Compute operator()(const Element& e) const {
    return LOGS ? (e.x - largest) - last : quick_exp(e.x - largest) * last;
  }
};

#endif

struct Loaded {
  ChunkWords<INPUT> x, y;
};

inline Element element_of(const INPUT& x, const INPUT& y) {
  if constexpr (BACKWARD) return {convert<Compute>(x), convert<Compute>(y)};
  else return {convert<Compute>(x), 0};
}

template <bool vectors>
void normalize_row(const INPUT* x, const INPUT* y, RESULT* result, Walk<vectors> walk) {
  auto load = [&](int64_t chunk) {
    Loaded loaded;
    loaded.x = walk.load(x, chunk);
    if constexpr (BACKWARD) loaded.y = walk.load(y, chunk);
    return loaded;
  };
  Loaded kept[kKept];
  walk.keep(kept, load);
  State state = State::none();
  walk.for_each(kept, load, [&](int64_t chunk, const Loaded& loaded) {
    Chunk<INPUT> x = loaded.x.elements(), y = loaded.y.elements();
    Element elements[kChunk];
    bool present[kChunk];
#pragma unroll
    for (int e = 0; e < kChunk; ++e) {
      elements[e] = element_of(x.at[e], y.at[e]);
      present[e] = walk.has(chunk, e);
    }
    add(state, elements, present);
  });
  Outcome outcome(merged(state, walk.size));
  walk.for_each(kept, load, [&](int64_t chunk, const Loaded& loaded) {
    Chunk<INPUT> x = loaded.x.elements(), y = loaded.y.elements();
    Chunk<RESULT> results;
#pragma unroll
    for (int e = 0; e < kChunk; ++e)
      results.at[e] = convert<RESULT>(outcome(element_of(x.at[e], y.at[e])));
    walk.store(result, chunk, results);
  });
}

// Rows of n neighboring elements; `team` threads share a row, see merged(). Teams past the last
// row walk through nothing.
extern "C" __global__ void __launch_bounds__(kRowThreads)
    along(const INPUT* x, const INPUT* y, RESULT* result, int64_t rows, int64_t n, int team,
          bool vectors) {
  int64_t row = (int64_t(blockIdx.x) * blockDim.x + threadIdx.x) / team, start = row * n;
  int rank = int(threadIdx.x % team);
  if (row >= rows) start = n = 0;
  if (vectors) normalize_row(x + start, y + start, result + start, Walk<true>{n, rank, team});
  else normalize_row(x + start, y + start, result + start, Walk<false>{n, rank, team});
}

// Columns: the n elements of one lie `inner` apart. threadIdx.x counts columns, and the threads of
// one x share a column.
extern "C" __global__ void __launch_bounds__(kDownThreads)
    down(const INPUT* x, const INPUT* y, RESULT* result, int64_t columns, int64_t n,
         int64_t inner) {
  int64_t column = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (column >= columns) n = 0;
  int64_t start = column / inner * n * inner + column % inner;
  State state = State::none();
  for (int64_t first = threadIdx.y; first < n; first += int64_t(blockDim.y) * kChunk) {
    Element elements[kChunk];
    bool present[kChunk];
#pragma unroll
    for (int e = 0; e < kChunk; ++e) {
      int64_t i = first + e * int64_t(blockDim.y), at = start + i * inner;
      present[e] = i < n;
      if (present[e]) elements[e] = element_of(x[at], y[BACKWARD ? at : 0]);
    }
    add(state, elements, present);
  }
  Outcome outcome(merged_down(state));
#pragma unroll 4
  for (int64_t i = threadIdx.y; i < n; i += blockDim.y) {
    int64_t at = start + i * inner;
    result[at] = convert<RESULT>(outcome(element_of(x[at], y[BACKWARD ? at : 0])));
  }
}

}  // namespace rushlight::on_cuda
