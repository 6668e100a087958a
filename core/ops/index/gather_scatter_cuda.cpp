// Defines the kernels of gather and scatter on CUDA. A scatter is a write to picked elements whose
// offsets are those of the index.
#include <numeric>

#include "core/device/cuda_kernel_map.h"
#include "core/ops/index/gather_scatter.h"
#include "core/ops/index/index_cuda.h"
#include "core/tensor/cuda_types.h"
#include "core/tensor/tile_loop.h"

namespace rushlight {
namespace {

Tensor checked(const Tensor& self, size_t dim, const Tensor& index) {
  check_bounds(index, 0, self.sizes()[dim], dim, self.sizes()[dim]);
  return to_contiguous(index);
}

}  // namespace

void gather_cuda(const Tensor& self, size_t dim, const Tensor& index, const Tensor& out) {
  Tensor places = checked(self, dim, index);
  Shape strides = self.strides();
  strides[dim] = 0;
  cuda::DeviceGuard guard(self.device().index);
  cuda::kernels_of<MoveKernels>(int64_t(self.itemsize()))
      .gather.launch({cuda::blocks_for(out.numel(), kIndexThreads)}, {kIndexThreads}, 0,
                     self.address(), places.address(), index_layout(index.sizes(), strides),
                     out.numel(), self.strides()[dim], out.address());
}

void scatter_cuda(const Tensor& self, size_t dim, const Tensor& index, const Tensor& src,
                  Scatter how) {
  Picked picked;
  picked.shape = index.sizes();
  picked.offsets = offsets_along(self, dim, checked(self, dim, index));
  for (size_t d = 0; d < index.sizes().size(); ++d) {
    picked.reach += (self.sizes()[d] - 1) * self.strides()[d];
    picked.unit = std::gcd(picked.unit, self.strides()[d]);
  }
  write_picked_cuda(self, picked, alias(src, index.sizes(), src.strides(), src.offset()), how);
}

}  // namespace rushlight
