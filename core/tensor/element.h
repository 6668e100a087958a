// Owns the reading of one element of memory as a number.
#pragma once

#include <complex>

#include "core/base/dtype.h"
#include "core/base/half.h"
#include "core/base/scalar.h"

namespace rushlight {

template <class T>
Scalar number_in(const void* element) {
  // Any byte but 0 is true, as in convert.h.
  if constexpr (std::is_same_v<T, bool>) {
    return *static_cast<const uint8_t*>(element) != 0;
  } else {
    T value = *static_cast<const T*>(element);
    if constexpr (requires { to_float(value); }) return to_float(value);
    else if constexpr (std::is_same_v<T, uint64_t>) return value;
    else if constexpr (std::is_integral_v<T>) return int64_t(value);
    else if constexpr (std::is_floating_point_v<T>) return double(value);
    else return std::complex<double>(value);
  }
}

}  // namespace rushlight
