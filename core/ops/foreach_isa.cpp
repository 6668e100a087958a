// Owns the update loops of SGD and Adam: one pass over parameter, gradient and state.
#include "core/ops/foreach_loops.h"
#include "core/tensor/formula.h"

#include "core/ops/foreach_step.h"

namespace rushlight::RUSHLIGHT_ISA_NAMESPACE {
namespace {

template <class T, template <class> class Method, class Step>
void run(const Step& step, void* const* arrays, int64_t n) {
  const Method<T> method(step);
  T* param = static_cast<T*>(arrays[0]);
  const T* grad = static_cast<const T*>(arrays[1]);
  T* first = static_cast<T*>(arrays[2]);
  T* second = static_cast<T*>(arrays[3]);
  T* third = static_cast<T*>(arrays[4]);
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) method.update(param, grad, first, second, third, i);
}

}  // namespace

extern const StepLoops step_loops;
constexpr StepLoops step_loops = {{&run<float, Sgd>, &run<double, Sgd>},
                                  {&run<float, Adam>, &run<double, Adam>}};

}  // namespace rushlight::RUSHLIGHT_ISA_NAMESPACE
