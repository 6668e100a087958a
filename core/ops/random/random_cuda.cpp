// Defines the draws for CUDA: a kernel for each distribution and dtype.
#include "core/device/cuda_kernel_map.h"
#include "core/device/cuda_memory.h"
#include "core/device/philox.h"
#include "core/ops/random/random_kernels.h"
#include "core/tensor/cuda_types.h"

namespace rushlight {

extern const char* const random_cu;
extern const char* const bernoulli_cu;
extern const char* const dropout_cu;

namespace {

constexpr int kThreads = 256;  // of a block

struct DrawVariant {
  Distribution distribution;
  DType result;
  friend auto operator<=>(const DrawVariant&, const DrawVariant&) = default;

  const char* distribution_name() const {
    constexpr const char* kNames[] = {"uniform_f32", "uniform_f64", "normal_f32",
                                      "normal_f64",  "exponential", "geometric",
                                      "cauchy",      "log_normal",  "integers"};
    return kNames[int(distribution)];
  }
  std::string name() const {
    return std::string("draw<") + distribution_name() + ", " + device_type(result) + ">";
  }
  std::string prelude() const {
    return cuda::define("DISTRIBUTION", distribution_name()) +
           cuda::define("RESULT", device_type(result));
  }
};

struct DropoutVariant {
  DType item;
  friend auto operator<=>(const DropoutVariant&, const DropoutVariant&) = default;

  std::string name() const { return std::string("dropout<") + device_type(item) + ">"; }
  std::string prelude() const { return cuda::define("ITEM", device_type(item)); }
};

struct DrawKernel {
  cuda::CudaModule module;
  cuda::CudaKernel kernel{module, "draw"};
  explicit DrawKernel(const DrawVariant& variant)
      : module(variant.name(), random_cu, variant.prelude()) {}
};

struct DropoutKernel {
  cuda::CudaModule module;
  cuda::CudaKernel kernel{module, "dropout"};
  explicit DropoutKernel(const DropoutVariant& variant)
      : module(variant.name(), dropout_cu, variant.prelude()) {}
};

cuda::CudaKernel& draw_kernel(Distribution distribution, DType result) {
  return cuda::kernels_of<DrawKernel>(DrawVariant{distribution, result}).kernel;
}
cuda::CudaKernel& dropout_kernel(DType item) {
  return cuda::kernels_of<DropoutKernel>(DropoutVariant{item}).kernel;
}
cuda::CudaModule bernoulli_module("bernoulli", bernoulli_cu);
cuda::CudaKernel bernoulli_kernel(bernoulli_module, "bernoulli");
cuda::CudaKernel check_kernel(bernoulli_module, "check_chances");

cuda::CudaKernelFamily family([] {
  for (DType dtype : {DType::float16, DType::bfloat16, DType::float32, DType::float64}) {
    bool is_double = dtype == DType::float64;
    draw_kernel(is_double ? Distribution::uniform_f64 : Distribution::uniform_f32, dtype);
    draw_kernel(is_double ? Distribution::normal_f64 : Distribution::normal_f32, dtype);
    for (auto distribution : {Distribution::exponential, Distribution::geometric,
                              Distribution::cauchy, Distribution::log_normal})
      draw_kernel(distribution, dtype);
    dropout_kernel(dtype);
  }
  for (DType dtype : {DType::int64, DType::int32, DType::uint8, DType::bool_, DType::float32})
    draw_kernel(Distribution::integers, dtype);
});

DrawPlace place_of(const Tensor& out, Generator::Draw draw) {
  return {draw, out.address(), out.numel()};
}

// A thread for each counter.
cuda::Dim3 grid_of(const Tensor& out, int words_each) {
  return {cuda::blocks_for(int64_t(philox_counters(uint64_t(out.numel()), uint64_t(words_each))),
                           kThreads)};
}

}  // namespace

void draw_cuda(const Tensor& out, Distribution distribution, const DrawArgs& args,
               Generator::Draw draw) {
  cuda::DeviceGuard guard(out.device().index);
  draw_kernel(distribution, out.dtype())
      .launch(grid_of(out, words_each(distribution)), {kThreads}, 0, place_of(out, draw), args);
}

void bernoulli_cuda(const Tensor& out, const Tensor& chances, double all, Generator::Draw draw) {
  cuda::DeviceGuard guard(out.device().index);
  const double* p = chances.defined() ? static_cast<const double*>(chances.address()) : nullptr;
  bernoulli_kernel.launch(grid_of(out, 2), {kThreads}, 0, place_of(out, draw), p, all);
}

bool are_chances_cuda(const Tensor& chances) {
  cuda::DeviceGuard guard(chances.device().index);
  cuda::CudaBuffer flag(sizeof(int), chances.device().index);
  cuda::fill_bytes(flag.data(), chances.device(), 0, sizeof(int));
  check_kernel.launch({cuda::blocks_for(chances.numel(), kThreads)}, {kThreads}, 0,
                      static_cast<const double*>(chances.address()), chances.numel(),
                      static_cast<int*>(flag.data()));
  int bad;
  cuda::copy_bytes(&bad, {}, flag.data(), chances.device(), sizeof(int));
  return !bad;
}

void dropout_cuda(const Tensor& input, const Tensor& out, const Tensor& mask, Dropout dropout,
                  Generator::Draw draw) {
  cuda::DeviceGuard guard(out.device().index);
  DropoutArgs args{input.address(), static_cast<bool*>(mask.address()), dropout.scale,
                   dropout.threshold};
  dropout_kernel(out.dtype()).launch(grid_of(out, 1), {kThreads}, 0, place_of(out, draw), args);
}

}  // namespace rushlight
