// Owns the pooling loops. Vectors run along the channels where those lie side by side, and along
// rows in single planes. Maxima of a window are found in registers; averages are sums of rows
// first, then of columns.
#include "core/ops/pool/pool_loops.h"
#include "core/tensor/vectors.h"

#include "core/tensor/convert.h"  // after vectors.h
#include "core/tensor/half_vectors.h"

namespace rushlight::RUSHLIGHT_ISA_NAMESPACE {
namespace {

// ---- windows -----------------------------------------------------------------------------------

// An output, or where its window begins.
struct Place {
  int64_t plane, row, column;
};

// Calls f(pixel) for the pixels of a window, row by row.
template <class F>
[[gnu::always_inline]] inline void for_window(const PoolVolume& volume, Place at, F f) {
  const PoolAxis &planes = volume.planes, &rows = volume.rows, &columns = volume.columns;
  for (int64_t z = planes.begin[at.plane]; z < planes.end[at.plane]; z += planes.dilation)
    for (int64_t y = rows.begin[at.row]; y < rows.end[at.row]; y += rows.dilation)
      for (int64_t x = columns.begin[at.column]; x < columns.end[at.column]; x += columns.dilation)
        f((z * rows.size + y) * columns.size + x);
}

// The number of an output, and of the first pixel of its window.
[[gnu::always_inline]] inline int64_t number_of(const PoolVolume& volume, Place at) {
  return (at.plane * volume.rows.out + at.row) * volume.columns.out + at.column;
}
[[gnu::always_inline]] inline int64_t first_pixel(const PoolVolume& volume, Place at) {
  int64_t row = volume.planes.begin[at.plane] * volume.rows.size + volume.rows.begin[at.row];
  return row * volume.columns.size + volume.columns.begin[at.column];
}

// Calls f(plane, row) for all rows of outputs.
template <class F>
[[gnu::always_inline]] inline void for_rows(const PoolVolume& volume, F f) {
  for (int64_t plane = 0; plane < volume.planes.out; ++plane)
    for (int64_t row = 0; row < volume.rows.out; ++row) f(plane, row);
}

// ---- vectors -----------------------------------------------------------------------------------

template <size_t bytes>
struct IntegerOfSize {
  using type = int32_t;
};
template <>
struct IntegerOfSize<8> {
  using type = int64_t;
};

// What vectors hold of an element in memory: the number or the bits of a half.
template <class Memory>
struct LaneOf {
  using type = Memory;
};
template <>
struct LaneOf<Half> {
  using type = uint16_t;
};
template <>
struct LaneOf<BFloat16> {
  using type = uint16_t;
};
template <class E, int kCount>
struct VectorsOf {
  typedef E Lanes __attribute__((vector_size(kCount * sizeof(E))));
  typedef E Loose __attribute__((vector_size(kCount * sizeof(E)), aligned(sizeof(E)), may_alias));
};

// Vectors of values, and of integers of the same size: kVectorBytes, or kPoolRowBytes along short
// rows of planes.
template <class T, int kBytes>
struct Vectors {
  static constexpr int kCount = kBytes / int(sizeof(T));
  using Element = typename IntegerOfSize<sizeof(T)>::type;
  typedef T Value __attribute__((vector_size(kBytes)));
  typedef Element Index __attribute__((vector_size(kBytes)));
  template <class E>
  using Lanes = typename VectorsOf<E, kCount>::Lanes;
  template <class E>
  using Loose = typename VectorsOf<E, kCount>::Loose;  // in memory, of any alignment

  template <class Memory>
  [[gnu::always_inline]] static Value load(const Memory* p, int64_t stride) {
    using Lane = typename LaneOf<Memory>::type;
    if (stride == 1) return widened<Memory>(*reinterpret_cast<const Loose<Lane>*>(p));
    if (stride == 2)
      return widened<Memory>(every_second<Lane>(p, p + kCount - 1,  // not past the last element
                                                detail::IndicesTo<size_t(kCount)>{}));
    Value value;
    for (int i = 0; i < kCount; ++i) value[i] = convert<T>(p[i * stride]);
    return value;
  }
  // What the memory holds exactly.
  template <class Memory>
  [[gnu::always_inline]] static void store(Memory* p, Value value) {
    *reinterpret_cast<Loose<typename LaneOf<Memory>::type>*>(p) = narrowed<Memory>(value);
  }
  [[gnu::always_inline]] static void store(int32_t* p, Index index) {
    *reinterpret_cast<Loose<int32_t>*>(p) = __builtin_convertvector(index, Lanes<int32_t>);
  }
  // 0, step, 2 * step, ...
  [[gnu::always_inline]] static Index steps(int64_t step) {
    Index index;
    for (int i = 0; i < kCount; ++i) index[i] = Element(i * step);
    return index;
  }

