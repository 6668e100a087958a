// Owns the launches of nll_loss on CUDA, see loss.cu.
#include "core/device/cuda.h"
#include "core/device/cuda_memory.h"
#include "core/ops/loss/loss.h"
#include "core/ops/operands.h"
#include "core/ops/row_cuda.h"

namespace rushlight {

extern const char* const loss_cu;

namespace {

constexpr unsigned kThreads = 256;
constexpr int64_t kBlocks = 1024, kPerThread = 4;

struct NllKernels {
  cuda::CudaModule module;
  cuda::CudaKernel take{module, "take"}, merge_pieces{module, "merge_pieces"},
      place{module, "place"};

  explicit NllKernels(DType input)
      : module(std::string("nll_loss<") + device_type(input) + ">", loss_cu, prelude(input)) {}

  static std::string prelude(DType input) {
    using cuda::define;
    return define("INPUT", device_type(input)) +
           define("COMPUTE", device_type(compute_dtype(input))) + define("CHUNK", "1");
  }
};

cuda::CudaKernelFamily family([] {
  for (DType dtype : {DType::float32, DType::float16, DType::bfloat16})
    cuda::kernels_of<NllKernels>(dtype);
});

}  // namespace

void nll_loss_cuda(const Tensor& input, const Tensor& target, const Tensor& weight, NllShape shape,
                   int64_t ignore_index, LossReduction reduction, const Tensor& output,
                   const Tensor& total_weight) {
  cuda::DeviceGuard guard(input.device().index);
  NllKernels& kernels = cuda::kernels_of<NllKernels>(input.dtype());
  int64_t positions = shape.batch * shape.inner;
  int64_t wanted = (positions + kThreads * kPerThread - 1) / (kThreads * kPerThread);
  int64_t blocks = std::clamp<int64_t>(wanted, 1, kBlocks);
  cuda::CudaBuffer pieces(
      blocks > 1 ? 2 * size_t(blocks) * dtype_size(compute_dtype(input.dtype())) : 0,
      input.device().index);
  bool mean = reduction == LossReduction::mean, none = reduction == LossReduction::none;
  void* losses = none ? output.address() : nullptr;
  void* total = none ? nullptr : output.address();
  kernels.take.launch({unsigned(blocks)}, {kThreads}, 0, input.address(), target.address(),
                      address_or_null(weight), positions, shape.classes, shape.inner, ignore_index,
                      mean, losses, total, total_weight.address(), pieces.data());
  if (blocks > 1)
    kernels.merge_pieces.launch({1}, {kThreads}, 0, pieces.data(), blocks, mean, total,
                                total_weight.address());
}

void nll_loss_backward_cuda(const Tensor& grad, const Tensor& target, const Tensor& weight,
                            const Tensor& total_weight, NllShape shape, int64_t ignore_index,
                            LossReduction reduction, const Tensor& grad_input) {
  cuda::DeviceGuard guard(grad.device().index);
  int64_t positions = shape.batch * shape.inner;
  const void* divisor = reduction == LossReduction::mean ? total_weight.address() : nullptr;
  bool is_single = reduction != LossReduction::none;
  cuda::kernels_of<NllKernels>(grad.dtype())
      .place.launch({cuda::blocks_for(positions, kThreads)}, {kThreads}, 0, grad.address(),
                    target.address(), address_or_null(weight), positions, shape.classes,
                    shape.inner, ignore_index, is_single, divisor, grad_input.address());
}

}  // namespace rushlight
