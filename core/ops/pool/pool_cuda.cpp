// Defines the kernels of pooling on CUDA.
#include "core/device/cuda_kernel_map.h"
#include "core/ops/pool/pool.h"
#include "core/tensor/cuda_types.h"
#include "core/tensor/pointwise.h"

namespace rushlight {

extern const char* const pool_cu;

namespace {

using cuda::CudaKernel, cuda::CudaModule;

constexpr int64_t kThreads = 256;  // of a block

struct Kernels {
  CudaModule module;
  CudaKernel max{module, "max_pool"}, max_backward{module, "max_pool_backward"};
  CudaKernel avg{module, "avg_pool"}, avg_backward{module, "avg_pool_backward"};

  explicit Kernels(DType dtype)
      : module("pool<" + std::string(device_type(dtype)) + ">", pool_cu,
               cuda::define("ELEMENT", device_type(dtype)) +
                   cuda::define("SUM", device_type(dtype_of_compute(compute_of(dtype))))) {}
};

cuda::CudaKernelFamily family([] {
  for (DType dtype : {DType::float32, DType::float64, DType::float16, DType::bfloat16})
    cuda::kernels_of<Kernels>(dtype);
});

PoolVolumes volumes_of(const Tensor& tensor) {
  int64_t dims = tensor.dim();
  return {tensor.address(),
          {tensor.stride(0), tensor.stride(1), dims == 5 ? tensor.stride(2) : 0,
           tensor.stride(dims - 2), tensor.stride(dims - 1)}};
}

// Starts a thread for each element of a result. `input` and `output` are operands or results.
void launch(CudaKernel Kernels::* kernel, const PoolWindows3d& windows, PoolDivisor divisor,
            const Tensor& input, const Tensor& output, const Tensor& indices,
            const Tensor& result) {
  PoolArgs args{.input = volumes_of(input),
                .output = volumes_of(output),
                .indices = indices.defined() ? volumes_of(indices) : PoolVolumes{},
                .windows = {windows[0], windows[1], windows[2]},
                .divisor = divisor,
                .batch = result.size(0),
                .channels = result.size(1),
                .channels_last = is_channels_last(result)};
  cuda::DeviceGuard guard(result.device().index);
  Kernels& kernels = cuda::kernels_of<Kernels>(result.dtype());
  (kernels.*kernel).launch({cuda::blocks_for(result.numel(), kThreads)}, {kThreads}, 0, args);
}

}  // namespace

void max_pool_on_cuda(const PoolWindows3d& windows, const Tensor& input, const Tensor& values,
                      const Tensor& indices) {
  launch(&Kernels::max, windows, {}, input, values, indices, values);
}

void max_pool_backward_on_cuda(const PoolWindows3d& windows, const Tensor& grad,
                               const Tensor& indices, const Tensor& result) {
  launch(&Kernels::max_backward, windows, {}, result, grad, indices, result);
}

void avg_pool_on_cuda(const PoolWindows3d& windows, PoolDivisor divisor, const Tensor& input,
                      const Tensor& means) {
  launch(&Kernels::avg, windows, divisor, input, means, {}, means);
}

void avg_pool_backward_on_cuda(const PoolWindows3d& windows, PoolDivisor divisor,
                               const Tensor& grad, const Tensor& result) {
  launch(&Kernels::avg_backward, windows, divisor, result, grad, {}, result);
}

}  // namespace rushlight