 private:
  template <class Lane, size_t... I>
  [[gnu::always_inline]] static Lanes<Lane> every_second(const void* first, const void* second,
                                                         detail::Indices<I...>) {
    Lanes<Lane> low = *static_cast<const Loose<Lane>*>(first);
    Lanes<Lane> high = *static_cast<const Loose<Lane>*>(second);
    return __builtin_shufflevector(low, high,
                                   (2 * int(I) < kCount ? 2 * int(I) : 2 * int(I) + 1)...);
  }
  template <class Memory>
  [[gnu::always_inline]] static Value widened(Lanes<typename LaneOf<Memory>::type> lanes) {
    if constexpr (detail::kSame<Memory, T>) {
      return lanes;
#if RUSHLIGHT_ISA >= 3
    } else if constexpr (kCount == kHalves) {
      return detail::kSame<Memory, Half> ? to_floats(Halves(lanes))
                                         : upper_to_floats(Halves(lanes));
    } else if constexpr (detail::kSame<Memory, Half>) {
      return __builtin_ia32_vcvtph2ps256(Lanes<int16_t>(lanes));
#endif
    } else if constexpr (detail::kSame<Memory, BFloat16>) {
      return Value(__builtin_convertvector(lanes, Lanes<uint32_t>) << 16);
    } else {
      Value value;
      for (int i = 0; i < kCount; ++i) value[i] = to_float(Memory{lanes[i]});
      return value;
    }
  }
  template <class Memory>
  [[gnu::always_inline]] static Lanes<typename LaneOf<Memory>::type> narrowed(Value value) {
    using Lane = typename LaneOf<Memory>::type;
    if constexpr (detail::kSame<Memory, T>) {
      return value;
#if RUSHLIGHT_ISA >= 3
    } else if constexpr (kCount == kHalves) {
      return Lanes<Lane>(detail::kSame<Memory, Half> ? to_halves(value)
                                                     : upper_halves(FloatBits(value)));
    } else if constexpr (detail::kSame<Memory, Half>) {
      return Lanes<Lane>(__builtin_ia32_vcvtps2ph256(value, kNearest));
#endif
    } else if constexpr (detail::kSame<Memory, BFloat16>) {
      return __builtin_convertvector(Lanes<uint32_t>(value) >> 16, Lanes<Lane>);
    } else {
      Lanes<Lane> lanes;
      for (int i = 0; i < kCount; ++i) lanes[i] = from_float<Memory>(value[i]).bits;
      return lanes;
    }
  }
};

// Vectors that share the walk through their windows, as many as the registers hold.
inline constexpr int kTogether = 4;
// A number that is known when the loop is compiled.
template <int n>
struct Count {
  constexpr operator int64_t() const { return n; }
};
// Calls f with the stride of windows, in the usual cases as a Count.
template <class F>
[[gnu::always_inline]] inline void with_stride(int64_t stride, F f) {
  if (stride == 1) f(Count<1>());
  else if (stride == 2) f(Count<2>());
  else f(stride);
}

// Calls one(i) for single lanes of [0, n) and some(V(), Count(), i) for vectors of lanes from begin
// to below end; the last vector may overlap the one before.
template <class V, class One, class Some>
[[gnu::always_inline]] inline void for_lanes(int64_t n, int64_t begin, int64_t end, One one,
                                             Some some) {
  constexpr int64_t kMany = kTogether * V::kCount;
  if (end - begin < V::kCount) begin = end = n;
  for (int64_t i = 0; i < begin; ++i) one(i);
  int64_t i = begin;
  for (; i + kMany <= end; i += kMany) some(V(), Count<kTogether>(), i);
  for (; i < end; i += V::kCount) some(V(), Count<1>(), i + V::kCount <= end ? i : end - V::kCount);
  for (i = end; i < n; ++i) one(i);
}

// Calls one(c) for single channels of [0, n) or some(V(), Count(), c) for vectors from c on; the
// last vector may overlap the one before.
template <class V, class One, class Some>
[[gnu::always_inline]] inline void for_channels(int64_t n, One one, Some some) {
  constexpr int64_t kMany = kTogether * V::kCount;
  int64_t c = 0;
  for (; c + kMany <= n; c += kMany) some(V(), Count<kTogether>(), c);
  for (; c + V::kCount <= n; c += V::kCount) some(V(), Count<1>(), c);
  if (c < n && n >= V::kCount) return some(V(), Count<1>(), n - V::kCount);
  for (; c < n; ++c) one(c);
}

// Calls one(place, channel) or some(V(), how many, place, channel, stride, step) for all outputs.
// The first lane of the vectors is there; in the input their elements are `stride` apart, their
// pixels `step`.
template <class T, class One, class Some>
[[gnu::always_inline]] inline void for_outputs(const PoolVolume& volume, One one, Some some) {
  const PoolAxis& columns = volume.columns;
  auto along_row = [&]<int kBytes>(Count<kBytes>, int64_t plane, int64_t row) {
    with_stride(columns.stride, [&](auto stride) {
      for_lanes<Vectors<T, kBytes>>(
          columns.out, columns.even_begin, columns.even_end,
          [&](int64_t column) { one(Place{plane, row, column}, 0); },
          [&](auto v, auto many, int64_t column) {
            some(v, many, Place{plane, row, column}, 0, stride, stride);
          });
    });
  };
  const bool fills_vectors =  // with elements that are not collected one by one
      columns.stride <= 2 &&
      (columns.even_end - columns.even_begin) * int64_t(sizeof(T)) >= kVectorBytes;
  for_rows(volume, [&](int64_t plane, int64_t row) {
    if (volume.pixel == 1)
      return fills_vectors ? along_row(Count<kVectorBytes>(), plane, row)
                           : along_row(Count<kPoolRowBytes>(), plane, row);
    for (int64_t column = 0; column < columns.out; ++column) {
      Place at{plane, row, column};
      for_channels<Vectors<T, kVectorBytes>>(
          volume.channels, [&](int64_t c) { one(at, c); },
          [&](auto v, auto many, int64_t c) { some(v, many, at, c, Count<1>(), Count<0>()); });
    }
  });
}

// ---- the loops ---------------------------------------------------------------------------------

template <class T>
inline constexpr T kLeast = T(-__builtin_inf());
template <>
inline constexpr int64_t kLeast<int64_t> = INT64_MIN;

// The better of two, of which NaN is best.
template <class V>
[[gnu::always_inline]] inline auto is_better(V x, V best) {
  return (x > best) | (x != x);
}

// Without places.
template <class T, class Memory>
void max_pool_values(const PoolVolume& volume, const Memory* in, Memory* out) {
  auto one = [&](Place at, int64_t c) {
    T best = kLeast<T>;
    for_window(volume, at, [&](int64_t pixel) {
      T x = convert<T>(in[pixel * volume.pixel + c]);
      best = is_better(x, best) ? x : best;
    });
    out[number_of(volume, at) * volume.pixel + c] = convert<Memory>(best);
  };
  auto some = [&]<class V, int many>(V, Count<many>, Place at, int64_t c, auto stride, auto) {
    typename V::Value best[many];
    for (int m = 0; m < many; ++m) best[m] = typename V::Value{} + kLeast<T>;
    for_window(volume, at, [&](int64_t pixel) {
      const Memory* from = in + pixel * volume.pixel + c;
      for (int m = 0; m < many; ++m) {
        typename V::Value x = V::load(from + m * V::kCount * stride, stride);
        typename V::Value larger = x > best[m] ? x : best[m];
        best[m] = x != x ? x : larger;
      }
    });
    int64_t to = number_of(volume, at) * volume.pixel + c;
    for (int m = 0; m < many; ++m) V::store(out + to + m * V::kCount, best[m]);
  };
  for_outputs<T>(volume, one, some);
}

template <class T, class Memory>
void max_pool(const PoolVolume& volume, const void* input, void* output, int32_t* indices) {
  const Memory* in = static_cast<const Memory*>(input);
  Memory* out = static_cast<Memory*>(output);
  if (!indices) return max_pool_values<T>(volume, in, out);
  auto one = [&](Place at, int64_t c) {
    T best = kLeast<T>;
    int64_t index = first_pixel(volume, at), to = number_of(volume, at) * volume.pixel + c;
    for_window(volume, at, [&](int64_t pixel) {
      T x = convert<T>(in[pixel * volume.pixel + c]);
      const bool better = is_better(x, best);
      best = better ? x : best;
      index = better ? pixel : index;
    });
    out[to] = convert<Memory>(best);
    indices[to] = int32_t(index);
  };
  auto some = [&]<class V, int many>(V, Count<many>, Place at, int64_t c, auto stride, auto step) {
    using Element = typename V::Element;
    typename V::Index steps = V::steps(step), index[many];
    typename V::Value best[many];
    for (int m = 0; m < many; ++m) {
      index[m] = steps + Element(first_pixel(volume, at) + m * V::kCount * step);
      best[m] = typename V::Value{} + kLeast<T>;
    }
    for_window(volume, at, [&](int64_t pixel) {
      const Memory* from = in + pixel * volume.pixel + c;
      for (int m = 0; m < many; ++m) {
        typename V::Value x = V::load(from + m * V::kCount * stride, stride);
        auto better = is_better(x, best[m]);
        best[m] = better ? x : best[m];
        index[m] = better ? steps + Element(pixel + m * V::kCount * step) : index[m];
      }
    });
    int64_t to = number_of(volume, at) * volume.pixel + c;
    for (int m = 0; m < many; ++m) {
      V::store(out + to + m * V::kCount, best[m]);
      V::store(indices + to + m * V::kCount, index[m]);
    }
  };
  for_outputs<T>(volume, one, some);
}

// ---- rows --------------------------------------------------------------------------------------

// Adds value(i) to each of n sums, which begin with what is added first.
template <class T, class F>
[[gnu::always_inline]] inline void add_row(bool is_first, int64_t n, T* sums, F value) {
  if (is_first)
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) sums[i] = value(i);
  else
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) sums[i] += value(i);
}

