// Owns the pooling loops. Vectors run along the channels where those lie side by side, and along
// the outputs of a row in single planes; each window is finished in registers.
#include "core/ops/pool/pool_loops.h"
#include "core/tensor/vectors.h"

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

// Vectors of values, and of integers of the same size: kVectorBytes along channels, kPoolRowBytes
// along the rows of planes, which are short.
template <class T, int kBytes>
struct Vectors {
  static constexpr int kCount = kBytes / int(sizeof(T));
  using Element = typename IntegerOfSize<sizeof(T)>::type;
  typedef T Value __attribute__((vector_size(kBytes)));
  typedef Element Index __attribute__((vector_size(kBytes)));
  typedef T Loose __attribute__((vector_size(kBytes), aligned(sizeof(T)), may_alias));
  typedef int32_t Places __attribute__((vector_size(kCount * 4), aligned(4), may_alias));

  [[gnu::always_inline]] static Value load(const T* p, int64_t stride) {
    if (stride == 1) return *reinterpret_cast<const Loose*>(p);
    if (stride == 2) return every_second(p, detail::IndicesTo<size_t(kCount)>{});
    Value value;
    for (int i = 0; i < kCount; ++i) value[i] = p[i * stride];
    return value;
  }
  template <size_t... I>
  [[gnu::always_inline]] static Value every_second(const T* p, detail::Indices<I...>) {
    Value low = *reinterpret_cast<const Loose*>(p);
    Value high = *reinterpret_cast<const Loose*>(p + kCount - 1);  // not past the last element
    return __builtin_shufflevector(low, high,
                                   (2 * int(I) < kCount ? 2 * int(I) : 2 * int(I) + 1)...);
  }
  [[gnu::always_inline]] static void store(T* p, Value value) {
    *reinterpret_cast<Loose*>(p) = value;
  }
  [[gnu::always_inline]] static void store(int32_t* p, Index index) {
    *reinterpret_cast<Places*>(p) = __builtin_convertvector(index, Places);
  }
  // 0, step, 2 * step, ...
  [[gnu::always_inline]] static Index steps(int64_t step) {
    Index index;
    for (int i = 0; i < kCount; ++i) index[i] = Element(i * step);
    return index;
  }
};

// Vectors that share the walk through their windows, as many as the registers hold.
#if RUSHLIGHT_ISA == 4
inline constexpr int kTogether = 4;
#else
inline constexpr int kTogether = 2;
#endif
template <int n>
struct Count {
  static constexpr int value = n;
};

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
  for_rows(volume, [&](int64_t plane, int64_t row) {
    if (volume.pixel == 1) {
      for_lanes<Vectors<T, kPoolRowBytes>>(
          columns.out, columns.even_begin, columns.even_end,
          [&](int64_t column) { one(Place{plane, row, column}, 0); },
          [&](auto v, auto many, int64_t column) {
            some(v, many, Place{plane, row, column}, 0, columns.stride, columns.stride);
          });
      return;
    }
    for (int64_t column = 0; column < columns.out; ++column) {
      Place at{plane, row, column};
      for_channels<Vectors<T, kVectorBytes>>(
          volume.channels, [&](int64_t c) { one(at, c); },
          [&](auto v, auto many, int64_t c) { some(v, many, at, c, 1, 0); });
    }
  });
}

// ---- the loops ---------------------------------------------------------------------------------

template <class T>
inline constexpr T kLeast = T(-__builtin_inf());
template <>
inline constexpr int64_t kLeast<int64_t> = INT64_MIN;

