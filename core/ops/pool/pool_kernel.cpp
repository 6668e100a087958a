// Defines the kernels of pooling but for the arithmetic: checks and memory for results.
#include "core/ops/pool/pool.h"

#include <limits>

#include "core/ops/window_numbers.h"
#include "core/tensor/tile_loop.h"

namespace rushlight {
namespace {

void check_windows(const PoolWindows3d& windows) {
  for (const PoolWindows& along : windows) {
    if (along.kernel == 0) continue;  // each has elements
    for (int64_t o = 0; o < along.out; ++o)
      CHECK(along.begin(o) < along.end(o), "window ", o, " of ", along.out,
            " has no element inside the input.");
  }
}

// A result for the windows of a tensor, in its layout and on its device.
Tensor pooled_volumes(const PoolWindows3d& windows, const Tensor& tensor, DType dtype) {
  return empty_volumes(pooled_sizes(windows, tensor), dtype, tensor.device(),
                       is_channels_last(tensor));
}

// The gradient of the volumes that outputs were made of, in the layout of one of these.
Tensor whole_volumes(const PoolWindows3d& windows, const Tensor& tensor, DType dtype) {
  return empty_volumes(whole_sizes(windows, tensor), dtype, tensor.device(),
                       is_channels_last(tensor));
}

// Whether there is no output, so that the loops over windows have nothing to divide among.
bool has_no_outputs(const PoolWindows3d& windows) {
  return windows[0].out == 0 || windows[1].out == 0 || windows[2].out == 0;
}

Tensor zero_volumes(const PoolWindows3d& windows, const Tensor& tensor, DType dtype) {
  Tensor result = whole_volumes(windows, tensor, dtype);
  copy_into(result, scalar_tensor(0.0, dtype));
  return result;
}

bool is_to_compute(const Tensor& result) {
  return !result.device().is_meta() && result.numel() != 0;
}

}  // namespace

PoolWindows3d make_windows(ShapeRef size, ShapeRef out, ShapeRef kernel, ShapeRef stride,
                           ShapeRef padding, ShapeRef dilation) {
  size_t dims = size.size();
  CHECK(dims == 2 || dims == 3, "sizes must have 2 or 3 numbers, but are ", ShapeText{size}, ".");
  check_window_numbers(size, dims, "image size", 1);
  check_window_numbers(out, dims, "output size", 0);
  int64_t pixels = 1;
  bool overflows = false;
  for (int64_t s : size) overflows |= __builtin_mul_overflow(pixels, s, &pixels);
  CHECK(!overflows && pixels <= std::numeric_limits<int32_t>::max(), "images of ", ShapeText{size},
        " pixels are too large: they may have 2^31 - 1.");
  bool adaptive = kernel.empty();
  if (!adaptive) {
    check_window_numbers(kernel, dims, "kernel_size", 1);
    check_window_numbers(stride, dims, "stride", 1);
    check_window_numbers(padding, dims, "padding", 0);
    check_window_numbers(dilation, dims, "dilation", 1);
  }
  PoolWindows3d windows{kOnePlane, kOnePlane, kOnePlane};
  for (size_t d = 0; d < dims; ++d) {
    int64_t even = out[d] > 0 && size[d] % out[d] == 0 ? size[d] / out[d] : 0;
    windows[d + 3 - dims] =
        adaptive ? PoolWindows{size[d], out[d], even, even, 0, 1}
                 : PoolWindows{size[d], out[d], kernel[d], stride[d], padding[d], dilation[d]};
  }
  return windows;
}

Shape pooled_sizes(const PoolWindows3d& windows, const Tensor& like) {
  Shape sizes{like.size(0), like.size(1)};
  for (size_t d = like.dim() == 4; d < 3; ++d) sizes.push_back(windows[d].out);
  return sizes;
}

Shape whole_sizes(const PoolWindows3d& windows, const Tensor& like) {
  Shape sizes{like.size(0), like.size(1)};
  for (size_t d = like.dim() == 4; d < 3; ++d) sizes.push_back(windows[d].size);
  return sizes;
}

Tensor empty_volumes(ShapeRef sizes, DType dtype, Device device, bool channels_last) {
  MemoryFormat format =
      channels_last ? channels_last_for(int64_t(sizes.size())) : MemoryFormat::contiguous;
  return empty_strided(sizes, strides_for(sizes, format), dtype, device);
}

std::pair<Tensor, Tensor> max_pool_kernel(const PoolWindows3d& windows, const Tensor& input,
                                          bool with_indices) {
  check_windows(windows);
  if (input.device().is_cpu() && !has_no_outputs(windows))
    return max_pool_on_cpu(windows, input, with_indices);
  Tensor values = pooled_volumes(windows, input, input.dtype());
  Tensor indices = pooled_volumes(windows, input, DType::int32);
  if (is_to_compute(values)) max_pool_on_cuda(windows, input, values, indices);
  return {values, indices};
}

Tensor max_pool_backward_kernel(const PoolWindows3d& windows, const Tensor& grad,
                                const Tensor& indices) {
  if (has_no_outputs(windows)) return zero_volumes(windows, grad, grad.dtype());
  if (grad.device().is_cpu()) return max_pool_backward_on_cpu(windows, grad, indices);
  Tensor result = whole_volumes(windows, indices, grad.dtype());
  if (is_to_compute(result)) max_pool_backward_on_cuda(windows, grad, indices, result);
  return result;
}

Tensor avg_pool_kernel(const PoolWindows3d& windows, PoolDivisor divisor, const Tensor& input) {
  check_windows(windows);
  if (input.device().is_cpu() && !has_no_outputs(windows))
    return avg_pool_on_cpu(windows, divisor, input);
  Tensor means = pooled_volumes(windows, input, input.dtype());
  if (is_to_compute(means)) avg_pool_on_cuda(windows, divisor, input, means);
  return means;
}

Tensor avg_pool_backward_kernel(const PoolWindows3d& windows, PoolDivisor divisor,
                                const Tensor& grad) {
  check_windows(windows);
  if (has_no_outputs(windows)) return zero_volumes(windows, grad, grad.dtype());
  if (grad.device().is_cpu()) return avg_pool_backward_on_cpu(windows, divisor, grad);
  Tensor result = whole_volumes(windows, grad, grad.dtype());
  if (is_to_compute(result)) avg_pool_backward_on_cuda(windows, divisor, grad, result);
  return result;
}

}  // namespace rushlight
