// Owns the refusal of gradients that nobody has derived.
#pragma once

#include <string_view>

#include "core/base/error.h"
#include "core/tensor/tensor.h"

namespace rushlight {

// What a gradient returns that does not exist: it raises instead.
inline Tensor no_derivative(std::string_view argument) {
  CHECK(false, ErrorKind::kNotImplemented, "the derivative with respect to ", argument,
        " is not implemented.");
  return {};
}

}  // namespace rushlight
