// Owns how the host side of CUDA kernels names dtypes.
#pragma once

#include "core/base/dtype.h"

namespace rushlight {

// The type of a dtype's elements in device text.
inline const char* device_type(DType dtype) {
  constexpr const char* kNames[] = {
      "bool",    "uint8_t",        "int8_t",          "uint16_t",   "int16_t",   "uint32_t",
      "int32_t", "uint64_t",       "int64_t",         "Half",       "BFloat16",  "float",
      "double",  "Complex<float>", "Complex<double>", "Float8E4M3", "Float8E5M2"};
  static_assert(std::size(kNames) == kDTypeCount);
  return kNames[int(dtype)];
}

}  // namespace rushlight
