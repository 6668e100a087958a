// Defines the sequences of arange, linspace and logspace for CUDA.
#include "core/ops/random/generate.h"

#include "core/device/cuda_kernel_map.h"
#include "core/tensor/cuda_types.h"

namespace rushlight {

extern const char* const generate_cu;

namespace {

constexpr int kThreads = 256;  // of a block

struct Variant {
  bool is_range;
  DType result;
  friend auto operator<=>(const Variant&, const Variant&) = default;

  const char* sequence() const { return is_range ? "Range" : "Spaced"; }
  std::string name() const {
    return std::string("generate<") + sequence() + ", " + device_type(result) + ">";
  }
  std::string prelude() const {
    return cuda::define("SEQUENCE", sequence()) + cuda::define("RESULT", device_type(result));
  }
};

struct GenerateKernel {
  cuda::CudaModule module;
  cuda::CudaKernel kernel{module, "generate"};
  explicit GenerateKernel(const Variant& variant)
      : module(variant.name(), generate_cu, variant.prelude()) {}
};

cuda::CudaKernel& kernel_of(const Variant& variant) {
  return cuda::kernels_of<GenerateKernel>(variant).kernel;
}

cuda::CudaKernelFamily family([] {
  for (DType dtype : {DType::int64, DType::int32, DType::float16, DType::bfloat16, DType::float32,
                      DType::float64})
    for (bool is_range : {false, true}) kernel_of({is_range, dtype});
});

template <class Sequence>
void run(const Tensor& out, const Sequence& sequence) {
  cuda::DeviceGuard guard(out.device().index);
  kernel_of({std::is_same_v<Sequence, Range>, out.dtype()})
      .launch({cuda::blocks_for(out.numel(), kThreads)}, {kThreads}, 0, out.address(), out.numel(),
              sequence);
}

}  // namespace

void generate_cuda(const Tensor& out, const Range& range) { run(out, range); }
void generate_cuda(const Tensor& out, const Spaced& spaced) { run(out, spaced); }

}  // namespace rushlight
