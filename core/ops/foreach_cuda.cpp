// Defines the ops on many tensors for CUDA: those of one dtype go into one launch, as many as its
// arguments hold.
#include "core/ops/foreach_cuda.h"
#include "core/device/cuda_kernel_map.h"
#include "core/device/cuda_memory.h"
#include "core/tensor/cuda_types.h"

namespace rushlight {

extern const char* const foreach_cu;
extern const char* const foreach_norm_cu;

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

struct NormKernels {
  cuda::CudaModule module;
  cuda::CudaKernel chunks{module, "chunks"}, norms{module, "norms"};
  explicit NormKernels(DType item)
      : module(std::string("norms<") + device_type(item) + ">", foreach_norm_cu,
               cuda::define("ITEM", device_type(item))) {}
};

cuda::CudaKernelFamily family([] {
  for (DType dtype : {DType::float16, DType::bfloat16, DType::float32, DType::float64}) {
    for (bool is_adam : {false, true}) kernel_of({is_adam, dtype});
    cuda::kernels_of<NormKernels>(dtype);
  }
});

// Collects tensors, none of them empty, and calls launch(many, blocks) when there is room for no
// more.
template <class Launch>
class Launches {
 public:
  explicit Launches(Launch launch) : launch_(launch) {}

  void add(int64_t numel, std::span<void* const> arrays) {
    uint32_t blocks = cuda::blocks_for(numel, kChunk);
    if (many_.count == kManyTensors || blocks_ + int64_t(blocks) > INT32_MAX) launch();
    size_t t = size_t(many_.count++);
    uintptr_t bits = 0;
    for (size_t k = 0; k < arrays.size(); ++k) {
      many_.arrays[k][t] = arrays[k];
      bits |= reinterpret_cast<uintptr_t>(arrays[k]);
    }
    many_.numel[t] = numel;
    many_.first_block[t] = blocks_;
    many_.is_aligned |= uint64_t(bits % 16 == 0) << t;
    blocks_ += blocks;
  }

  void launch() {
    if (blocks_) launch_(many_, blocks_);
    many_ = {};
    blocks_ = 0;
  }

 private:
  Launch launch_;
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
    cuda::CudaKernel& kernel = kernel_of({std::is_same_v<Step, AdamStep>, first.dtype});
    Launches launches([&](const ManyTensors& many, uint32_t blocks) {
      kernel.launch({blocks}, {kThreads}, 0, many, step);
    });
    for (const StepItem& item : items)
      if (item.dtype == first.dtype && item.device == first.device && item.end > item.begin)
        launches.add(item.end - item.begin, item.arrays);
    launches.launch();
  }
}

}  // namespace

void step_cuda(std::span<const StepItem> items, const SgdStep& step) { run(items, step); }
void step_cuda(std::span<const StepItem> items, const AdamStep& step) { run(items, step); }

std::vector<Tensor> norms_cuda(TensorList tensors, NormKind kind) {
  DType dtype = tensors[0].dtype();
  int device = tensors[0].device().index;
  cuda::DeviceGuard guard(device);
  NormKernels& kernels = cuda::kernels_of<NormKernels>(dtype);
  // One block of memory for all of them.
  Tensor all = empty(Shape{int64_t(tensors.size())}, dtype, tensors[0].device());
  char* next = static_cast<char*>(all.address());
  Launches launches([&](const ManyTensors& many, uint32_t blocks) {
    cuda::CudaBuffer parts(blocks * sizeof(double), device);
    kernels.chunks.launch({blocks}, {kThreads}, 0, many, static_cast<double*>(parts.data()), kind);
    kernels.norms.launch({unsigned(many.count)}, {kThreads}, 0, many,
                         static_cast<const double*>(parts.data()), static_cast<void*>(next), kind);
    next += size_t(many.count) * all.itemsize();
  });
  std::vector<Tensor> norms;
  norms.reserve(tensors.size());
  for (const Tensor& tensor : tensors) {
    void* array = tensor.address();
    launches.add(tensor.numel(), {&array, 1});
    norms.push_back(alias(all, {}, {}, int64_t(norms.size())));
  }
  launches.launch();
  return norms;
}

}  // namespace rushlight
