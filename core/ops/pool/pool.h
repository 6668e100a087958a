// Owns the kernels of pooling over batches of images (N, C, H, W) or volumes (N, C, D, H, W). An
// image is a volume of one plane, which the windows over it say.
//
// Nothing is recorded. A channels_last operand gives channels_last results.
#pragma once

#include <array>
#include <utility>

#include "core/ops/pool/pool_windows.h"
#include "core/tensor/memory_order.h"
#include "core/tensor/tensor.h"

namespace rushlight {

using PoolWindows3d = std::array<PoolWindows, 3>;  // of planes, rows and columns
inline constexpr PoolWindows kOnePlane{1, 1, 1, 1, 0, 1};

// The windows over images or volumes of this size; an empty kernel makes them adaptive.
PoolWindows3d make_windows(ShapeRef size, ShapeRef out, ShapeRef kernel, ShapeRef stride,
                           ShapeRef padding, ShapeRef dilation);

// The maxima and, if asked for, their places in the image or volume, as int32.
std::pair<Tensor, Tensor> max_pool_kernel(const PoolWindows3d& windows, const Tensor& input,
                                          bool with_indices);

// Adds each element of grad to the place that indices names, in volumes of the windows' size.
Tensor max_pool_backward_kernel(const PoolWindows3d& windows, const Tensor& grad,
                                const Tensor& indices);

Tensor avg_pool_kernel(const PoolWindows3d& windows, PoolDivisor divisor, const Tensor& input);
Tensor avg_pool_backward_kernel(const PoolWindows3d& windows, PoolDivisor divisor,
                                const Tensor& grad);

// ---- for each device ---------------------------------------------------------------------------

std::pair<Tensor, Tensor> max_pool_on_cpu(const PoolWindows3d& windows, const Tensor& input,
                                          bool with_indices);
Tensor max_pool_backward_on_cpu(const PoolWindows3d& windows, const Tensor& grad,
                                const Tensor& indices);
Tensor avg_pool_on_cpu(const PoolWindows3d& windows, PoolDivisor divisor, const Tensor& input);
Tensor avg_pool_backward_on_cpu(const PoolWindows3d& windows, PoolDivisor divisor,
                                const Tensor& grad);

// The same into results, which have elements.
void max_pool_on_cuda(const PoolWindows3d& windows, const Tensor& input, const Tensor& values,
                      const Tensor& indices);
void max_pool_backward_on_cuda(const PoolWindows3d& windows, const Tensor& grad,
                               const Tensor& indices, const Tensor& result);
void avg_pool_on_cuda(const PoolWindows3d& windows, PoolDivisor divisor, const Tensor& input,
                      const Tensor& means);
void avg_pool_backward_on_cuda(const PoolWindows3d& windows, PoolDivisor divisor,
                               const Tensor& grad, const Tensor& result);

// The sizes of what windows make of images or volumes, and of what they lie over.
Shape pooled_sizes(const PoolWindows3d& windows, const Tensor& like);
Shape whole_sizes(const PoolWindows3d& windows, const Tensor& like);

// Uninitialized images or volumes.
Tensor empty_volumes(ShapeRef sizes, DType dtype, Device device, bool channels_last);

}  // namespace rushlight
