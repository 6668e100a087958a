// Declares what updates many tensors in place, in one pass and one call.
#pragma once

#include "core/ops/foreach/foreach_cuda.h"

namespace rushlight {

// The parameters, their gradients, or one kind of state; a list that is not used holds nothing.
struct StepList {
  TensorList tensors;
  bool used = true;

  StepList(TensorList tensors, bool used = true)
      : tensors(used ? tensors : TensorList()), used(used) {}
};

// One step of an optimizer, in the name of `op`; `step` is the struct of the method. The lists:
// parameters, gradients, states in the order of the method's formula. Returns the number of
// elements. `scaling`, two float32 on any device of the parameters' kind, is what a gradient scaler
// asks for without waiting: gradients are divided by the first one, in place, and nothing changes
// unless the second one is 0.
int64_t update_all(const char* op, Method method, const void* step,
                   std::initializer_list<StepList> lists, const Tensor& scaling = {},
                   const Tensor& rates = {});

// The same out of differentiable ops.
int64_t update_recorded(Method method, const void* step, std::initializer_list<StepList> lists);

// Multiplies tensors by factor[0], and writes 1 into found[0] if one of their elements is infinite
// or NaN; those two are float32.
void unscale_all(const char* op, TensorList tensors, const Tensor& found, const Tensor& factor);

}  // namespace rushlight
