// Owns the kernels of pooling over batches of images, and what a window is.
//
// Nothing is recorded. A channels_last operand gives channels_last results.
#pragma once

#include <array>
#include <utility>

#include "core/tensor/tensor.h"

namespace rushlight {

// The windows along one dim of an image. With kernel = 0 they share the size out among the outputs
// as evenly as they can ("adaptive" pooling); else they are alike.
struct PoolWindows {
  int64_t size, out;
  int64_t kernel, stride, padding, dilation;

  int64_t begin(int64_t output) const;  // the first element inside the image
  int64_t end(int64_t output) const;    // past the last one
  // How many elements a window has, padding included.
  int64_t padded_count(int64_t output) const;
};
using PoolWindows2d = std::array<PoolWindows, 2>;

// The maxima and their places in the image, as int32.
std::pair<Tensor, Tensor> max_pool_cpu(const PoolWindows2d& windows, const Tensor& input);

// Adds each element of grad to the place that indices names, in images of the given size.
Tensor max_pool_backward_cpu(const Tensor& grad, const Tensor& indices, int64_t height,
                             int64_t width);

// What the sum of a window is divided by: a number if it is not 0, else a count of elements.
struct PoolDivisor {
  int64_t number;
  bool counts_padding;
};
Tensor avg_pool_cpu(const PoolWindows2d& windows, PoolDivisor divisor, const Tensor& input);
Tensor avg_pool_backward_cpu(const PoolWindows2d& windows, PoolDivisor divisor, const Tensor& grad);

}  // namespace rushlight
