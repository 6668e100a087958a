// Owns bernoulli on CUDA. See Note [Random numbers].
#include "core/device/device_types.cuh"

#include "core/device/philox.h"
#include "core/ops/random/random_args.h"

namespace rushlight::on_cuda {

// Says in *bad whether a chance is none.
extern "C" __global__ void check_chances(const double* chances, int64_t numel, int* bad) {
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < numel && !(chances[i] >= 0 && chances[i] <= 1)) *bad = 1;
}

// A thread for each counter, which makes two numbers. `all` holds for all, where chances is null.
extern "C" __global__ void bernoulli(DrawPlace place, const double* chances, double all) {
  int64_t counter = int64_t(blockIdx.x) * blockDim.x + threadIdx.x, first = 2 * counter;
  if (first >= place.numel) return;
  Philox4 w = place.draw.words(uint64_t(counter));
  bool* out = static_cast<bool*>(place.out);
  out[first] = uniform_double(w.x, w.y) < (chances ? chances[first] : all);
  if (first + 1 < place.numel)
    out[first + 1] = uniform_double(w.z, w.w) < (chances ? chances[first + 1] : all);
}

}  // namespace rushlight::on_cuda
