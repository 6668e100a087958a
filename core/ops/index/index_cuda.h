// Owns what gather and scatter share with index tensors on CUDA.
#pragma once

#include "core/device/cuda_kernel.h"
#include "core/ops/index/index.h"
#include "core/ops/index/index_args.h"

namespace rushlight {

// Kernels that move elements of `item` bytes.
struct MoveKernels {
  cuda::CudaModule module;
  cuda::CudaKernel read_picked{module, "read_picked"}, write_picked{module, "write_picked"},
      gather{module, "gather"};

  explicit MoveKernels(int64_t item);
};

IndexLayout index_layout(const Shape& sizes, const Shape& strides);
// Where the elements of self that a contiguous index names along dim lie.
Tensor offsets_along(const Tensor& self, size_t dim, const Tensor& index);

}  // namespace rushlight