template <class T>
void max_pool(const PoolVolume& volume, const void* input, void* output, int32_t* indices) {
  const T* in = static_cast<const T*>(input);
  T* out = static_cast<T*>(output);
  auto one = [&](Place at, int64_t c) {
    T best = kLeast<T>;
    int64_t index = first_pixel(volume, at), to = number_of(volume, at) * volume.pixel + c;
    for_window(volume, at, [&](int64_t pixel) {
      T x = in[pixel * volume.pixel + c];
      bool better = (x > best) | (x != x);
      best = better ? x : best;
      index = better ? pixel : index;
    });
    out[to] = best;
    indices[to] = int32_t(index);
  };
  auto some = [&]<class V, int many>(V, Count<many>, Place at, int64_t c, int64_t stride,
                                     int64_t step) {
    using Element = typename V::Element;
    typename V::Index steps = V::steps(step), index[many];
    typename V::Value best[many];
    for (int m = 0; m < many; ++m) {
      index[m] = steps + Element(first_pixel(volume, at) + m * V::kCount * step);
      best[m] = typename V::Value{} + kLeast<T>;
    }
    for_window(volume, at, [&](int64_t pixel) {
      const T* from = in + pixel * volume.pixel + c;
      for (int m = 0; m < many; ++m) {
        typename V::Value x = V::load(from + m * V::kCount * stride, stride);
        auto better = (x > best[m]) | (x != x);
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

template <class T>
void avg_pool(const PoolVolume& volume, const void* divisors, const void* input, void* output) {
  const T* in = static_cast<const T*>(input);
  const T* divisor = static_cast<const T*>(divisors);
  T* out = static_cast<T*>(output);
  auto one = [&](Place at, int64_t c) {
    int64_t number = number_of(volume, at);
    T sum = 0;
    for_window(volume, at, [&](int64_t pixel) { sum += in[pixel * volume.pixel + c]; });
    out[number * volume.pixel + c] = sum / divisor[number];
  };
  auto some = [&]<class V, int many>(V, Count<many>, Place at, int64_t c, int64_t stride,
                                     int64_t step) {
    int64_t number = number_of(volume, at);
    typename V::Value sum[many]{};
    for_window(volume, at, [&](int64_t pixel) {
      const T* from = in + pixel * volume.pixel + c;
      for (int m = 0; m < many; ++m) sum[m] += V::load(from + m * V::kCount * stride, stride);
    });
    for (int m = 0; m < many; ++m) {
      sum[m] =
          step ? sum[m] / V::load(divisor + number + m * V::kCount, 1) : sum[m] / divisor[number];
      V::store(out + number * volume.pixel + c + m * V::kCount, sum[m]);
    }
  };
  for_outputs<T>(volume, one, some);
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

template <class T>
void avg_pool_backward(const PoolVolume& volume, const void* divisors, const void* grad,
                       void* grad_input) {
  T* to = static_cast<T*>(grad_input);
  int64_t n = volume.channels;
  for_rows(volume, [&](int64_t plane, int64_t row) {
    for (int64_t column = 0; column < volume.columns.out; ++column) {
      Place at{plane, row, column};
      int64_t number = number_of(volume, at);
      T divisor = static_cast<const T*>(divisors)[number];
      const T* from = static_cast<const T*>(grad) + number * volume.pixel;
      if (volume.pixel == 1) {
        T share = *from / divisor;
        for_window(volume, at, [&](int64_t pixel) { to[pixel] += share; });
        continue;
      }
      T share[kPoolChannels];
      for (int64_t c = 0; c < n; ++c) share[c] = from[c] / divisor;
      for_window(volume, at, [&](int64_t pixel) {
        T* sum = to + pixel * volume.pixel;
#pragma omp simd
        for (int64_t c = 0; c < n; ++c) sum[c] += share[c];
      });
    }
  });
}

}  // namespace

extern const PoolLoops pool_loops;
constexpr PoolLoops pool_loops = {{&max_pool<float>, &max_pool<double>, &max_pool<int64_t>},
                                  {&avg_pool<float>, &avg_pool<double>, &avg_pool_of_integers},
                                  {&avg_pool_backward<float>, &avg_pool_backward<double>}};

}  // namespace rushlight::RUSHLIGHT_ISA_NAMESPACE
