// Owns the unscaling of gradients on CUDA: one launch multiplies many of them, and notes whether
// one of their elements is infinite or NaN.
#include "core/ops/foreach/foreach.cuh"

namespace rushlight::on_cuda {

extern "C" __global__ void unscale(ManyTensors many, const float* factor, float* found) {
  int t = tensor_of_block(many);
  auto [begin, end, aligned] = Chunk(many, t);
  Number by = Number(*factor);
  bool wrong = false;
  for (int64_t i = begin + int64_t(threadIdx.x) * kVector; i < end;
       i += int64_t(blockDim.x) * kVector) {
    Number x[kVector];
    load(many.arrays[0][t], i, end, aligned, x);
#pragma unroll
    for (int e = 0; e < kVector; ++e) {
      wrong |= x[e] - x[e] != 0;
      x[e] *= by;
    }
    store(many.arrays[0][t], i, end, aligned, x);
  }
  if (wrong) *found = 1;  // all who write, write the same
}

}  // namespace rushlight::on_cuda
