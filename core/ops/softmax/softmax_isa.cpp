// Owns the inner loops of softmax and log_softmax. The result may be the input's own memory.
#include "core/ops/softmax/softmax_loops.h"
#include "core/tensor/lanes.h"

namespace rushlight::RUSHLIGHT_ISA_NAMESPACE {
namespace {

// NaN need not win here: it makes the sum NaN.
template <class T>
T larger(T a, T b) {
  return a > b ? a : b;
}

template <class T>
T largest(const T* x, int64_t n) {
  return fold<T>(n, [=](int64_t i) { return x[i]; }, [](T a, T b) { return larger(a, b); });
}

template <class T>
void softmax_along(const T* x, T* y, int64_t rows, int64_t n) {
  for (int64_t r = 0; r < rows; ++r, x += n, y += n) {
    const T shift = largest(x, n);
    const T total = sum<T>(n, [=](int64_t i) { return y[i] = exp_nonpositive(x[i] - shift); });
    const T scale = T(1) / total;
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) y[i] = y[i] * scale;
  }
}

// Short rows share the vectors of log; all lanes are always there, so that digits never depend on
// how many rows there are.
template <class T>
void log_softmax_along(const T* x, T* y, int64_t rows, int64_t n) {
  constexpr int64_t kTogether = 16, kRun = 8192;
  const int64_t most = n * kTogether <= kRun ? kTogether : 1;
  for (int64_t r = 0; r < rows; r += most, x += most * n, y += most * n) {
    const int64_t count = rows - r < most ? rows - r : most;
    T shift[kTogether], total[kTogether];
    for (T& value : total) value = T(1);  // whose log is cheap
    for (int64_t k = 0; k < count; ++k) {
      const T* row = x + k * n;
      const T above = shift[k] = largest(row, n);
      total[k] = sum<T>(n, [=](int64_t i) { return exp_nonpositive(row[i] - above); });
    }
#pragma omp simd
    for (int64_t k = 0; k < kTogether; ++k) total[k] = log(total[k]);
    for (int64_t k = 0; k < count; ++k) {
#pragma omp simd
      for (int64_t i = k * n; i < (k + 1) * n; ++i) y[i] = (x[i] - shift[k]) - total[k];
    }
  }
}

template <class T>
void softmax_along_grad(const T* g, const T* y, T* grad, int64_t rows, int64_t n) {
  for (int64_t r = 0; r < rows; ++r, g += n, y += n, grad += n) {
    const T dot = sum<T>(n, [=](int64_t i) { return g[i] * y[i]; });
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) grad[i] = y[i] * (g[i] - dot);
  }
}

template <class T>
void log_softmax_along_grad(const T* g, const T* y, T* grad, int64_t rows, int64_t n) {
  for (int64_t r = 0; r < rows; ++r, g += n, y += n, grad += n) {
    const T total = sum<T>(n, [=](int64_t i) { return g[i]; });
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) grad[i] = g[i] - exp_nonpositive(y[i]) * total;
  }
}

// Calls f(j, offset of element (r, j)) for all elements, row by row.
template <class F>
[[gnu::always_inline]] inline void for_each(int64_t stride, int64_t rows, int64_t columns,
                                            const F& f) {
  for (int64_t r = 0; r < rows; ++r) {
#pragma omp simd
    for (int64_t j = 0; j < columns; ++j) f(j, r * stride + j);
  }
}

template <class T>
void largest_of_columns(const T* x, int64_t stride, int64_t rows, int64_t columns, T* out) {
  for (int64_t j = 0; j < columns; ++j) out[j] = x[j];
  for_each(stride, rows, columns, [=](int64_t j, int64_t at) { out[j] = larger(out[j], x[at]); });
}

template <class T>
void fill(T* out, int64_t n, T value) {
  for (int64_t j = 0; j < n; ++j) out[j] = value;
}

template <class T>
void softmax_down(const T* x, T* y, int64_t stride, int64_t rows, int64_t columns, T* scratch) {
  T *shift = scratch, *total = scratch + columns;
  largest_of_columns(x, stride, rows, columns, shift);
  fill(total, columns, T(0));
  for_each(stride, rows, columns, [=](int64_t j, int64_t at) {
    y[at] = exp_nonpositive(x[at] - shift[j]);
    total[j] = total[j] + y[at];
  });
  for (int64_t j = 0; j < columns; ++j) total[j] = T(1) / total[j];
  for_each(stride, rows, columns, [=](int64_t j, int64_t at) { y[at] = y[at] * total[j]; });
}

template <class T>
void log_softmax_down(const T* x, T* y, int64_t stride, int64_t rows, int64_t columns, T* scratch) {
  T *shift = scratch, *total = scratch + columns;
  largest_of_columns(x, stride, rows, columns, shift);
  fill(total, columns, T(0));
  for_each(stride, rows, columns,
           [=](int64_t j, int64_t at) { total[j] = total[j] + exp_nonpositive(x[at] - shift[j]); });
  for (int64_t j = 0; j < columns; ++j) total[j] = log(total[j]);
  for_each(stride, rows, columns,
           [=](int64_t j, int64_t at) { y[at] = (x[at] - shift[j]) - total[j]; });
}

template <class T>
void softmax_down_grad(const T* g, const T* y, T* grad, int64_t stride, int64_t rows,
                       int64_t columns, T* scratch) {
  fill(scratch, columns, T(0));
  for_each(stride, rows, columns,
           [=](int64_t j, int64_t at) { scratch[j] = scratch[j] + g[at] * y[at]; });
  for_each(stride, rows, columns,
           [=](int64_t j, int64_t at) { grad[at] = y[at] * (g[at] - scratch[j]); });
}

template <class T>
void log_softmax_down_grad(const T* g, const T* y, T* grad, int64_t stride, int64_t rows,
                           int64_t columns, T* scratch) {
  fill(scratch, columns, T(0));
  for_each(stride, rows, columns, [=](int64_t j, int64_t at) { scratch[j] = scratch[j] + g[at]; });
  for_each(stride, rows, columns,
           [=](int64_t j, int64_t at) { grad[at] = g[at] - exp_nonpositive(y[at]) * scratch[j]; });
}

template <class T>
constexpr SoftmaxLoopsOf<T> make_loops() {
  return {&softmax_along<T>,          &log_softmax_along<T>,    &softmax_along_grad<T>,
          &log_softmax_along_grad<T>, &softmax_down<T>,         &log_softmax_down<T>,
          &softmax_down_grad<T>,      &log_softmax_down_grad<T>};
}

}  // namespace

extern const SoftmaxLoops softmax_loops;
constexpr SoftmaxLoops softmax_loops = {make_loops<float>(), make_loops<double>()};

}  // namespace rushlight::RUSHLIGHT_ISA_NAMESPACE
