// Owns the question whether ops can go by what the elements of a tensor are.
#pragma once

#include "core/tensor/tensor.h"

namespace rushlight {

// On meta there are no elements, and those of a wrapper are its class's business.
inline bool has_values(const Tensor& t) {
  return !t.device().is_meta() && !(t.impl()->detours & kIsWrapper);
}

}  // namespace rushlight
