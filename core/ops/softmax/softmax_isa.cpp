// Owns the inner loops of softmax and log_softmax. The result may be the input's own memory.
#include "core/ops/softmax/softmax_loops.h"
#include "core/ops/softmax/softmax_rows.h"
#include "core/tensor/lanes.h"

namespace rushlight::RUSHLIGHT_ISA_NAMESPACE {
namespace {

template <class T>
[[gnu::always_inline]] inline void scale_row(const T* from, T total, T* to, int64_t n) {
  const T factor = T(1) / total;
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) to[i] = from[i] * factor;
}

template <class T>
void softmax_of_short_rows(const T* x, T* y, int64_t rows, int64_t n) {
  for_each_group(rows, kWidth<T>, [&](int64_t first, int64_t count) {
    T largest[kWidth<T>], total[kWidth<T>];
    T* out = y + first * n;
    WholeRows<T> whole(x + first * n, count, n);
    T* exponentials = whole.results(out);
    sum_exponentials_of<true>(whole, count, largest, total, exponentials);
    for (int64_t r = 0; r < count; ++r)
      scale_row(exponentials + r * whole.width, total[r], out + r * n, n);
  });
}

template <class T>
void softmax_along(const T* x, T* y, int64_t rows, int64_t n) {
  if (n < kShortRow) return softmax_of_short_rows(x, y, rows, n);
  for (int64_t r = 0; r < rows; ++r, x += n, y += n) {
    const T shift = fold<T>(n, [=](int64_t i) { return x[i]; }, Larger());
    scale_row(y, sum<T>(n, [=](int64_t i) { return y[i] = exp_nonpositive(x[i] - shift); }), y, n);
  }
}

template <class T>
void log_softmax_along(const T* x, T* y, int64_t rows, int64_t n) {
  constexpr int64_t kRun = 8192;  // elements that stay in the L1 cache until they are read again
  const int64_t most = n * kRowsTogether <= kRun ? kRowsTogether : 1;
  T shift[kRowsTogether], total[kRowsTogether];
  for_each_group(rows, most, [&](int64_t first, int64_t count) {
    const T* in = x + first * n;
    T* out = y + first * n;
    log_totals(in, count, n, shift, total);
    for (int64_t r = 0; r < count; ++r, in += n, out += n) {
#pragma omp simd
      for (int64_t i = 0; i < n; ++i) out[i] = (in[i] - shift[r]) - total[r];
    }
  });
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
  for_each(stride, rows, columns, [=](int64_t j, int64_t at) { out[j] = Larger()(out[j], x[at]); });
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
