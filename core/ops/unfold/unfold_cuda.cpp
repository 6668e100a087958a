// Owns the launches of unfold and fold on CUDA, see unfold.cu.
#include "core/device/cuda.h"
#include "core/device/cuda_kernel_map.h"
#include "core/ops/unfold/unfold.h"
#include "core/tensor/cuda_types.h"

namespace rushlight {

extern const char* const unfold_cu;

namespace {

constexpr unsigned kThreads = 256;

struct Kernels {
  cuda::CudaModule module;
  cuda::CudaKernel unfold{module, "unfold"}, fold{module, "fold"};

  explicit Kernels(DType dtype)
      : module(std::string("unfold<") + device_type(dtype) + ">", unfold_cu,
               cuda::define("ITEM", device_type(dtype)) +
                   cuda::define("SUM", is_half(dtype) ? "float" : device_type(dtype))) {}
};

cuda::CudaKernelFamily family([] {
  for (DType dtype : {DType::float32, DType::float64, DType::float16, DType::bfloat16})
    cuda::kernels_of<Kernels>(dtype);
});

void launch(cuda::CudaKernel Kernels::* kernel, const UnfoldWindows (&windows)[2],
            const Tensor& images, const Tensor& input, const Tensor& result) {
  UnfoldArgs args{windows[0], windows[1], images.size(0) * images.size(1), input.address(),
                  result.address()};
  cuda::DeviceGuard guard(result.device().index);
  (cuda::kernels_of<Kernels>(input.dtype()).*kernel)
      .launch({cuda::blocks_for(result.numel(), kThreads)}, {kThreads}, 0, args);
}

}  // namespace

void unfold_on_cuda(const UnfoldWindows (&windows)[2], const Tensor& images,
                    const Tensor& columns) {
  launch(&Kernels::unfold, windows, images, images, columns);
}

void fold_on_cuda(const UnfoldWindows (&windows)[2], const Tensor& columns, const Tensor& images) {
  launch(&Kernels::fold, windows, images, columns, images);
}

}  // namespace rushlight