template <class T, class Memory>
[[gnu::always_inline]] inline void store_row(const PoolVolume& volume, int64_t pixels,
                                             const T* from, Memory* to) {
  for_runs(volume.channels, volume.pixel, pixels, [&](int64_t i, int64_t at, int64_t n) {
#pragma omp simd
    for (int64_t k = 0; k < n; ++k) to[at + k] = convert<Memory>(from[i + k]);
  });
}

// ---- averages ----------------------------------------------------------------------------------

// So many elements are worth vectors of their own.
template <class T>
inline constexpr int kWide = 2 * Vectors<T, kPoolRowBytes>::kCount;

// The outputs of a row whose windows are alike and have fewer columns than `wide`; none are behind
// the last output.
struct EvenColumns {
  int64_t begin, end, kernel = 0;

  EvenColumns(const PoolAxis& columns, int64_t wide)
      : begin(columns.even_begin), end(columns.even_end) {
    if (begin < end) kernel = columns.end[begin] - columns.begin[begin];
    if (kernel != 0 && kernel < wide) return;
    begin = end = columns.out;
    kernel = 0;
  }
};

template <class T>
[[gnu::always_inline]] inline T sum_of(const T* from, int64_t n) {
  using V = Vectors<T, kPoolRowBytes>;
  T sum = 0;
  int64_t i = 0;
  if (n >= kWide<T>) {
    typename V::Value sums{};
    for (; i + V::kCount <= n; i += V::kCount) sums += V::load(from + i, 1);
    for (int lane = 0; lane < V::kCount; ++lane) sum += sums[lane];
  }
  for (; i < n; ++i) sum += from[i];
  return sum;
}

