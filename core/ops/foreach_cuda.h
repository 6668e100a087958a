// Owns what the steps of the optimizers hand to a device: memory, in place of tensors.
#pragma once

#include <span>

#include "core/base/dtype.h"
#include "core/device/device.h"
#include "core/ops/foreach_args.h"

namespace rushlight {

// A parameter with its gradient and state: arrays of one dtype and memory order on one device.
struct StepItem {
  DType dtype;  // real: a complex number is two elements
  Device device;
  int64_t begin, end;  // its place in the range of all elements
  char* arrays[kMaxStepArrays] = {};
};

// One step for all items, which lie on CUDA.
void step_cuda(std::span<const StepItem> items, const SgdStep& step);
void step_cuda(std::span<const StepItem> items, const AdamStep& step);

}  // namespace rushlight
