// Owns the loops of max pooling: the maxima of vectors of windows are found in registers.
#include "core/ops/pool/pool_vectors.h"

namespace rushlight::RUSHLIGHT_ISA_NAMESPACE {
namespace {

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

template <class T>
inline constexpr T kLeast = T(-__builtin_inf());
template <>
inline constexpr int64_t kLeast<int64_t> = INT64_MIN;

// Whether x is better than the best so far; NaN is better than all.
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

}  // namespace

extern const MaxPoolLoops max_pool_loops;
constexpr MaxPoolLoops max_pool_loops = {{&max_pool<float, float>, &max_pool<double, double>,
                                          &max_pool<int64_t, int64_t>, &max_pool<float, Half>,
                                          &max_pool<float, BFloat16>}};

}  // namespace rushlight::RUSHLIGHT_ISA_NAMESPACE
