// Owns the steps of the optimizers on CUDA: one launch updates many parameters.
//   METHOD, STEP   the formula of foreach_step.h and its numbers, such as Sgd and SgdStep
//   ITEM           the dtype of parameters, gradients and state; half types compute in float
#include "core/ops/foreach/foreach.cuh"
#include "core/ops/foreach/foreach_step.h"

namespace rushlight::on_cuda {

// What changes from step to step, from the device's memory: see update_all.
template <class Step>
void set_rates(Step&, const double*) {}
void set_rates(AdamStep& step, const double* rates) {
  step.rate = rates[0];
  step.root = rates[1];
  step.shrink = rates[2];
}

// `scaling` is null or what a gradient scaler asks for, `rates` null or what a CUDA graph computes,
// see update_all.
extern "C" __global__ void step(ManyTensors many, STEP numbers, const float* scaling,
                                const double* rates) {
  constexpr int kGradients = 1;  // the array that is only read unless it is scaled
  if (scaling && scaling[1] != 0) return;
  const bool scales = scaling && scaling[0] != 1;
  const Number factor = scales ? Number(1 / double(scaling[0])) : Number(1);
  if (rates) set_rates(numbers, rates);
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
    for (int e = 0; e < kVector; ++e) {
      if (scales) x[kGradients][e] *= factor;
      method.update(x[0], x[1], x[2], x[3], x[4], e);
    }
#pragma unroll
    for (int k = 0; k < kMaxStepArrays; ++k)
      if ((k != kGradients || scales) && many.arrays[k][t])
        store(many.arrays[k][t], i, end, aligned, x[k]);
  }
}

}  // namespace rushlight::on_cuda
