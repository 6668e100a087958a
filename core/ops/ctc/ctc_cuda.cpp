// Owns the launches of ctc_loss on CUDA, see ctc.cu.
#include <algorithm>

#include "core/device/cuda.h"
#include "core/device/cuda_kernel_map.h"
#include "core/device/cuda_memory.h"
#include "core/ops/ctc/ctc.h"
#include "core/ops/ctc/ctc_args.h"
#include "core/tensor/cuda_types.h"
#include "core/tensor/tile_loop.h"

namespace rushlight {

extern const char* const ctc_cu;

namespace {

constexpr unsigned kThreads = 256;
constexpr int64_t kSharedBytes = 48 << 10;  // what every device gives to a block

struct CtcKernels {
  cuda::CudaModule module;
  cuda::CudaKernel walk{module, "walk"}, link{module, "link"}, grad{module, "grad"};

  explicit CtcKernels(DType dtype)
      : module(std::string("ctc_loss<") + device_type(dtype) + ">", ctc_cu,
               cuda::define("COMPUTE", device_type(dtype)) + cuda::define("CHUNK", "1")) {}
};

cuda::CudaKernelFamily family([] {
  for (DType dtype : {DType::float32, DType::float64}) cuda::kernels_of<CtcKernels>(dtype);
});

// A batch as the kernels see it.
struct BatchOnDevice {
  cuda::DeviceGuard guard;
  CtcKernels& kernels;
  CtcArgs args;
  size_t item;
  Tensor numbers;  // the lengths and starts that args points to

  BatchOnDevice(const CtcBatch& batch, int64_t width)
      : guard(batch.log_probs.device().index),
        kernels(cuda::kernels_of<CtcKernels>(batch.log_probs.dtype())),
        item(batch.log_probs.itemsize()) {
    // One copy brings all numbers to the device.
    Shape sizes{3, batch.samples()};
    Tensor here = empty(sizes, DType::int64);
    numbers = empty(sizes, DType::int64, batch.log_probs.device());
    int64_t* to = here.data<int64_t>();
    for (const auto& each : {batch.input_lengths, batch.target_lengths, batch.starts()})
      to = std::ranges::copy(each, to).out;
    copy_into(numbers, here);
    const auto* first = static_cast<const int64_t*>(numbers.address());
    args = {batch.log_probs.address(),
            static_cast<const int64_t*>(batch.targets.address()),
            first,
            first + batch.samples(),
            first + 2 * batch.samples(),
            batch.times(),
            batch.samples(),
            batch.classes(),
            batch.blank,
            width};
  }

  size_t bytes(int64_t elements) const { return size_t(elements) * item; }
  // `losses` is null for the ways from the end.
  void walk(void* rows, void* losses) const {
    bool fits = bytes(2 * args.width) <= size_t(kSharedBytes);
    cuda::CudaBuffer spare(fits ? 0 : bytes(2 * args.width * args.samples), cuda::current_device());
    kernels.walk.launch({cuda::blocks_for(args.samples, 1)}, {threads_for(args.width, 1024)},
                        fits ? unsigned(bytes(2 * args.width)) : 0, args, losses == nullptr, rows,
                        spare.data(), losses);
  }
  // Whole warps for so many numbers.
  static unsigned threads_for(int64_t numbers, int64_t most) {
    return unsigned(std::min((numbers + 31) / 32 * 32, most));
  }
};

}  // namespace

void ctc_loss_cuda(const CtcBatch& batch, const Tensor& losses, const Tensor& log_alpha) {
  BatchOnDevice(batch, log_alpha.size(2)).walk(log_alpha.address(), losses.address());
}

void ctc_loss_backward_cuda(const CtcBatch& batch, const Tensor& grad, const Tensor& losses,
                            const Tensor& log_alpha, bool zero_infinity, const Tensor& grad_input) {
  BatchOnDevice on_device(batch, log_alpha.size(2));
  const CtcArgs& args = on_device.args;
  int64_t links = args.samples * args.longest();
  cuda::CudaBuffer log_beta(on_device.bytes(log_alpha.numel()), cuda::current_device());
  cuda::CudaBuffer next(size_t(links) * sizeof(int64_t), cuda::current_device());
  on_device.walk(log_beta.data(), nullptr);
  on_device.kernels.link.launch({cuda::blocks_for(links, kThreads)}, {kThreads}, 0, args,
                                next.data());
  unsigned threads = on_device.threads_for(std::max(args.classes, args.longest()), kThreads);
  on_device.kernels.grad.launch({cuda::blocks_for(args.times * args.samples, 1)}, {threads}, 0,
                                args, log_alpha.address(), log_beta.data(), next.data(),
                                losses.address(), grad.address(), zero_infinity,
                                grad_input.address());
}

}  // namespace rushlight
