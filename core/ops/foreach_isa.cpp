// Owns the update loops of SGD and Adam: one pass over parameter, gradient and state.
// The formulas, with their sources, are in rushlight/optim.
#include "core/ops/foreach_loops.h"
#include "core/tensor/formula.h"

namespace rushlight::RUSHLIGHT_ISA_NAMESPACE {
namespace {

template <class T>
void sgd(const SgdStep& step, void* const* arrays, int64_t n) {
  T* param = static_cast<T*>(arrays[0]);
  const T* grad = static_cast<const T*>(arrays[1]);
  T* buffer = static_cast<T*>(arrays[2]);
  T sign = step.maximize ? T(-1) : T(1), decay = T(step.weight_decay), lr = T(step.lr);
  T momentum = T(step.momentum), share = T(1 - step.dampening);
  bool decays = step.weight_decay != 0, keeps = step.momentum != 0;
  bool nesterov = step.nesterov, first = step.first;
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    T g = sign * grad[i];
    if (decays) g += decay * param[i];
    if (keeps) {
      T running = first ? g : momentum * buffer[i] + share * g;
      buffer[i] = running;
      g = nesterov ? g + momentum * running : running;
    }
    param[i] -= lr * g;
  }
}

template <class T>
void adam(const AdamStep& step, void* const* arrays, int64_t n) {
  T* param = static_cast<T*>(arrays[0]);
  const T* grad = static_cast<const T*>(arrays[1]);
  T* mean = static_cast<T*>(arrays[2]);
  T* square = static_cast<T*>(arrays[3]);
  T* largest = static_cast<T*>(arrays[4]);
  T sign = step.maximize ? T(-1) : T(1), eps = T(step.eps);
  bool decays = step.weight_decay != 0 && !step.decoupled, amsgrad = step.amsgrad;
  T decay = T(step.weight_decay);
  T shrink = step.decoupled ? T(1 - step.lr * step.weight_decay) : T(1);
  T beta1 = T(step.beta1), rest1 = T(1 - step.beta1);
  T beta2 = T(step.beta2), rest2 = T(1 - step.beta2);
  T rate = T(step.lr / step.correction1);
  T root = T(sqrt(step.correction2));
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    T g = sign * grad[i], p = param[i] * shrink;
    if (decays) g += decay * p;
    T m = beta1 * mean[i] + rest1 * g;
    T v = beta2 * square[i] + rest2 * g * g;
    mean[i] = m;
    square[i] = v;
    if (amsgrad) {
      v = max(largest[i], v);
      largest[i] = v;
    }
    param[i] = p - rate * m / (sqrt(v) / root + eps);
  }
}

}  // namespace

extern const StepLoops step_loops;
constexpr StepLoops step_loops = {{&sgd<float>, &sgd<double>}, {&adam<float>, &adam<double>}};

}  // namespace rushlight::RUSHLIGHT_ISA_NAMESPACE