// The sums of a row of sums over each window's columns, divided by the outputs' divisors.
template <class T>
[[gnu::always_inline]] inline void average_columns(const PoolVolume& volume, const T* sums,
                                                   const T* divisors, T* means) {
  const PoolAxis& columns = volume.columns;
  int64_t n = volume.channels;
  if (volume.pixel == 1) {
    using V = Vectors<T, kPoolRowBytes>;
    EvenColumns even(columns, kWide<T>);
    with_stride(columns.stride, [&](auto stride) {
      for_lanes<V>(
          columns.out, even.begin, even.end,
          [&](int64_t column) {
            int64_t begin = columns.begin[column];
            means[column] = sum_of(sums + begin, columns.end[column] - begin) / divisors[column];
          },
          [&]<int many>(V, Count<many>, int64_t column) {
            typename V::Value sum[many]{};
            for (int64_t x = columns.begin[column]; x < columns.end[column]; ++x)
              for (int m = 0; m < many; ++m)
                sum[m] += V::load(sums + x + m * V::kCount * stride, stride);
            for (int m = 0; m < many; ++m) {
              int64_t to = column + m * V::kCount;
              V::store(means + to, sum[m] / V::load(divisors + to, 1));
            }
          });
    });
    return;
  }
  for (int64_t column = 0; column < columns.out; ++column) {
    const T* from = sums + columns.begin[column] * n;
    const T* end = sums + columns.end[column] * n;
    T divisor = divisors[column];
    T* to = means + column * n;
    for_channels<Vectors<T, kVectorBytes>>(
        n,
        [&](int64_t c) {
          T sum = 0;
          for (const T* x = from; x < end; x += n) sum += x[c];
          to[c] = sum / divisor;
        },
        [&]<class V, int many>(V, Count<many>, int64_t c) {
          typename V::Value sum[many]{};
          for (const T* x = from; x < end; x += n)
            for (int m = 0; m < many; ++m) sum[m] += V::load(x + c + m * V::kCount, 1);
          for (int m = 0; m < many; ++m) V::store(to + c + m * V::kCount, sum[m] / divisor);
        });
  }
}

