// Owns the sum over the threads of a block that come before each.
#pragma once

#include "core/device/device_types.cuh"

namespace rushlight::on_cuda {

// `total` becomes the sum over all threads. All threads of the block come here, in whole warps.
template <class T>
inline T sum_before(T value, T& total) {
  __shared__ T warp_sums[32];
  unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
  T sum = value;
  for (unsigned step = 1; step < 32; step *= 2) {
    T other = __shfl_up_sync(~0u, sum, step);
    if (lane >= step) sum += other;
  }
  if (lane == 31) warp_sums[warp] = sum;
  __syncthreads();
  T before = 0;
  total = 0;
  for (unsigned w = 0; w < warps; ++w) {
    if (w < warp) before += warp_sums[w];
    total += warp_sums[w];
  }
  __syncthreads();
  return before + sum - value;
}

}  // namespace rushlight::on_cuda
