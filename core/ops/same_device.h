// Owns the refusal of operands that lie on two devices. Operands of formulas, where 0-d tensors of
// the CPU go with any, have common_device.
#pragma once

#include "core/base/error.h"
#include "core/tensor/tensor.h"

namespace rushlight {

// An operand that is not given goes with any.
inline void check_same_device(const Tensor& input, const Tensor& other, const char* name,
                              const char* input_name = "input") {
  CHECK(!other.defined() || other.device() == input.device(),
        "Expected all tensors to be on the same device, but ", input_name, " is on ",
        input.device(), " and ", name, " on ", other.device(), ". Move one with .to(device).");
}

}  // namespace rushlight
