// Owns where tensors are made without a device: the CPU until another is set in this thread.
//
// Read by the ops that make tensors from sizes and numbers; all others know where to put results.
#pragma once

#include <optional>

#include "core/tensor/tensor.h"

namespace rushlight {

Device default_device();
void set_default_device(Device device);

// Uninitialized; of the default dtype and on the default device where none is named.
Tensor fresh(ShapeRef size, std::optional<DType> dtype, std::optional<Device> device);

}  // namespace rushlight
