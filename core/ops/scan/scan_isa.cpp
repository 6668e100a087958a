// Owns the inner loops of running sums, products and extremes.
//
// Four elements of a row are combined among themselves before what came before them is, so that
// they do not wait for each other; the order is the same on all processors.
#include "core/ops/scan/scan_loops.h"
#include "core/tensor/lanes.h"

namespace rushlight::RUSHLIGHT_ISA_NAMESPACE {
namespace {

constexpr int kLanes = 4;
template <class T>
struct LanesOf {
  typedef T type __attribute__((vector_size(kLanes * sizeof(T))));
};
template <class T>
using Lanes = typename LanesOf<T>::type;

struct Sum {
  static constexpr int kStart = 0;
  template <class V>
  [[gnu::always_inline]] static V of(V a, V b) {
    return a + b;
  }
};
struct Product {
  static constexpr int kStart = 1;
  template <class V>
  [[gnu::always_inline]] static V of(V a, V b) {
    return a * b;
  }
};

template <bool reverse, class V>
[[gnu::always_inline]] inline V in_order(V v) {
  if constexpr (reverse) return __builtin_shufflevector(v, v, 3, 2, 1, 0);
  return v;
}

// (v0, v0 + v1, v0 + v1 + v2, v0 + v1 + v2 + v3) of the elements in the order of the scan, for
// sums; products likewise.
template <class Op, bool reverse, class State, class T>
[[gnu::always_inline]] inline Lanes<State> running(const T* x) {
  Lanes<T> loaded;
  __builtin_memcpy(&loaded, x, sizeof(loaded));
  const Lanes<State> start = Lanes<State>{} + State(Op::kStart);
  auto v = __builtin_convertvector(in_order<reverse>(loaded), Lanes<State>);
  v = Op::of(v, __builtin_shufflevector(start, v, 0, 4, 5, 6));
  return Op::of(v, __builtin_shufflevector(start, v, 0, 1, 4, 5));
}

template <bool reverse, class V, class T>
[[gnu::always_inline]] inline void store(T* y, V v) {
  Lanes<T> rounded = in_order<reverse>(__builtin_convertvector(v, Lanes<T>));
  __builtin_memcpy(y, &rounded, sizeof(rounded));
}

template <class Op, bool reverse, class T, class State>
State scan_row(const T* x, T* y, int64_t n, State state) {
  int64_t i = 0;
  for (; i + 2 * kLanes <= n; i += 2 * kLanes) {
    int64_t first = reverse ? n - kLanes - i : i, second = reverse ? first - kLanes : i + kLanes;
    auto a = running<Op, reverse, State>(x + first), b = running<Op, reverse, State>(x + second);
    store<reverse>(y + first, Op::of(a, Lanes<State>{} + state));
    state = Op::of(state, a[kLanes - 1]);
    store<reverse>(y + second, Op::of(b, Lanes<State>{} + state));
    state = Op::of(state, b[kLanes - 1]);
  }
  for (; i < n; ++i) {
    int64_t at = reverse ? n - 1 - i : i;
    state = Op::of(state, State(x[at]));
    y[at] = T(state);
  }
  return state;
}

template <class Op, class T, class State>
void scan_columns(const T* x, T* y, State* states, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    states[i] = Op::of(states[i], State(x[i]));
    y[i] = T(states[i]);
  }
}

template <class T, class State>
State total(const T* x, int64_t n) {
  return sum<State>(n, [=](int64_t i) { return State(x[i]); });
}

template <class Op, class T, class State>
constexpr RunningLoops<T, State> kRunning = {
    Op::kStart,
    {scan_row<Op, false, T, State>, scan_row<Op, true, T, State>},
    scan_columns<Op, T, State>};

template <class T, class State>
constexpr RunningSet<T, State> kRunningSet = {kRunning<Sum, T, State>, kRunning<Product, T, State>,
                                              total<T, State>};

// ---- extremes -----------------------------------------------------------------------------------

// Whether x comes after an extreme `value`: the last of equal ones wins, and NaN against all.
template <bool largest, class T>
[[gnu::always_inline]] inline bool takes(T x, T value) {
  return isnan(x) | (largest ? x >= value : x <= value);
}

// The extreme so far and its position. A step has no jump.
template <bool largest, class T>
struct Extreme {
  T value;
  int64_t position;

