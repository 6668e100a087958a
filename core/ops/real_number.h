// Owns the reading of a number that an op needs as a real one.
#pragma once

#include "core/base/error.h"
#include "core/base/scalar.h"

namespace rushlight {

// Refuses complex numbers, rather than dropping their imaginary part.
inline double real_number(const Scalar& number, const char* name) {
  CHECK(!number.is_complex(), name,
        " must be a real number, but is complex. Pass its real part or its magnitude.");
  return number.to<double>();
}

}  // namespace rushlight
