// Owns the kernels of pooling over batches of images.
//
// Nothing is recorded. A channels_last operand gives channels_last results.
#pragma once

#include <array>
#include <utility>

#include "core/ops/pool_windows.h"
#include "core/tensor/tensor.h"

namespace rushlight {

using PoolWindows2d = std::array<PoolWindows, 2>;

// The maxima and their places in the image, as int32.
std::pair<Tensor, Tensor> max_pool_kernel(const PoolWindows2d& windows, const Tensor& input);

// Adds each element of grad to the place that indices names, in images of the windows' size.
Tensor max_pool_backward_kernel(const PoolWindows2d& windows, const Tensor& grad,
                                const Tensor& indices);

Tensor avg_pool_kernel(const PoolWindows2d& windows, PoolDivisor divisor, const Tensor& input);
Tensor avg_pool_backward_kernel(const PoolWindows2d& windows, PoolDivisor divisor,
                                const Tensor& grad);

// ---- for each device ---------------------------------------------------------------------------

std::pair<Tensor, Tensor> max_pool_on_cpu(const PoolWindows2d& windows, const Tensor& input);
Tensor max_pool_backward_on_cpu(const PoolWindows2d& windows, const Tensor& grad,
                                const Tensor& indices);
Tensor avg_pool_on_cpu(const PoolWindows2d& windows, PoolDivisor divisor, const Tensor& input);
Tensor avg_pool_backward_on_cpu(const PoolWindows2d& windows, PoolDivisor divisor,
                                const Tensor& grad);

// The same into results, which have elements.
void max_pool_on_cuda(const PoolWindows2d& windows, const Tensor& input, const Tensor& values,
                      const Tensor& indices);
void max_pool_backward_on_cuda(const PoolWindows2d& windows, const Tensor& grad,
                               const Tensor& indices, const Tensor& result);
void avg_pool_on_cuda(const PoolWindows2d& windows, PoolDivisor divisor, const Tensor& input,
                      const Tensor& means);
void avg_pool_backward_on_cuda(const PoolWindows2d& windows, PoolDivisor divisor,
                               const Tensor& grad, const Tensor& result);

inline bool is_channels_last(const Tensor& tensor) {
  return !tensor.is_contiguous() && tensor.is_contiguous(MemoryFormat::channels_last);
}

// Uninitialised images.
Tensor empty_images(ShapeRef sizes, DType dtype, Device device, bool channels_last);

}  // namespace rushlight