  [[gnu::always_inline]] void step(T x, int64_t i) {
    int64_t taken = -int64_t(takes<largest>(x, value));
    T better = largest ? (value > x ? value : x) : (value < x ? value : x);
    value = isnan(value) ? value : better;
    position ^= (position ^ i) & taken;
  }
};

// Most blocks of a row of floats hold no new extreme, or nothing but: a look at the whole block
// tells. A step takes integers no longer than that.
template <bool largest, class T>
void extreme_of_row(const T* x, T* y, int64_t* positions, int64_t n) {
  constexpr int64_t kBlock = 8;
  constexpr bool looks = detail::kSame<T, float> || detail::kSame<T, double>;
  Extreme<largest, T> extreme{x[0], 0};
  y[0] = x[0];
  positions[0] = 0;
  int64_t i = 1;
  for (; looks && i + kBlock <= n; i += kBlock) {
    int some = 0, all = takes<largest>(x[i], extreme.value);
#pragma omp simd reduction(| : some)
    for (int64_t l = 0; l < kBlock; ++l) some |= takes<largest>(x[i + l], extreme.value);
    if (!some) {
#pragma omp simd
      for (int64_t l = 0; l < kBlock; ++l) {
        y[i + l] = extreme.value;
        positions[i + l] = extreme.position;
      }
      continue;
    }
#pragma omp simd reduction(& : all)
    for (int64_t l = 1; l < kBlock; ++l) all &= takes<largest>(x[i + l], x[i + l - 1]);
    if (all) {
#pragma omp simd
      for (int64_t l = 0; l < kBlock; ++l) {
        y[i + l] = x[i + l];
        positions[i + l] = i + l;
      }
      extreme = {x[i + kBlock - 1], i + kBlock - 1};
      continue;
    }
    for (int64_t l = i; l < i + kBlock; ++l) {
      extreme.step(x[l], l);
      y[l] = extreme.value;
      positions[l] = extreme.position;
    }
  }
  for (; i < n; ++i) {
    extreme.step(x[i], i);
    y[i] = extreme.value;
    positions[i] = extreme.position;
  }
}

template <bool largest, class T>
void extreme_rows(const void* x, void* y, int64_t* positions, int64_t count, int64_t length) {
  for (int64_t first = 0; first < count * length; first += length)
    extreme_of_row<largest>(static_cast<const T*>(x) + first, static_cast<T*>(y) + first,
                            positions + first, length);
}

template <bool largest, class T>
void extreme_columns(const void* x, void* y, int64_t* positions, int64_t count, int64_t length,
                     int64_t stride) {
  const T* from = static_cast<const T*>(x);
  T* to = static_cast<T*>(y);
  T values[kMaxColumns];
  int64_t places[kMaxColumns];
  for (int64_t j = 0; j < count; ++j) {
    values[j] = from[j];
    places[j] = 0;
  }
  for (int64_t i = 0; i < length; ++i, from += stride, to += stride, positions += stride) {
#pragma omp simd
    for (int64_t j = 0; j < count; ++j) {
      bool taken = takes<largest>(from[j], values[j]);
      to[j] = values[j] = taken ? from[j] : values[j];
      positions[j] = places[j] = taken ? i : places[j];
    }
  }
}

template <bool largest, class T>
constexpr ExtremeLoops kExtremes = {extreme_rows<largest, T>, extreme_columns<largest, T>};

template <bool largest>
constexpr ExtremeSet kExtremeSet = {
    {kExtremes<largest, float>, kExtremes<largest, double>, kExtremes<largest, int64_t>,
     kExtremes<largest, uint64_t>},
    // A bool is a byte of 0 or 1.
    {kExtremes<largest, uint8_t>, kExtremes<largest, uint8_t>, kExtremes<largest, int8_t>,
     kExtremes<largest, int16_t>, kExtremes<largest, int32_t>}};

}  // namespace

extern const ScanLoops scan_loops;
constexpr ScanLoops scan_loops = {kRunningSet<float, double>,
                                  kRunningSet<double, double>,
                                  kRunningSet<int64_t, uint64_t>,
                                  {kExtremeSet<false>, kExtremeSet<true>}};

}  // namespace rushlight::RUSHLIGHT_ISA_NAMESPACE
