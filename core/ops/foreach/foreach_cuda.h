// Owns the declarations of the ops on many tensors for CUDA.
#pragma once

#include "core/ops/foreach/foreach_args.h"
#include "core/tensor/tensor.h"

namespace rushlight {

// A parameter with its gradient and state: arrays of one dtype and memory order on one device.
struct StepItem {
  DType dtype;  // real: a complex number is two elements
  Device device;
  int64_t begin, end;  // its place in the range of all elements
  void* arrays[kMaxStepArrays] = {};
};

// One step for all items, which lie on CUDA; `step` is the struct of the method. For `scaling` see
// update_all.
void step_cuda(std::span<const StepItem> items, Method method, const void* step,
               const Tensor& scaling, const Tensor& rates);

// Multiplies the first array of each item; *found becomes 1 if an element was infinite or NaN. Both
// numbers lie on the device of the items.
void unscale_cuda(std::span<const StepItem> items, const float* factor, float* found);

// The norms of dense tensors of one floating dtype on one device, none of them empty.
std::vector<Tensor> norms_cuda(TensorList tensors, NormKind kind);

}  // namespace rushlight
