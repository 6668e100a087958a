// Owns the vectorized loops of batch_norm, group_norm and layer_norm.
#include "core/ops/norm/norm_loops.h"

#include "core/tensor/lanes.h"
#include "core/tensor/wide_load.h"

#include "core/tensor/convert.h"  // after wide_load.h

namespace rushlight::RUSHLIGHT_ISA_NAMESPACE {
namespace {

// Columns whose sums stay in registers while the rows go by.
template <class T>
constexpr int64_t kChunk = 128 / sizeof(T);
// Wider rows are read one after the other, as streams; their sums stay in the L1 cache.
template <class T>
constexpr int64_t kWide = 512 / sizeof(T);

template <class T>
T run_sum(const T* x, int64_t n) {
  return sum<T>(n, [=](int64_t i) { return x[i]; });
}

template <class T>
T squares(const T* x, T mean, int64_t n) {
  return sum<T>(n, [=](int64_t i) { return (x[i] - mean) * (x[i] - mean); });
}

template <class T>
void grad_sums(const T* g, const T* x, T mean, int64_t n, T* sum, T* dot) {
  T total = 0, product = 0;
#pragma omp simd reduction(+ : total, product)
  for (int64_t i = 0; i < n; ++i) {
    total += g[i];
    product += g[i] * (x[i] - mean);
  }
  *sum = total;
  *dot = product;
}

// Calls f(first column, how many) for chunks of n columns.
template <class T, class F>
[[gnu::always_inline]] inline void for_each_chunk(int64_t n, const F& f) {
  int64_t j = 0;
  for (; j + kChunk<T> <= n; j += kChunk<T>) f(j, kChunk<T>);
  if (j < n) f(j, n - j);
}

template <class T>
void column_sum(const T* x, int64_t rows, int64_t n, T* into) {
  if (n > kWide<T>) {
    for (int64_t r = 0; r < rows; ++r)
#pragma omp simd
      for (int64_t j = 0; j < n; ++j) into[j] += x[r * n + j];
    return;
  }
  for_each_chunk<T>(n, [=](int64_t j, int64_t width) __attribute__((always_inline)) {
    T sum[kChunk<T>];
    for (int64_t l = 0; l < width; ++l) sum[l] = into[j + l];
    for (int64_t r = 0; r < rows; ++r)
#pragma omp simd
      for (int64_t l = 0; l < width; ++l) sum[l] += x[r * n + j + l];
    for (int64_t l = 0; l < width; ++l) into[j + l] = sum[l];
  });
}

// What f(element, column, sum a, sum b) adds to two sums down each column.
template <class T, class F>
[[gnu::always_inline]] inline void two_sums(int64_t rows, int64_t n, T* a, T* b, const F& f) {
  if (n > kWide<T>) {
    for (int64_t r = 0; r < rows; ++r)
#pragma omp simd
      for (int64_t j = 0; j < n; ++j) f(r * n + j, j, a[j], b[j]);
    return;
  }
  for_each_chunk<T>(n, [=](int64_t j, int64_t width) __attribute__((always_inline)) {
    T sum_a[kChunk<T>], sum_b[kChunk<T>];
    for (int64_t l = 0; l < width; ++l) {
      sum_a[l] = a[j + l];
      sum_b[l] = b[j + l];
    }
    for (int64_t r = 0; r < rows; ++r)
#pragma omp simd
      for (int64_t l = 0; l < width; ++l) f(r * n + j + l, j + l, sum_a[l], sum_b[l]);
    for (int64_t l = 0; l < width; ++l) {
      a[j + l] = sum_a[l];
      b[j + l] = sum_b[l];
    }
  });
}

template <class T>
void column_moments(const T* x, const T* shift, int64_t rows, int64_t n, T* sum, T* squares) {
  two_sums(rows, n, sum, squares, [=](int64_t i, int64_t column, T& total, T& of_squares) {
    T distance = x[i] - shift[column];
    total += distance;
    of_squares += distance * distance;
  });
}

template <class T>
void column_grad_sums(const T* g, const T* x, const T* mean, int64_t rows, int64_t n, T* sum,
                      T* dot) {
  two_sums(rows, n, sum, dot, [=](int64_t i, int64_t column, T& total, T& product) {
    total += g[i];
    product += g[i] * (x[i] - mean[column]);
  });
}

// Writes f(i, read) to y[i]: two vectors at a time, one, then single elements. read(from + i) is as
// much of an operand.
template <class M, class F>
[[gnu::always_inline]] inline void write_each(M* y, int64_t n, const F& f) {
  using T = Wide<M>;
  constexpr int64_t kStep = kWidth<T>;
  auto vector = [](const auto* from) __attribute__((always_inline)) { return load_wide(from); };
  auto number = [](const auto* from) __attribute__((always_inline)) { return convert<T>(*from); };
  int64_t i = 0;
  for (; i + 2 * kStep <= n; i += 2 * kStep)
    store_rounded(y + i, f(i, vector), f(i + kStep, vector));
  for (; i + kStep <= n; i += kStep) store_rounded(y + i, f(i, vector));
  for (; i < n; ++i) y[i] = convert<M>(f(i, number));
}

template <class M>
void affine(const void* x, Wide<M> scale, Wide<M> shift, void* y, int64_t n) {
  const M* in = static_cast<const M*>(x);
  write_each(static_cast<M*>(y), n, [=](int64_t i, auto read) __attribute__((always_inline)) {
    return read(in + i) * scale + shift;
  });
}

template <class M>
void combine(const void* g, const void* x, Wide<M> a, Wide<M> b, Wide<M> c, void* y, int64_t n) {
  const M *grad = static_cast<const M*>(g), *in = static_cast<const M*>(x);
  write_each(static_cast<M*>(y), n, [=](int64_t i, auto read) __attribute__((always_inline)) {
    return a * read(grad + i) + b * read(in + i) + c;
  });
}

template <class M>
void column_affine(const void* x, const Wide<M>* scale, const Wide<M>* shift, void* y, int64_t rows,
                   int64_t n) {
  const M* in = static_cast<const M*>(x);
  M* out = static_cast<M*>(y);
  for (int64_t r = 0; r < rows; ++r, in += n, out += n)
    write_each(out, n, [=](int64_t i, auto read) __attribute__((always_inline)) {
      return read(in + i) * read(scale + i) + read(shift + i);
    });
}

template <class M>
void column_combine(const void* g, const void* x, const Wide<M>* a, const Wide<M>* b,
                    const Wide<M>* c, void* y, int64_t rows, int64_t n) {
  const M *grad = static_cast<const M*>(g), *in = static_cast<const M*>(x);
  M* out = static_cast<M*>(y);
  for (int64_t r = 0; r < rows; ++r, grad += n, in += n, out += n)
    write_each(out, n, [=](int64_t i, auto read) __attribute__((always_inline)) {
      return read(a + i) * read(grad + i) + read(b + i) * read(in + i) + read(c + i);
    });
}

template <class T>
void layer(const T* x, T mean, T rstd, const T* weight, const T* bias, T* y, int64_t n) {
  if (weight && bias) {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) y[i] = (x[i] - mean) * rstd * weight[i] + bias[i];
  } else if (weight) {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) y[i] = (x[i] - mean) * rstd * weight[i];
  } else {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) y[i] = (x[i] - mean) * rstd;
    if (bias)
#pragma omp simd
      for (int64_t i = 0; i < n; ++i) y[i] += bias[i];
  }
}