// First the sums over each window's rows, then those over its columns.
template <class T, class Memory>
void avg_pool(const PoolVolume& volume, const void* divisors, const void* input, void* output) {
  const PoolAxis &planes = volume.planes, &rows = volume.rows, &columns = volume.columns;
  const Memory* in = static_cast<const Memory*>(input);
  T* sums = static_cast<T*>(volume.scratch);
  T* means = sums + columns.size * volume.channels;
  for_rows(volume, [&](int64_t plane, int64_t row) {
    bool is_first = true;
    for (int64_t z = planes.begin[plane]; z < planes.end[plane]; ++z)
      for (int64_t y = rows.begin[row]; y < rows.end[row]; ++y) {
        const Memory* from = in + (z * rows.size + y) * columns.size * volume.pixel;
        for_runs(
            volume.channels, volume.pixel, columns.size, [&](int64_t i, int64_t at, int64_t n) {
              add_row(is_first, n, sums + i, [&](int64_t k) { return convert<T>(from[at + k]); });
            });
        is_first = false;
      }
    int64_t number = (plane * rows.out + row) * columns.out;
    average_columns(volume, sums, static_cast<const T*>(divisors) + number, means);
    store_row(volume, columns.out, means, static_cast<Memory*>(output) + number * volume.pixel);
  });
}

// Rounded towards zero.
void avg_pool_of_integers(const PoolVolume& volume, const void* divisors, const void* input,
                          void* output) {
  const int64_t* in = static_cast<const int64_t*>(input);
  const int64_t* divisor = static_cast<const int64_t*>(divisors);
  int64_t* out = static_cast<int64_t*>(output);
  for_rows(volume, [&](int64_t plane, int64_t row) {
    for (int64_t column = 0; column < volume.columns.out; ++column)
      for (int64_t c = 0; c < volume.channels; ++c) {
        Place at{plane, row, column};
        int64_t number = number_of(volume, at);
        uint64_t sum = 0;
        for_window(volume, at,
                   [&](int64_t pixel) { sum += uint64_t(in[pixel * volume.pixel + c]); });
        out[number * volume.pixel + c] = trunc_divide(int64_t(sum), divisor[number]);
      }
  });
}

// Calls f(element, first, past) for the elements of an axis: the windows of the outputs from first
// to below past have it.
template <class F>
[[gnu::always_inline]] inline void for_elements(const PoolAxis& axis, F f) {
  int64_t first = 0, past = 0;
  for (int64_t element = 0; element < axis.size; ++element) {
    while (first < axis.out && axis.end[first] <= element) ++first;
    while (past < axis.out && axis.begin[past] <= element) ++past;
    f(element, first, past);
  }
}

