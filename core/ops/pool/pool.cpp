// Owns the private pooling ops, which call pool_kernel.cpp: all that is to differentiate. What
// Python calls (pool_max.cpp, pool_avg.cpp) prepares sizes for them.
#include "core/ops/pool/pool.h"

#include "core/ops/joined_samples.h"
#include "core/ops/op.h"
#include "core/ops/pool/pool_arguments.h"

namespace rushlight {
namespace {

Shape no_dilation(ShapeRef size) { return Shape(size.size(), 1); }

ShapeRef volume_size(const Shape& sizes) { return ShapeRef(sizes).subspan(2); }

void check_volumes(const Tensor& tensor) {
  CHECK((tensor.dim() == 4 || tensor.dim() == 5) && tensor.size(1) > 0, "expected a batch of ",
        "images (N, C, H, W) or volumes (N, C, D, H, W) with channels, but got shape ",
        tensor.sizes(), ".");
}

}  // namespace

OP(_max_pool,
   "(Tensor input, int[] out, int[] kernel_size, int[] stride, int[] padding, int[] dilation) -> "
   "(Tensor values, Tensor indices)", {
  .home    = "core",
  .doc     = R"(The maxima over windows of images or volumes, and their places (int32).

An empty kernel_size gives adaptive windows; the numbers after it are then not read.)",
  .dtypes  = kPoolable,
  .node    = "max_pool2D_with_indices",
  .batch   = by_images,
  .forward = [](const Tensor& input, ShapeRef out, ShapeRef kernel_size, ShapeRef stride,
                ShapeRef padding, ShapeRef dilation) {
    check_volumes(input);
    PoolWindows3d windows =
        make_windows(volume_size(input.sizes()), out, kernel_size, stride, padding, dilation);
    auto [values, indices] = max_pool_kernel(windows, input, true);
    return std::tuple(values, indices);
  },
  .saves   = saves<"indices", "input.shape">,
  .grads   = grads(d<"input">([](TensorList g, const Tensor& indices, const Shape& size,
                                 const Shape&, const Shape& kernel_size, const Shape& stride,
                                 const Shape& padding, const Shape& dilation) {
    return call<"_max_pool_backward", Tensor>(g[0], indices, volume_size(size),
                                                ShapeRef(kernel_size), ShapeRef(stride),
                                                ShapeRef(padding), ShapeRef(dilation));
  })),
})

OP(_max_pool_backward,
   "(Tensor grad, Tensor indices, int[] size, int[] kernel_size, int[] stride, int[] padding, "
   "int[] dilation) -> Tensor", {
  .home    = "core",
  .doc     = R"(Zeros of `size` with each element of grad added to the place that indices names.

The indices must be those that _max_pool found with the same windows.)",
  .dtypes  = floating,
  .batch   = [](const Batch& batch, const Tensor&, const Tensor&, ShapeRef size,
                ShapeRef kernel_size, ShapeRef stride, ShapeRef padding, ShapeRef dilation) {
    Tensor grad = batch.full("grad");
    Tensor volumes = call<"_max_pool_backward", Tensor>(
        joined_samples(grad), joined_samples(batch.full("indices")), size, kernel_size, stride,
        padding, dilation);
    return parted_samples(volumes, grad.size(0), grad.size(1));
  },
  .forward = [](const Tensor& grad, const Tensor& indices, ShapeRef size, ShapeRef kernel_size,
                ShapeRef stride, ShapeRef padding, ShapeRef dilation) {
    check_volumes(grad);
    CHECK(indices.sizes() == grad.sizes() && indices.dtype() == DType::int32,
          "indices must be int32 of the shape of grad, but have shape ", indices.sizes(),
          " and dtype ", dtype_name(indices.dtype()), ".");
    PoolWindows3d windows = make_windows(size, volume_size(grad.sizes()), kernel_size, stride,
                                         padding, dilation);
    return max_pool_backward_kernel(windows, grad, indices);
  },
  .saves   = saves<"indices">,
  .grads   = grads(
    d<"grad">([](const Tensor& g, const Tensor& indices, const Shape&, const Shape&, const Shape&,
                 const Shape&, const Shape&) {
      auto flat = [](const Tensor& t) {
        return call<"flatten", Tensor>(t, int64_t(2), int64_t(-1));
      };
      Tensor pixels = gather(flat(g), 2, flat(cast(indices, DType::int64)));
      return reshape(pixels, indices.sizes());
    }),
    no_grad<"indices">),
})

OP(_avg_pool,
   "(Tensor input, int[] out, int[] kernel_size, int[] stride, int[] padding, "
   "bool count_include_pad, int divisor) -> Tensor", {
  .home    = "core",
  .doc     = R"(The sums over windows, over the divisor or, if it is 0, the window's size.

An empty kernel_size gives adaptive windows; stride and padding are then not read.)",
  .dtypes  = kPoolable,
  .node    = "avg_pool2D",
  .batch   = by_images,
  .forward = [](const Tensor& input, ShapeRef out, ShapeRef kernel_size, ShapeRef stride,
                ShapeRef padding, bool count_include_pad, int64_t divisor) {
    check_volumes(input);
    PoolWindows3d windows = make_windows(volume_size(input.sizes()), out, kernel_size, stride,
                                         padding, no_dilation(out));
    return avg_pool_kernel(windows, {divisor, count_include_pad}, input);
  },
  .saves   = saves<"input.shape">,
  .grads   = grads(d<"input">([](const Tensor& g, const Shape& size, const Shape&,
                                 const Shape& kernel_size, const Shape& stride,
                                 const Shape& padding, bool count_include_pad, int64_t divisor) {
    return call<"_avg_pool_backward", Tensor>(g, volume_size(size), ShapeRef(kernel_size),
                                                ShapeRef(stride), ShapeRef(padding),
                                                count_include_pad, divisor);
  })),
})

OP(_avg_pool_backward,
   "(Tensor grad, int[] size, int[] kernel_size, int[] stride, int[] padding, "
   "bool count_include_pad, int divisor) -> Tensor", {
  .home    = "core",
  .doc     = R"(The gradient of _avg_pool for images or volumes of `size`.)",
  .dtypes  = floating,
  .batch   = by_images,
  .forward = [](const Tensor& grad, ShapeRef size, ShapeRef kernel_size, ShapeRef stride,
                ShapeRef padding, bool count_include_pad, int64_t divisor) {
    check_volumes(grad);
    PoolWindows3d windows = make_windows(size, volume_size(grad.sizes()), kernel_size, stride,
                                         padding, no_dilation(size));
    return avg_pool_backward_kernel(windows, {divisor, count_include_pad}, grad);
  },
  .saves   = saves<"grad.shape">,
  .grads   = grads(d<"grad">([](const Tensor& g, const Shape& out, const Shape&,
                                const Shape& kernel_size, const Shape& stride,
                                const Shape& padding, bool count_include_pad, int64_t divisor) {
    return call<"_avg_pool", Tensor>(g, volume_size(out), ShapeRef(kernel_size), ShapeRef(stride),
                                       ShapeRef(padding), count_include_pad, divisor);
  })),
})

}  // namespace rushlight
