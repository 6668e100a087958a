// Defines the ops on many tensors for CUDA: those of one dtype go into one launch, as many as its
// arguments hold.
#include "core/ops/foreach/foreach_cuda.h"

#include "core/autograd/needs.h"
#include "core/device/cuda_kernel_map.h"
#include "core/device/cuda_memory.h"
#include "core/tensor/cuda_types.h"

namespace rushlight {

extern const char* const foreach_cu;
extern const char* const foreach_norm_cu;
extern const char* const foreach_unscale_cu;

namespace {

constexpr int kThreads = 256;  // of a block

constexpr const char* kMethodNames[kMethods] = {
#define RUSHLIGHT_NAME(name) #name,
    RUSHLIGHT_FOR_EACH_METHOD(RUSHLIGHT_NAME)
#undef RUSHLIGHT_NAME
};

struct Variant {
  Method method;
  DType item;
  friend auto operator<=>(const Variant&, const Variant&) = default;

  std::string method_name() const { return kMethodNames[int(method)]; }
  std::string name() const { return method_name() + "<" + device_type(item) + ">"; }
  std::string prelude() const {
    return cuda::define("METHOD", method_name()) + cuda::define("STEP", method_name() + "Step") +
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

struct UnscaleKernel {
  cuda::CudaModule module;
  cuda::CudaKernel kernel{module, "unscale"};
  explicit UnscaleKernel(DType item)
      : module(std::string("unscale<") + device_type(item) + ">", foreach_unscale_cu,
               cuda::define("ITEM", device_type(item))) {}
};

cuda::CudaKernelFamily family([] {
  for (DType dtype : {DType::float16, DType::bfloat16, DType::float32, DType::float64}) {
    for (int method = 0; method < kMethods; ++method) kernel_of({Method(method), dtype});
    cuda::kernels_of<NormKernels>(dtype);
    cuda::kernels_of<UnscaleKernel>(dtype);
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

// Calls launch_for(dtype, device)(many, blocks) for the items of each dtype on each device.
template <class LaunchFor>
void launch_all(std::span<const StepItem> items, LaunchFor launch_for) {
  bool done[kDTypeCount][cuda::kMaxDevices] = {};
  for (const StepItem& first : items) {
    bool& is_done = done[int(first.dtype)][first.device.index];
    if (is_done) continue;
    is_done = true;
    cuda::DeviceGuard guard(first.device.index);
    Launches launches(launch_for(first.dtype, first.device));
    for (const StepItem& item : items)
      if (item.dtype == first.dtype && item.device == first.device && item.end > item.begin)
        launches.add(item.end - item.begin, item.arrays);
    launches.launch();
  }
}

template <class Step>
void run(std::span<const StepItem> items, const Step& step, const Tensor& scaling,
         const Tensor& rates) {
  launch_all(items, [&](DType dtype, Device device) {
    Tensor here = scaling.defined() ? needs::to_device(scaling, device) : Tensor();
    return [&step, &rates, &kernel = kernel_of({method_of(step), dtype}), here](
               const ManyTensors& many, uint32_t blocks) {
      const void* numbers = here.defined() ? here.address() : nullptr;
      const void* from_graph = rates.defined() ? rates.address() : nullptr;
      kernel.launch({blocks}, {kThreads}, 0, many, step, numbers, from_graph);
    };
  });
}

}  // namespace

void step_cuda(std::span<const StepItem> items, Method method, const void* step,
               const Tensor& scaling, const Tensor& rates) {
  switch (method) {
#define RUSHLIGHT_CASE(name) \
  case Method::name: return run(items, *static_cast<const name##Step*>(step), scaling, rates);
    RUSHLIGHT_FOR_EACH_METHOD(RUSHLIGHT_CASE)
#undef RUSHLIGHT_CASE
  }
}

void unscale_cuda(std::span<const StepItem> items, const float* factor, float* found) {
  launch_all(items, [&](DType dtype, Device) {
    return [factor, found, &kernel = cuda::kernels_of<UnscaleKernel>(dtype).kernel](
               const ManyTensors& many, uint32_t blocks) {
      kernel.launch({blocks}, {kThreads}, 0, many, factor, found);
    };
  });
}

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