// Sums over the outputs of a row, of n channels, whose windows have a column.
template <class T>
[[gnu::always_inline]] inline void spread_columns(const PoolAxis& columns, int64_t n,
                                                  const T* outputs, T* sums) {
  __builtin_memset(sums, 0, size_t(columns.size * n) * sizeof(T));
  auto spread = [&](int64_t begin, int64_t end) {
    for (int64_t column = begin; column < end; ++column)
      for (int64_t x = columns.begin[column]; x < columns.end[column]; ++x)
        add_row(false, n, sums + x * n, [&](int64_t c) { return outputs[column * n + c]; });
  };
  if (n > 1) return spread(0, columns.out);
  EvenColumns even(columns, kWide<T>);
  spread(0, even.begin);
  for (int64_t k = even.kernel - 1; k >= 0; --k) {  // the outputs of an element in their order
    T* to = sums + columns.begin[even.begin] + k;
    const T* from = outputs + even.begin;
    int64_t count = even.end - even.begin;
    if (columns.stride == 1) add_row(false, count, to, [&](int64_t i) { return from[i]; });
    else
      for (int64_t i = 0; i < count; ++i) to[i * columns.stride] += from[i];
  }
  spread(even.end, columns.out);
}

// The gradients of a row of outputs, each divided by its divisor.
template <class T, class Memory>
[[gnu::always_inline]] inline void share_row(const PoolVolume& volume, const Memory* grad,
                                             const T* divisors, T* shares) {
  int64_t outputs = volume.columns.out, n = volume.channels;
  if (volume.pixel == 1)
    return add_row(true, outputs, shares,
                   [&](int64_t i) { return convert<T>(grad[i]) / divisors[i]; });
  for (int64_t column = 0; column < outputs; ++column, grad += volume.pixel, shares += n)
    add_row(true, n, shares, [&](int64_t c) { return convert<T>(grad[c]) / divisors[column]; });
}

// A row of outputs is spread over its windows' columns once, and then added to each row of inputs
// that its windows have. The spread rows that the next rows of inputs may need are kept.
template <class T, class Memory>
void avg_pool_backward(const PoolVolume& volume, const void* divisors, const void* grad,
                       void* grad_input) {
  const PoolAxis &planes = volume.planes, &rows = volume.rows, &columns = volume.columns;
  int64_t width = columns.size * volume.channels;
  T* sums = static_cast<T*>(volume.scratch);
  T* shares = sums + width;
  T* spreads = shares + columns.out * volume.channels;
  for_elements(planes, [&](int64_t z, int64_t first_plane, int64_t past_plane) {
    auto spread_of = [&](int64_t plane, int64_t row) {
      return spreads + ((plane - first_plane) * rows.sharing + row % rows.sharing) * width;
    };
    int64_t first = -1, past = 0;
    for_elements(rows, [&](int64_t y, int64_t first_row, int64_t past_row) {
      bool is_new = first != first_row || past != past_row;
      first = first_row;
      for (; past < past_row; ++past)
        for (int64_t plane = first_plane; plane < past_plane; ++plane) {
          int64_t number = (plane * rows.out + past) * columns.out;
          share_row(volume, static_cast<const Memory*>(grad) + number * volume.pixel,
                    static_cast<const T*>(divisors) + number, shares);
          spread_columns(columns, volume.channels, shares, spread_of(plane, past));
        }
      if (is_new) {
        bool is_first = true;
        for (int64_t plane = first_plane; plane < past_plane; ++plane)
          for (int64_t row = first_row; row < past_row; ++row) {
            const T* spread = spread_of(plane, row);
            add_row(is_first, width, sums, [&](int64_t i) { return spread[i]; });
            is_first = false;
          }
        if (is_first) __builtin_memset(sums, 0, size_t(width) * sizeof(T));
      }
      store_row(
          volume, columns.size, sums,
          static_cast<Memory*>(grad_input) + (z * rows.size + y) * columns.size * volume.pixel);
    });
  });
}

}  // namespace

extern const PoolLoops pool_loops;
constexpr PoolLoops pool_loops = {
    {&max_pool<float, float>, &max_pool<double, double>, &max_pool<int64_t, int64_t>,
     &max_pool<float, Half>, &max_pool<float, BFloat16>},
    {&avg_pool<float, float>, &avg_pool<double, double>, &avg_pool_of_integers,
     &avg_pool<float, Half>, &avg_pool<float, BFloat16>},
    {&avg_pool_backward<float, float>, &avg_pool_backward<double, double>, nullptr,
     &avg_pool_backward<float, Half>, &avg_pool_backward<float, BFloat16>}};

}  // namespace rushlight::RUSHLIGHT_ISA_NAMESPACE
