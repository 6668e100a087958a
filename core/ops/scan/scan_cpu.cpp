// Owns the walk of scans over the memory of the CPU. Along a dim they go one element after the
// other, so threads share the other dims. Floats are accumulated in double, as the chains are long;
// the loops of sums, products and extremes are in scan_isa.cpp, but of complex numbers.
#include "core/base/ceil_div.h"
#include "core/ops/scan/scan.h"

#include <cmath>
#include <utility>
#include <vector>

#include "core/device/threads.h"
#include "core/ops/scan/scan_loops.h"
#include "core/tensor/dims.h"
#include "core/tensor/pointwise.h"
#include "core/tensor/staged.h"
#include "core/tensor/tile_loop.h"

namespace rushlight {

ISA_TABLES(ScanLoops, scan_loops)

namespace {

constexpr int64_t kGrain = 16384;   // elements that are worth a thread
constexpr int64_t kWidth = 256;     // columns that advance together
constexpr int64_t kChains = 8;      // rows that advance together
constexpr int64_t kLag = 17;        // more than a cache line
constexpr int64_t kSegment = 4096;  // elements of a long row that one thread adds up
constexpr int64_t kShortRun = 8;    // runs below this are not worth the calls of a loop

const ScanLoops& loops() { return active(scan_loops_sets); }

// Where element i along the dim lies in the order of the scan.
struct Order {
  int64_t length, inner;
  bool reverse;
  int64_t at(int64_t i) const { return (reverse ? length - 1 - i : i) * inner; }
};

// Calls f(offset of the first element, columns) for all columns along the dim, at most `most` at
// a time.
template <class F>
void for_each_columns(const AroundDim& shape, int64_t most, F&& f) {
  int64_t width = std::min(shape.inner, most), tiles = ceil_div(shape.inner, width);
  int64_t grain = std::max<int64_t>(kGrain / (shape.length * width), 1);
  parallel_for(0, shape.outer * tiles, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      int64_t first = i % tiles * width;
      f(i / tiles * shape.length * shape.inner + first, std::min(width, shape.inner - first));
    }
  });
}

// state = step(state, i-th element); result = T(state), for each column.
template <class T, class State, class Step>
void run_columns(const AroundDim& shape, bool reverse, const T* x, T* y, State start, Step step) {
  Order order{shape.length, shape.inner, reverse};
  for_each_columns(shape, kWidth, [&](int64_t offset, int64_t columns) {
    State states[kWidth];
    std::fill_n(states, columns, start);
    for (int64_t i = 0; i < shape.length; ++i) {
      const T* from = x + offset + order.at(i);
      T* to = y + offset + order.at(i);
      for (int64_t j = 0; j < columns; ++j) {
        states[j] = step(states[j], from[j]);
        to[j] = T(states[j]);
      }
    }
  });
}

template <class T, class State, class Step>
State run_row(const T* x, T* y, int64_t length, int64_t stride, State state, Step step) {
  for (int64_t i = 0; i < length; ++i) {
    state = step(state, x[i * stride]);
    y[i * stride] = T(state);
  }
  return state;
}

// The same for kChains rows at once, which begin at `starts` and each have a state: a row by itself
// would wait for every addition before the next. The states are left behind the last elements.
template <class T, class State, class Step>
void advance(const int64_t* starts, int64_t length, int64_t stride, const T* x, T* y, State* states,
             Step step) {
  State local[kChains];
  std::copy_n(states, kChains, local);
  for (int64_t i = 0, at = 0; i < length; ++i, at += stride)
    for (int64_t c = 0; c < kChains; ++c) {
      local[c] = step(local[c], x[starts[c] + at]);
      y[starts[c] + at] = T(local[c]);
    }
  std::copy_n(local, kChains, states);
}