// grad_input = rstd (h - mean(h) - z mean(h z)) with h = g weight and z = (x - mean) rstd, where
// mean(h) is there for the mean of x.
template <class T>
void layer_grad(const T* g, const T* x, T mean, T rstd, bool centered, const T* weight,
                T* grad_input, T* grad_weight, T* grad_bias, int64_t n) {
  T sum_h = 0, sum_hz = 0;
  if (weight && grad_weight && grad_bias) {  // as training does: in one pass, for its speed
#pragma omp simd reduction(+ : sum_h, sum_hz)
    for (int64_t i = 0; i < n; ++i) {
      T z = (x[i] - mean) * rstd, h = g[i] * weight[i];
      sum_h += h;
      sum_hz += h * z;
      grad_weight[i] += g[i] * z;
      grad_bias[i] += g[i];
    }
    grad_weight = grad_bias = nullptr;
  } else if (weight) {
#pragma omp simd reduction(+ : sum_h, sum_hz)
    for (int64_t i = 0; i < n; ++i) {
      T h = g[i] * weight[i];
      sum_h += h;
      sum_hz += h * ((x[i] - mean) * rstd);
    }
  } else {
#pragma omp simd reduction(+ : sum_h, sum_hz)
    for (int64_t i = 0; i < n; ++i) {
      sum_h += g[i];
      sum_hz += g[i] * ((x[i] - mean) * rstd);
    }
  }
  T mean_h = centered ? sum_h / T(n) : T(0), mean_hz = sum_hz / T(n);
  if (weight) {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i)
      grad_input[i] = rstd * (g[i] * weight[i] - mean_h - (x[i] - mean) * rstd * mean_hz);
  } else {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i)
      grad_input[i] = rstd * (g[i] - mean_h - (x[i] - mean) * rstd * mean_hz);
  }
  if (grad_weight)
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) grad_weight[i] += g[i] * ((x[i] - mean) * rstd);
  if (grad_bias)
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) grad_bias[i] += g[i];
}

template <class T>
constexpr NormLoopsOf<T> loops_of() {
  return {run_sum<T>,        squares<T>,          grad_sums<T>, column_sum<T>,
          column_moments<T>, column_grad_sums<T>, layer<T>,     layer_grad<T>};
}
template <class M>
constexpr ChangeLoops<Wide<M>> changes_of() {
  return {affine<M>, combine<M>, column_affine<M>, column_combine<M>};
}

}  // namespace

extern const NormLoops norm_loops;
constexpr NormLoops norm_loops = {loops_of<float>(),  loops_of<double>(),     changes_of<float>(),
                                  changes_of<Half>(), changes_of<BFloat16>(), changes_of<double>()};

}  // namespace rushlight::RUSHLIGHT_ISA_NAMESPACE
