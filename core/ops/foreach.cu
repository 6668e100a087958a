// Owns the steps of SGD and Adam on CUDA: one launch updates many parameters.
//   METHOD, STEP   Sgd and SgdStep, or Adam and AdamStep
//   ITEM           the dtype of parameters, gradients and state; half types compute in float
#include "core/tensor/formula.cuh"

#include "core/ops/foreach_step.h"
#include "core/tensor/convert.h"

namespace rushlight::on_cuda {

template <class T>
struct ComputeOf {
  using type = float;
};
template <>
struct ComputeOf<double> {
  using type = double;
};
using Number = ComputeOf<ITEM>::type;

constexpr int kVector = 16 / sizeof(ITEM);
struct alignas(16) Vector {
  ITEM at[kVector];
};

// The tensor that the block works on: the last one that begins at or before it.
int tensor_of_block(const ManyTensors& many) {
  int low = 0, high = many.count;
  while (high - low > 1) {
    int middle = (low + high) / 2;
    if (many.first_block[middle] <= blockIdx.x) low = middle;
    else high = middle;
  }
  return low;
}

void load(const void* array, int64_t first, int64_t end, bool aligned, Number (&numbers)[kVector]) {
  const ITEM* from = static_cast<const ITEM*>(array) + first;
  if (aligned && first + kVector <= end) {
    Vector vector = *reinterpret_cast<const Vector*>(from);
#pragma unroll
    for (int e = 0; e < kVector; ++e) numbers[e] = convert<Number>(vector.at[e]);
    return;
  }
#pragma unroll
  for (int e = 0; e < kVector; ++e)
    numbers[e] = first + e < end ? convert<Number>(from[e]) : Number(0);
}

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
  bool aligned = many.is_aligned >> t & 1;
  int64_t begin = int64_t(blockIdx.x - many.first_block[t]) * kChunk;
  int64_t end = begin + kChunk < many.numel[t] ? begin + kChunk : many.numel[t];
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
