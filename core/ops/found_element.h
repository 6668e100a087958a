// Owns which elements count as the one that was found by its value, such as an extreme or a median:
// they share its gradient.
#pragma once

#include "core/ops/ops.h"

namespace rushlight {

// Where input equals `found`, or is NaN as it is.
inline Tensor equals_found(const Tensor& input, const Tensor& found) {
  return (input == found) | (isnan(input) & isnan(found));
}

}  // namespace rushlight
