// Owns the sequences of arange, linspace and logspace on CUDA.
//   SEQUENCE   Range or Spaced
//   RESULT     the dtype in memory, which is real
#include "core/tensor/formula.cuh"

#include "core/ops/random/generate_args.h"
#include "core/tensor/convert.h"

namespace rushlight::on_cuda {

constexpr bool kIsReal =
    kShort<RESULT> || detail::kSame<RESULT, float> || detail::kSame<RESULT, double>;

extern "C" __global__ void generate(RESULT* out, int64_t numel, SEQUENCE sequence) {
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= numel) return;
  if constexpr (kIsReal) out[i] = convert<RESULT>(sequence.real(i));
  else out[i] = convert<RESULT>(sequence.integer(i));
}

}  // namespace rushlight::on_cuda
