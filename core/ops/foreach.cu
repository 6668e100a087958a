// Owns the steps of SGD and Adam on CUDA: one launch updates many parameters.
//   METHOD, STEP   Sgd and SgdStep, or Adam and AdamStep
//   ITEM           the dtype of parameters, gradients and state; half types compute in float
#include "core/ops/foreach.cuh"
#include "core/ops/foreach_step.h"

namespace rushlight::on_cuda {

void store(void* array, int64_t first, int64_t end, bool aligned,
           const Number (&numbers)[kVector]) {
  ITEM* to = static_cast<ITEM*>(array) + first;
  if (aligned && first + kVector <= end) {
    Vector vector;
#pragma unroll
    for (int e = 0; e < kVector; ++e) vector.at[e] = convert<ITEM>(numbers[e]);
    *reinterpret_cast<Vector*>(to) = vector;
    return;
  }
#pragma unroll
  for (int e = 0; e < kVector; ++e)
    if (first + e < end) to[e] = convert<ITEM>(numbers[e]);
}

extern "C" __global__ void step(ManyTensors many, STEP numbers) {
  constexpr int kGradients = 1;  // the array that is only read
  const METHOD<Number> method(numbers);
  int t = tensor_of_block(many);
  auto [begin, end, aligned] = Chunk(many, t);
  for (int64_t i = begin + int64_t(threadIdx.x) * kVector; i < end;
       i += int64_t(blockDim.x) * kVector) {
    Number x[kMaxStepArrays][kVector];
#pragma unroll
    for (int k = 0; k < kMaxStepArrays; ++k)
      if (many.arrays[k][t]) load(many.arrays[k][t], i, end, aligned, x[k]);
#pragma unroll
    for (int e = 0; e < kVector; ++e) method.update(x[0], x[1], x[2], x[3], x[4], e);
#pragma unroll
    for (int k = 0; k < kMaxStepArrays; ++k)
      if (k != kGradients && many.arrays[k][t]) store(many.arrays[k][t], i, end, aligned, x[k]);
  }
}

}  // namespace rushlight::on_cuda
