// Owns the names that dtypes have in device texts.
#pragma once

#include <iterator>

#include "core/base/dtype.h"

namespace rushlight {

inline const char* device_type(DType dtype) {
  constexpr const char* kNames[] = {"bool",    "uint8_t",        "int8_t",         "uint16_t",
                                    "int16_t", "uint32_t",       "int32_t",        "uint64_t",
                                    "int64_t", "Half",           "BFloat16",       "float",
                                    "double",  "Complex<float>", "Complex<double>"};
  static_assert(std::size(kNames) == kDTypeCount);
  return kNames[int(dtype)];
}

}  // namespace rushlight
