// Owns how the samples of vmap become more items of one batch, and those samples again.
#pragma once

#include "core/ops/ops.h"

namespace rushlight {

// (B, N, ...) as (B * N, ...).
inline Tensor joined_samples(const Tensor& samples) {
  return call<"flatten", Tensor>(samples, int64_t(0), int64_t(1));
}
// And back. Both numbers are needed: where there are no samples, the items do not tell the other.
inline Tensor parted_samples(const Tensor& items, int64_t samples, int64_t each) {
  Shape parts{samples, each};
  return call<"unflatten", Tensor>(items, int64_t(0), ShapeRef(parts));
}

}  // namespace rushlight
