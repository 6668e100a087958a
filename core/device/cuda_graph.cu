// Owns the kernel that tells the draws of a CUDA graph where their random numbers begin.
#include "core/device/device_types.cuh"

namespace rushlight::on_cuda {

// See CapturedDraw in cuda_capture.h.
extern "C" __global__ void set_start(uint64_t* start, uint64_t seed, uint64_t counter) {
  start[0] = seed;
  start[1] = counter;
}

}  // namespace rushlight::on_cuda
