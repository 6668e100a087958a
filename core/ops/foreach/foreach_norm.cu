// Owns the norms of many tensors on CUDA, in two passes: a number for each chunk, then one for each
// tensor. Sums are in double, so that squares neither overflow nor vanish.
#include "core/ops/foreach/foreach.cuh"

namespace rushlight::on_cuda {

double joined(double x, double y, NormKind kind) {
  return kind == NormKind::largest ? (y > x || y != y ? y : x) : x + y;
}

// Of all threads of the block, which has 256; thread 0 gets it.
double of_block(double x, NormKind kind) {
  __shared__ double warps[8];
  for (int lanes = 16; lanes > 0; lanes /= 2)
    x = joined(x, __shfl_xor_sync(0xffffffff, x, lanes), kind);
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = x;
  __syncthreads();
  if (threadIdx.x == 0)
    for (int w = 1; w < 8; ++w) x = joined(x, warps[w], kind);
  return x;
}

extern "C" __global__ void chunks(ManyTensors many, double* parts, NormKind kind) {
  int t = tensor_of_block(many);
  auto [begin, end, aligned] = Chunk(many, t);
  double part = 0;
  for (int64_t i = begin + int64_t(threadIdx.x) * kVector; i < end;
       i += int64_t(blockDim.x) * kVector) {
    Number x[kVector];
    load(many.arrays[0][t], i, end, aligned, x);
#pragma unroll
    for (int e = 0; e < kVector; ++e) {
      double value = double(x[e]);
      part = joined(part, kind == NormKind::euclidean ? value * value : ::fabs(value), kind);
    }
  }
  part = of_block(part, kind);
  if (threadIdx.x == 0) parts[blockIdx.x] = part;
}

// A block for each tensor.
extern "C" __global__ void norms(ManyTensors many, const double* parts, void* out, NormKind kind) {
  int t = int(blockIdx.x);
  int64_t count = (many.numel[t] + kChunk - 1) / kChunk;
  double norm = 0;
  for (int64_t i = threadIdx.x; i < count; i += blockDim.x)
    norm = joined(norm, parts[many.first_block[t] + i], kind);
  norm = of_block(norm, kind);
  if (threadIdx.x != 0) return;
  if (kind == NormKind::euclidean) norm = ::sqrt(norm);
  static_cast<ITEM*>(out)[t] = convert<ITEM>(norm);
}

}  // namespace rushlight::on_cuda
