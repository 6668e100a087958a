// Owns how numbers by channel, of shape (C), meet an input (N, C, *) in ops.
#pragma once

#include "core/ops/ops.h"

namespace rushlight {

// (channels) as (1, channels, 1, ...).
inline Tensor by_channel(const Tensor& t, int64_t ndim) {
  Shape sizes(size_t(ndim), 1);
  sizes[1] = t.numel();
  return reshape(t, sizes);
}
// The dims that sums over everything but channels reduce.
inline Shape all_but_channel(int64_t ndim) {
  Shape dims{0};
  for (int64_t d = 2; d < ndim; ++d) dims.push_back(d);
  return dims;
}
inline Tensor scaled_by_channel(Tensor z, const Tensor& weight, const Tensor& bias) {
  if (weight.defined()) z = z * by_channel(weight, z.dim());
  return bias.defined() ? z + by_channel(bias, z.dim()) : z;
}

}  // namespace rushlight
