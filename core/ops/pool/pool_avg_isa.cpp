// Owns the loops of average pooling: sums of rows first, then of columns.
#include "core/ops/pool/pool_vectors.h"

namespace rushlight::RUSHLIGHT_ISA_NAMESPACE {
namespace {

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

extern const AvgPoolLoops avg_pool_loops;
constexpr AvgPoolLoops avg_pool_loops = {
    {&avg_pool<float, float>, &avg_pool<double, double>, &avg_pool_of_integers,
     &avg_pool<float, Half>, &avg_pool<float, BFloat16>},
    {&avg_pool_backward<float, float>, &avg_pool_backward<double, double>, nullptr,
     &avg_pool_backward<float, Half>, &avg_pool_backward<float, BFloat16>}};

}  // namespace rushlight::RUSHLIGHT_ISA_NAMESPACE
