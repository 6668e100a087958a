// Owns the loops over the elements of many tensors: the steps of the optimizers, each one pass over
// parameter, gradient and state, and the unscaling of gradients.
#include "core/ops/foreach/foreach_loops.h"
#include "core/tensor/formula.h"

#include "core/ops/foreach/foreach_step.h"

namespace rushlight::RUSHLIGHT_ISA_NAMESPACE {
namespace {

template <class T, template <class, class> class Method, class Step>
void step_elements(const void* step, void* const* arrays, int64_t n) {
  const Method<T, T> method(*static_cast<const Step*>(step));
  T* param = static_cast<T*>(arrays[0]);
  const T* grad = static_cast<const T*>(arrays[1]);
  T* first = static_cast<T*>(arrays[2]);
  T* second = static_cast<T*>(arrays[3]);
  T* third = static_cast<T*>(arrays[4]);
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) method.update(param, grad, first, second, third, i);
}

template <class T>
bool unscale_elements(void* array, double factor, int64_t n) {
  T* values = static_cast<T*>(array);
  const T by = T(factor);
  T wrong = 0;  // as a number, which vectors of T can hold
#pragma omp simd reduction(max : wrong)
  for (int64_t i = 0; i < n; ++i) {
    T value = values[i], distance = value - value;  // 0, or NaN
    wrong = wrong > (distance == 0 ? T(0) : T(1)) ? wrong : (distance == 0 ? T(0) : T(1));
    values[i] = value * by;
  }
  return wrong != 0;
}

}  // namespace

extern const StepLoops step_loops;
constexpr StepLoops step_loops = {{
#define RUSHLIGHT_LOOPS(name) \
  {&step_elements<float, name, name##Step>, &step_elements<double, name, name##Step>},
                                      RUSHLIGHT_FOR_EACH_METHOD(RUSHLIGHT_LOOPS)
#undef RUSHLIGHT_LOOPS
                                  },
                                  {&unscale_elements<float>, &unscale_elements<double>}};

}  // namespace rushlight::RUSHLIGHT_ISA_NAMESPACE
