// Owns the pooling loops. Vectors run along the channels where those lie side by side, and along
// the outputs of a row in single planes; each window is finished in registers.
#include "core/ops/pool_loops.h"
#include "core/tensor/formula.h"

namespace rushlight::RUSHLIGHT_ISA_NAMESPACE {
namespace {

// ---- windows -----------------------------------------------------------------------------------

// Calls f(pixel) for the pixels of a window, row by row.
template <class F>
[[gnu::always_inline]] inline void for_window(const PoolImage& image, int64_t row, int64_t column,
                                              F f) {
  const PoolAxis &rows = image.rows, &columns = image.columns;
  for (int64_t y = rows.begin[row]; y < rows.end[row]; y += rows.dilation)
    for (int64_t x = columns.begin[column]; x < columns.end[column]; x += columns.dilation)
      f(y * columns.size + x);
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

// Vectors of values, and of integers of the same size. 64 bytes are best along channels, 32 along
// the rows of planes, which are short.
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
    Value value;
    if (stride == 2) {  // without reading past the last element
      Index lanes;
      for (int i = 0; i < kCount; ++i) lanes[i] = 2 * i < kCount ? 2 * i : 2 * i + 1;
      Value low = *reinterpret_cast<const Loose*>(p);
      Value high = *reinterpret_cast<const Loose*>(p + kCount - 1);
      return __builtin_shuffle(low, high, lanes);
    }
    for (int i = 0; i < kCount; ++i) value[i] = p[i * stride];
    return value;
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

// Calls one(i) for single lanes of [0, n) and some(V(), i) for vectors of lanes from begin to below
// end; the last vector may overlap the one before.
template <class V, class One, class Some>
[[gnu::always_inline]] inline void for_lanes(int64_t n, int64_t begin, int64_t end, One one,
                                             Some some) {
  if (end - begin < V::kCount) begin = end = n;
  for (int64_t i = 0; i < begin; ++i) one(i);
  for (int64_t i = begin; i < end; i += V::kCount)
    some(V(), i + V::kCount <= end ? i : end - V::kCount);
  for (int64_t i = end; i < n; ++i) one(i);
}

// Calls one(row, column, channel) or some(V(), row, column, channel, stride, step) for all outputs.
// A vector's first lane is there; in the input its elements are `stride` apart, its pixels `step`.
template <class T, class One, class Some>
[[gnu::always_inline]] inline void for_outputs(const PoolImage& image, One one, Some some) {
  const PoolAxis& columns = image.columns;
  for (int64_t row = 0; row < image.rows.out; ++row) {
    if (image.pixel == 1) {
      for_lanes<Vectors<T, 32>>(
          columns.out, columns.even_begin, columns.even_end,
          [&](int64_t column) { one(row, column, 0); },
          [&](auto v, int64_t column) { some(v, row, column, 0, columns.stride, columns.stride); });
      continue;
    }
    for (int64_t column = 0; column < columns.out; ++column)
      for_lanes<Vectors<T, 64>>(
          image.channels, 0, image.channels, [&](int64_t c) { one(row, column, c); },
          [&](auto v, int64_t c) { some(v, row, column, c, 1, 0); });
  }
}

// ---- the loops ---------------------------------------------------------------------------------

template <class T>
inline constexpr T kLeast = T(-__builtin_inf());
template <>
inline constexpr int64_t kLeast<int64_t> = INT64_MIN;

template <class T>
void max_pool(const PoolImage& image, const void* input, void* output, int32_t* indices) {
  const T* in = static_cast<const T*>(input);
  T* out = static_cast<T*>(output);
  auto first = [&](int64_t row, int64_t column) {
    return image.rows.begin[row] * image.columns.size + image.columns.begin[column];
  };
  auto place_of = [&](int64_t row, int64_t column, int64_t c) {
    return (row * image.columns.out + column) * image.pixel + c;
  };
  auto one = [&](int64_t row, int64_t column, int64_t c) {
    T best = kLeast<T>;
    int64_t index = first(row, column), place = place_of(row, column, c);
    for_window(image, row, column, [&](int64_t pixel) {
      T x = in[pixel * image.pixel + c];
      bool better = (x > best) | (x != x);
      best = better ? x : best;
      index = better ? pixel : index;
    });
    out[place] = best;
    indices[place] = int32_t(index);
  };
  auto some = [&]<class V>(V, int64_t row, int64_t column, int64_t c, int64_t stride,
                           int64_t step) {
    using Element = typename V::Element;
    typename V::Index steps = V::steps(step);
    typename V::Index index = steps + Element(first(row, column));
    typename V::Value best = typename V::Value{} + kLeast<T>;
    for_window(image, row, column, [&](int64_t pixel) {
      typename V::Value x = V::load(in + pixel * image.pixel + c, stride);
      auto better = (x > best) | (x != x);
      best = better ? x : best;
      index = better ? steps + Element(pixel) : index;
    });
    V::store(out + place_of(row, column, c), best);
    V::store(indices + place_of(row, column, c), index);
  };
  for_outputs<T>(image, one, some);
}

template <class T>
void avg_pool(const PoolImage& image, const void* divisors, const void* input, void* output) {
  const T* in = static_cast<const T*>(input);
  const T* divisor = static_cast<const T*>(divisors);
  T* out = static_cast<T*>(output);
  auto one = [&](int64_t row, int64_t column, int64_t c) {
    int64_t at = row * image.columns.out + column;
    T sum = 0;
    for_window(image, row, column, [&](int64_t pixel) { sum += in[pixel * image.pixel + c]; });
    out[at * image.pixel + c] = sum / divisor[at];
  };
  auto some = [&]<class V>(V, int64_t row, int64_t column, int64_t c, int64_t stride,
                           int64_t step) {
    int64_t at = row * image.columns.out + column;
    typename V::Value sum{};
    for_window(image, row, column,
               [&](int64_t pixel) { sum += V::load(in + pixel * image.pixel + c, stride); });
    sum = step ? sum / V::load(divisor + at, 1) : sum / divisor[at];
    V::store(out + at * image.pixel + c, sum);
  };
  for_outputs<T>(image, one, some);
}

// Rounded towards zero.
void avg_pool_of_integers(const PoolImage& image, const void* divisors, const void* input,
                          void* output) {
  const int64_t* in = static_cast<const int64_t*>(input);
  const int64_t* divisor = static_cast<const int64_t*>(divisors);
  int64_t* out = static_cast<int64_t*>(output);
  for (int64_t row = 0; row < image.rows.out; ++row)
    for (int64_t column = 0; column < image.columns.out; ++column)
      for (int64_t c = 0; c < image.channels; ++c) {
        int64_t at = row * image.columns.out + column;
        uint64_t sum = 0;
        for_window(image, row, column,
                   [&](int64_t pixel) { sum += uint64_t(in[pixel * image.pixel + c]); });
        out[at * image.pixel + c] = trunc_divide(int64_t(sum), divisor[at]);
      }
}

template <class T>
void avg_pool_backward(const PoolImage& image, const void* divisors, const void* grad,
                       void* grad_input) {
  T* to = static_cast<T*>(grad_input);
  int64_t n = image.channels;
  for (int64_t row = 0; row < image.rows.out; ++row)
    for (int64_t column = 0; column < image.columns.out; ++column) {
      int64_t at = row * image.columns.out + column;
      T divisor = static_cast<const T*>(divisors)[at];
      const T* from = static_cast<const T*>(grad) + at * image.pixel;
      if (image.pixel == 1) {
        T share = *from / divisor;
        for_window(image, row, column, [&](int64_t pixel) { to[pixel] += share; });
        continue;
      }
      T share[kPoolChannels];
      for (int64_t c = 0; c < n; ++c) share[c] = from[c] / divisor;
      for_window(image, row, column, [&](int64_t pixel) {
        T* sum = to + pixel * image.pixel;
#pragma omp simd
        for (int64_t c = 0; c < n; ++c) sum[c] += share[c];
      });
    }
}

}  // namespace

extern const PoolLoops pool_loops;
constexpr PoolLoops pool_loops = {{&max_pool<float>, &max_pool<double>, &max_pool<int64_t>},
                                  {&avg_pool<float>, &avg_pool<double>, &avg_pool_of_integers},
                                  {&avg_pool_backward<float>, &avg_pool_backward<double>}};

}  // namespace rushlight::RUSHLIGHT_ISA_NAMESPACE
