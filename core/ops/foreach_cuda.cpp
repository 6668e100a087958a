// Defines the steps of the optimizers for CUDA: tensors of one dtype go into one launch, as many as
// its arguments hold.
#include "core/ops/foreach_cuda.h"
#include "core/device/cuda_kernel_map.h"
#include "core/tensor/cuda_types.h"

namespace rushlight {

extern const char* const foreach_cu;

namespace {

constexpr int kThreads = 256;  // of a block

struct Variant {
  bool is_adam;
  DType item;
  friend auto operator<=>(const Variant&, const Variant&) = default;

  std::string name() const {
    return std::string(is_adam ? "adam<" : "sgd<") + device_type(item) + ">";
  }
  std::string prelude() const {
    return cuda::define("METHOD", is_adam ? "Adam" : "Sgd") +
           cuda::define("STEP", is_adam ? "AdamStep" : "SgdStep") +
           cuda::define("ITEM", device_type(item));
  }
};

struct StepKernel {
  cuda::CudaModule module;
  cuda::CudaKernel kernel{module, "step"};
  explicit StepKernel(const Variant& variant)
      : module(variant.name(), foreach_cu, variant.prelude()) {}
};

cuda::CudaKernel& kernel_of(const Variant& variant) {
  return cuda::kernels_of<StepKernel>(variant).kernel;
}

cuda::CudaKernelFamily family([] {
  for (DType dtype : {DType::float16, DType::bfloat16, DType::float32, DType::float64})
    for (bool is_adam : {false, true}) kernel_of({is_adam, dtype});
});

// Collects tensors for launches of one kernel.
template <class Step>
class Launches {
 public:
  Launches(DType dtype, const Step& step)
      : kernel_(kernel_of({std::is_same_v<Step, AdamStep>, dtype})), step_(step) {}

  void add(const StepItem& item) {
    int64_t numel = item.end - item.begin;
    if (numel == 0) return;
    uint32_t blocks = cuda::blocks_for(numel, kChunk);
    if (many_.count == kManyTensors || blocks_ + int64_t(blocks) > INT32_MAX) launch();
    size_t t = size_t(many_.count++);
    uintptr_t bits = 0;
    for (size_t k = 0; k < kMaxStepArrays; ++k) {
      many_.arrays[k][t] = item.arrays[k];
      bits |= reinterpret_cast<uintptr_t>(item.arrays[k]);
    }
    many_.numel[t] = numel;
    many_.first_block[t] = blocks_;
    many_.is_aligned |= uint64_t(bits % 16 == 0) << t;
    blocks_ += blocks;
  }

  void launch() {
    kernel_.launch({blocks_}, {kThreads}, 0, many_, step_);
    many_ = {};
    blocks_ = 0;
  }

 private:
  cuda::CudaKernel& kernel_;
  const Step& step_;
  ManyTensors many_{};
  uint32_t blocks_ = 0;
};

template <class Step>
void run(std::span<const StepItem> items, const Step& step) {
  bool done[kDTypeCount][cuda::kMaxDevices] = {};
  for (const StepItem& first : items) {
    bool& is_done = done[int(first.dtype)][first.device.index];
    if (is_done) continue;
    is_done = true;
    cuda::DeviceGuard guard(first.device.index);
    Launches<Step> launches(first.dtype, step);
    for (const StepItem& item : items)
      if (item.dtype == first.dtype && item.device == first.device) launches.add(item);
    launches.launch();
  }
}

}  // namespace

void step_cuda(std::span<const StepItem> items, const SgdStep& step) { run(items, step); }
void step_cuda(std::span<const StepItem> items, const AdamStep& step) { run(items, step); }

}  // namespace rushlight
