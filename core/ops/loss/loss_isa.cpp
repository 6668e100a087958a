// Owns the inner loops of cross_entropy.
#include "core/ops/loss/loss_loops.h"
#include "core/ops/softmax/softmax_rows.h"
#include "core/tensor/lanes.h"

namespace rushlight::RUSHLIGHT_ISA_NAMESPACE {
namespace {

static_assert(kCrossEntropyRows <= kRowsTogether);

template <class T>
void normalize(const T* x, int64_t rows, int64_t n, T* largest, T* log_total) {
  T shift[kRowsTogether], total[kRowsTogether];
  log_totals(x, rows, n, shift, total);
  for (int64_t r = 0; r < rows; ++r) {
    largest[r] = shift[r];
    log_total[r] = total[r];
  }
}

template <class T>
T smoothed(const T* x, const T* weight, int64_t n, T largest, T log_total) {
  if (!weight) return sum<T>(n, [=](int64_t i) { return log_total - (x[i] - largest); });
  return sum<T>(n, [=](int64_t i) { return weight[i] * (log_total - (x[i] - largest)); });
}

template <class T>
void gradient(const T* x, const T* weight, int64_t n, T largest, T log_total, T scale, T share,
              T* grad) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i)
    grad[i] = scale * exp_nonpositive((x[i] - largest) - log_total) - share;
  if (!weight || share == 0) return;
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) grad[i] = grad[i] + share * (T(1) - weight[i]);
}

template <class T>
constexpr CrossEntropyLoopsOf<T> make_loops() {
  return {&normalize<T>, &smoothed<T>, &gradient<T>};
}

}  // namespace

extern const CrossEntropyLoops cross_entropy_loops;
constexpr CrossEntropyLoops cross_entropy_loops = {make_loops<float>(), make_loops<double>()};

}  // namespace rushlight::RUSHLIGHT_ISA_NAMESPACE
