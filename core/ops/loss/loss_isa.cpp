// Owns the inner loops of cross_entropy, one row of logits at a time.
#include "core/ops/loss/loss_loops.h"
#include "core/tensor/lanes.h"

namespace rushlight::RUSHLIGHT_ISA_NAMESPACE {
namespace {

template <class T>
void normalize(const T* x, int64_t n, T* largest, T* log_total) {
  // NaN need not win here: it makes the sum NaN.
  const T shift =
      fold<T>(n, [=](int64_t i) { return x[i]; }, [](T a, T b) { return a > b ? a : b; });
  *largest = shift;
  *log_total = log(sum<T>(n, [=](int64_t i) { return exp_nonpositive(x[i] - shift); }));
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
