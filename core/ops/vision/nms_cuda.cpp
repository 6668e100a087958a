// Defines nms on CUDA: the overlaps of all pairs there, then who removes whom on the host, which
// has to learn the number of boxes anyway.
#include "core/device/cuda.h"
#include "core/device/cuda_kernel_map.h"
#include "core/ops/operands.h"
#include "core/ops/vision/nms.h"
#include "core/tensor/cuda_types.h"

namespace rushlight {

extern const char* const nms_cu;

namespace {

constexpr unsigned kThreads = 128;

struct Kernels {
  cuda::CudaModule module;
  cuda::CudaKernel overlaps{module, "overlaps"};

  explicit Kernels(DType dtype)
      : module(std::string("nms<") + device_type(dtype) + ">", nms_cu,
               cuda::define("ITEM", device_type(dtype)) +
                   cuda::define("COMPUTE", device_type(compute_dtype(dtype)))) {}
};

cuda::CudaKernelFamily family([] {
  for (DType dtype : {DType::float32, DType::float16, DType::bfloat16})
    cuda::kernels_of<Kernels>(dtype);
});

}  // namespace

std::vector<char> kept_boxes_cuda(const Tensor& boxes, const Tensor& classes, double threshold) {
  int64_t n = boxes.size(0), words = (n + 63) / 64;
  std::vector<char> kept(size_t(n), 1);
  if (n == 0) return kept;
  Tensor masks = empty(Shape{n, words}, DType::int64, boxes.device());
  cuda::DeviceGuard guard(boxes.device().index);
  cuda::kernels_of<Kernels>(boxes.dtype())
      .overlaps.launch({cuda::blocks_for(n * words, kThreads)}, {kThreads}, 0, boxes.address(),
                       classes.defined() ? classes.address() : nullptr, n, threshold,
                       masks.address());
  Tensor here = empty(masks.sizes(), DType::int64);
  copy_into(here, masks);
  const auto* rows = here.data<uint64_t>();
  std::vector<uint64_t> gone(size_t(words), 0);
  for (int64_t i = 0; i < n; ++i) {
    kept[size_t(i)] = (gone[size_t(i / 64)] >> (i % 64) & 1) == 0;
    if (kept[size_t(i)])
      for (int64_t w = i / 64; w < words; ++w) gone[size_t(w)] |= rows[i * words + w];
  }
  return kept;
}

}  // namespace rushlight