// Rows that lie one after the other in memory. Long ones advance kLag elements behind each other,
// or rows of 4096 bytes would compete for the same places in the cache. Short ones overlap anyway.
template <class T, class State, class Step>
void run_rows(const AroundDim& shape, bool reverse, const T* x, T* y, State start, Step step) {
  int64_t length = shape.length, first = reverse ? length - 1 : 0, stride = reverse ? -1 : 1;
  int64_t lag = length * int64_t(sizeof(T)) < 4096 ? 0 : kLag,
          shared = length - (kChains - 1) * lag;
  bool together = length > kLag;
  int64_t groups = ceil_div(shape.outer, kChains);
  parallel_for(0, groups, kGrain / (length * kChains) + 1, [&](int64_t begin, int64_t end) {
    auto run_part = [&](int64_t row, int64_t from, int64_t count, State state) {
      int64_t at = row * length + first + from * stride;
      return run_row(x + at, y + at, count, stride, state, step);
    };
    for (int64_t group = begin; group < end; ++group) {
      int64_t row = group * kChains;
      if (!together || row + kChains > shape.outer) {
        int64_t last = std::min(row + kChains, shape.outer);
        for (; row < last; ++row) run_part(row, 0, length, start);
        continue;
      }
      int64_t starts[kChains];
      State states[kChains];
      for (int64_t c = 0; c < kChains; ++c) {
        starts[c] = (row + c) * length + first + c * lag * stride;
        states[c] = run_part(row + c, 0, c * lag, start);
      }
      advance(starts, shared, stride, x, y, states, step);
      for (int64_t c = 0; c < kChains; ++c)
        run_part(row + c, c * lag + shared, (kChains - 1 - c) * lag, states[c]);
    }
  });
}

// One long row of sums, cut into segments: first the sum of each, by total(offset, length), then
// their elements, by run(offset, length, sum of the segments before).
template <class State, class Total, class Run>
void sum_long_row(int64_t length, bool reverse, Total&& total, Run&& run) {
  int64_t segments = ceil_div(length, kSegment);
  std::vector<State> states(size_t(segments), State(0));
  auto for_each_segment = [&](auto&& f) {  // in the order of the scan
    parallel_for(0, segments, kGrain / kSegment, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        int64_t first = i * kSegment, n = std::min(kSegment, length - first);
        f(states[size_t(i)], reverse ? length - first - n : first, n);
      }
    });
  };
  for_each_segment([&](State& sum, int64_t at, int64_t n) { sum = total(at, n); });
  State before(0);
  for (State& state : states) state = std::exchange(before, before + state);
  for_each_segment([&](const State& state, int64_t at, int64_t n) { run(at, n, state); });
}

// Sums and products of what computes in T, to which it is converted run by run.
template <class T, class State>
class RunningScan {
 public:
  RunningScan(Scan scan, const RunningSet<T, State>& set, const Tensor& input,
              const AroundDim& shape, bool reverse, const Tensor& result)
      : loops_(scan == Scan::sum ? set.sums : set.products),
        // The product of a segment could overflow; of integers the order does not matter.
        total_(scan == Scan::sum && (num_threads() > 1 || std::is_floating_point_v<T>) ? set.total
                                                                                       : nullptr),
        shape_(shape),
        reverse_(reverse),
        x_(input),
        y_(result) {}

  void run() const {
    int64_t length = shape_.length;
    if (shape_.inner > 1) return by_columns();
    if (total_ && shape_.outer == 1 && length >= kGrain)
      return sum_long_row<State>(
          length, reverse_, [&](int64_t at, int64_t n) { return total_(x_.read(at, n), n); },
          [&](int64_t at, int64_t n, State before) { run_row(at, n, before); });
    parallel_for(0, shape_.outer, kGrain / length + 1, [&](int64_t begin, int64_t end) {
      if (length > kStagedRun) {
        for (int64_t row = begin; row < end; ++row) run_row(row * length, length, loops_.start);
      } else {
        run_short_rows(begin, end);
      }
    });
  }

