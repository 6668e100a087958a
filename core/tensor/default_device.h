// Owns where tensors are made without a device: the CPU until another is set in this thread.
//
// Read by the ops that make tensors from sizes and numbers; all others know where to put results.
#pragma once

#include "core/device/device.h"

namespace rushlight {

Device default_device();
void set_default_device(Device device);

}  // namespace rushlight
