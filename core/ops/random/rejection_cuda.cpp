// Defines the draws by rejection for CUDA.
#include "core/ops/random/rejection.h"

#include "core/device/cuda_kernel_map.h"

namespace rushlight {

extern const char* const rejection_cu;

namespace {

cuda::CudaModule module("rejection", rejection_cu);
cuda::CudaKernel kernels[] = {{module, "poisson"},
                              {module, "binomial"},
                              {module, "gamma"},
                              {module, "log_gamma"},
                              {module, "log_gamma_slope_of"}};

}  // namespace

void reject_cuda(const Tensor& out, Rejection what, const Tensor& a, const Tensor& b,
                 Generator::Draw draw) {
  constexpr int kThreads = 128;  // of a block
  cuda::DeviceGuard guard(out.device().index);
  const double* second = b.defined() ? static_cast<const double*>(b.address()) : nullptr;
  kernels[int(what)].launch({cuda::blocks_for(out.numel(), kThreads)}, {kThreads}, 0, draw,
                            out.numel(), static_cast<const double*>(a.address()), second,
                            static_cast<double*>(out.address()));
}

}  // namespace rushlight