 private:
  // As many rows at a time as make a run.
  void run_short_rows(int64_t begin, int64_t end) const {
    int64_t length = shape_.length, most = kStagedRun / length;
    for (int64_t row = begin; row < end; row += most) {
      int64_t at = row * length, n = std::min(most, end - row) * length;
      T* to = y_.place(at, n);
      const T* from = x_.read(at, n);
      for (int64_t i = 0; i < n; i += length)
        loops_.row[reverse_](from + i, to + i, length, loops_.start);
      y_.store(at, to, n);
    }
  }
  void run_row(int64_t begin, int64_t n, State state) const {
    for (int64_t i = 0; i < n; i += kStagedRun) {
      int64_t count = std::min(kStagedRun, n - i), at = begin + (reverse_ ? n - i - count : i);
      T* to = y_.place(at, count);
      state = loops_.row[reverse_](x_.read(at, count), to, count, state);
      y_.store(at, to, count);
    }
  }
  void by_columns() const {
    Order order{shape_.length, shape_.inner, reverse_};
    for_each_columns(shape_, kWidth, [&](int64_t offset, int64_t columns) {
      State states[kWidth];
      std::fill_n(states, columns, loops_.start);
      for (int64_t i = 0; i < shape_.length; ++i) {
        int64_t at = offset + order.at(i);
        T* to = y_.place(at, columns);
        loops_.columns(x_.read(at, columns), to, states, columns);
        y_.store(at, to, columns);
      }
    });
  }

  const RunningLoops<T, State>& loops_;
  State (*total_)(const T*, int64_t);  // null where a long row is not cut
  const AroundDim& shape_;
  bool reverse_;
  Staged<T, 0> x_;
  Staged<T, 0> y_;  // element by element, so in the buffer of x_
};

template <class T, class State, class Step>
void run_scan(const AroundDim& shape, bool reverse, const T* x, T* y, State start, Step step) {
  if (shape.inner == 1) run_rows(shape, reverse, x, y, start, step);
  else run_columns(shape, reverse, x, y, start, step);
}

// log(exp(a) + exp(b)), where the larger one is taken out, so that nothing overflows.
double log_add_exp(double a, double b) {
  double low = std::fmin(a, b), high = std::fmax(a, b);
  if (std::isnan(a) || std::isnan(b)) return a + b;
  return std::isinf(high) ? high : high + std::log1p(std::exp(low - high));
}
std::complex<double> log_add_exp(std::complex<double> a, std::complex<double> b) {
  bool b_is_larger = a.real() < b.real();
  std::complex<double> low = b_is_larger ? a : b, high = b_is_larger ? b : a;
  if (std::isnan(low.real())) return a + b;
  if (std::isinf(low.real())) return low.real() < 0 ? high : std::log(std::exp(a) + std::exp(b));
  return high + std::log(1.0 + std::exp(low - high));
}

// The type that sums and products of T are kept in; unsigned, because integers wrap around.
template <class T>
struct Wide {
  using type = std::conditional_t<
      std::is_integral_v<T>, uint64_t,
      std::conditional_t<std::is_floating_point_v<T>, double, std::complex<double>>>;
};

template <class T>
void scan_as(Scan scan, const AroundDim& shape, bool reverse, const T* x, T* y) {
  using State = typename Wide<T>::type;
  if (scan == Scan::sum) {
    run_scan(shape, reverse, x, y, State(0), [](State a, T v) { return a + State(v); });
  } else if (scan == Scan::product) {
    run_scan(shape, reverse, x, y, State(1), [](State a, T v) { return a * State(v); });
  } else if constexpr (!std::is_integral_v<T>) {
    constexpr double kNothing = -std::numeric_limits<double>::infinity();
    run_scan(shape, reverse, x, y, State(kNothing),
             [](State a, T v) { return log_add_exp(a, State(v)); });
  }
}

// Calls f with the type that a dtype computes in.
template <class F>
void by_compute(DType compute, F&& f) {
  switch (compute) {
    case DType::float32: return f(Tag<float>{});
    case DType::float64: return f(Tag<double>{});
    case DType::int64: return f(Tag<int64_t>{});
    case DType::uint64: return f(Tag<uint64_t>{});
    case DType::complex64: return f(Tag<std::complex<float>>{});
    default: return f(Tag<std::complex<double>>{});
  }
}

}  // namespace

Tensor scan_cpu(Scan scan, const Tensor& input, int64_t dim, bool reverse, DType dtype) {
  DType compute = dtype_of_compute(compute_of(dtype));
  AroundDim shape(input.sizes(), wrap_dim(dim, input.dim()));
  int64_t run = shape.inner > 1 ? shape.inner : shape.length;
  if (scan != Scan::log_sum_exp && run >= kShortRun && input.numel() != 0) {
    auto scan_with = [&](const auto& set) {
      Tensor from = to_contiguous(input), result = empty(input.sizes(), dtype, input.device());
      RunningScan(scan, set, from, shape, reverse, result).run();
      return result;
    };
    if (compute == DType::float32) return scan_with(loops().floats);
    if (compute == DType::float64) return scan_with(loops().doubles);
    if (compute == DType::int64) return scan_with(loops().integers);
  }
  Tensor from = to_contiguous(to_dtype(input, compute));
  Tensor result = empty(input.sizes(), compute, input.device());
  if (result.numel() != 0)
    by_compute(compute, [&]<class T>(Tag<T>) {
      scan_as(scan, shape, reverse, from.data<T>(), result.data<T>());
    });
  return to_dtype(result, dtype);
}

Tensor linear_scan_cpu(const Tensor& input, const Tensor& factor, int64_t dim, bool reverse) {
  DType compute = dtype_of_compute(compute_of(input.dtype()));
  Tensor from = to_contiguous(to_dtype(input, compute)),
         by = to_contiguous(to_dtype(factor, compute));
  Tensor result = empty(input.sizes(), compute, input.device());
  AroundDim shape(input.sizes(), wrap_dim(dim, input.dim()));
  Order order{shape.length, shape.inner, reverse};
  if (result.numel() != 0)
    by_compute(compute, [&]<class T>(Tag<T>) {
      using State = typename Wide<T>::type;
      const T *x = from.data<T>(), *f = by.data<T>();
      T* y = result.data<T>();
      for_each_columns(shape, kWidth, [&](int64_t offset, int64_t columns) {
        State states[kWidth]{};
        for (int64_t i = 0; i < shape.length; ++i)
          for (int64_t j = 0; j < columns; ++j) {
            int64_t at = offset + order.at(i) + j;
            states[j] = State(x[at]) + (i == 0 ? State(0) : State(f[at]) * states[j]);
            y[at] = T(states[j]);
          }
      });
    });
  return to_dtype(result, input.dtype());
}

std::pair<Tensor, Tensor> extreme_scan_cpu(const Tensor& input, int64_t dim, bool largest) {
  const ExtremeSet& set = loops().extremes[largest];
  int narrow = narrow_index(input.dtype());
  DType compute = narrow < 0 ? dtype_of_compute(compute_of(input.dtype())) : input.dtype();
  const ExtremeLoops& extremes = narrow < 0 ? set.of[int(compute_of(compute))] : set.narrow[narrow];
  Tensor from = to_contiguous(to_dtype(input, compute));
  Tensor values = empty(input.sizes(), compute, input.device());
  Tensor indices = empty(input.sizes(), DType::int64, input.device());
  AroundDim shape(input.sizes(), wrap_dim(dim, input.dim()));
  if (values.numel() == 0) return {to_dtype(values, input.dtype()), indices};
  const char* x = from.data<char>();
  char* y = values.data<char>();
  int64_t* positions = indices.data<int64_t>();
  auto item = int64_t(values.itemsize());
  if (shape.inner == 1) {
    parallel_for(0, shape.outer, kGrain / shape.length + 1, [&](int64_t begin, int64_t end) {
      int64_t at = begin * shape.length;
      extremes.rows(x + at * item, y + at * item, positions + at, end - begin, shape.length);
    });
  } else {
    for_each_columns(shape, kMaxColumns, [&](int64_t at, int64_t columns) {
      extremes.columns(x + at * item, y + at * item, positions + at, columns, shape.length,
                       shape.inner);
    });
  }
  return {to_dtype(values, input.dtype()), indices};
}

}  // namespace rushlight
