// Owns the maxima over windows that Python calls.
#include "core/autograd/grad_mode.h"
#include "core/ops/lift.h"
#include "core/ops/op.h"
#include "core/ops/pool/pool.h"
#include "core/ops/pool/pool_arguments.h"

namespace rushlight {

using Pair = std::tuple<Tensor, Tensor>;

// Whether nobody asks where the maxima are: neither a gradient nor a mode, which is shown an op.
static bool needs_values_alone(const Tensor& input) {
  return input.device().is_cpu() && !input.is_hollow() && !is_lifted(input) &&
         !(call_watch.watchers & kWatchedByModes) &&
         !(is_grad_enabled() && gradient_edge_exists(input));
}

Pair max_pool_nd(int64_t dims, const Tensor& input, ShapeRef kernel_size,
                 const std::optional<ShapeRef>& stride, ShapeRef padding, ShapeRef dilation,
                 bool ceil_mode, bool with_indices) {
  PoolBatch batch(input, dims);
  PoolArguments a(dims, batch.volumes(), kernel_size, stride, padding, dilation, ceil_mode);
  if (!with_indices && needs_values_alone(input)) {
    ShapeRef size = ShapeRef(batch.volumes().sizes()).subspan(2);
    PoolWindows3d windows = make_windows(size, a.out, a.kernel, a.stride, a.padding, a.dilation);
    return {batch.restore(max_pool_kernel(windows, batch.volumes(), false).first), Tensor()};
  }
  auto [values, indices] =
      call<"_max_pool", Pair>(batch.volumes(), ShapeRef(a.out), ShapeRef(a.kernel),
                              ShapeRef(a.stride), ShapeRef(a.padding), ShapeRef(a.dilation));
  return {batch.restore(values), batch.restore(indices)};
}

namespace {

Pair with_long_indices(const Pair& pooled) {
  return {std::get<0>(pooled), cast(std::get<1>(pooled), DType::int64)};
}

// The forwards of the ops.
template <int64_t dims>
constexpr auto max_pool = [](const Tensor& input, ShapeRef kernel_size,
                             std::optional<ShapeRef> stride, ShapeRef padding, ShapeRef dilation,
                             bool ceil_mode) {
  return std::get<0>(
      max_pool_nd(dims, input, kernel_size, stride, padding, dilation, ceil_mode, false));
};
template <int64_t dims>
constexpr auto max_pool_with_indices = [](const Tensor& input, ShapeRef kernel_size,
                                          std::optional<ShapeRef> stride, ShapeRef padding,
                                          ShapeRef dilation, bool ceil_mode) {
  return with_long_indices(
      max_pool_nd(dims, input, kernel_size, stride, padding, dilation, ceil_mode, true));
};
template <int64_t dims>
constexpr auto adaptive_max_pool = [](const Tensor& input, ShapeRef output_size) {
  PoolBatch batch(input, dims);
  Shape out = pool_numbers(output_size, dims, 1, "output_size");
  auto [values, indices] = call<"_max_pool", Pair>(batch.volumes(), ShapeRef(out), ShapeRef(),
                                                   ShapeRef(), ShapeRef(), ShapeRef());
  return with_long_indices({batch.restore(values), batch.restore(indices)});
};

}  // namespace

OP(max_pool1d,
   "(Tensor input, int[1] kernel_size, int[1]? stride=None, int[1] padding=0, int[1] dilation=1, "
   "bool ceil_mode=False) -> Tensor", {
  .home    = "torch nn.functional",
  .doc     = R"(The maxima over windows of sequences.

Output length: floor((L + 2 * padding - dilation * (kernel_size - 1) - 1) / stride) + 1, rounded up
with ceil_mode.

Args:
    input: (N, C, L) or (C, L).
    kernel_size: length of the window.
    stride: step between windows; kernel_size if None.
    padding: -inf added at both ends, at most half of the window.
    dilation: distance between the window's elements.
    ceil_mode: whether a window may overhang the end.)",
  .dtypes  = kPoolable,
  .forward = max_pool<1>,
})

OP(max_pool1d_with_indices,
   "(Tensor input, int[1] kernel_size, int[1]? stride=None, int[1] padding=0, int[1] dilation=1, "
   "bool ceil_mode=False) -> (Tensor, Tensor)", {
  .home    = "torch nn.functional",
  .doc     = R"(What max_pool1d returns, and the places of the maxima in their sequences.)",
  .dtypes  = kPoolable,
  .forward = max_pool_with_indices<1>,
})

OP(max_pool2d,
   "(Tensor input, int[2] kernel_size, int[2]? stride=None, int[2] padding=0, int[2] dilation=1, "
   "bool ceil_mode=False) -> Tensor", {
  .home    = "torch nn.functional",
  .doc     = R"(The maxima over windows of images.

Output height: floor((H + 2 * padding - dilation * (kernel_size - 1) - 1) / stride) + 1, rounded up
with ceil_mode, and likewise the width.

Args:
    input: (N, C, H, W) or (C, H, W).
    kernel_size: height and width of the window.
    stride: step between windows; kernel_size if None.
    padding: -inf added at all sides, at most half of the window.
    dilation: distance between the window's elements.
    ceil_mode: whether a window may overhang the image.)",
  .dtypes  = kPoolable,
  .forward = max_pool<2>,
})

OP(max_pool2d_with_indices,
   "(Tensor input, int[2] kernel_size, int[2]? stride=None, int[2] padding=0, int[2] dilation=1, "
   "bool ceil_mode=False) -> (Tensor, Tensor)", {
  .home    = "torch nn.functional",
  .doc     = R"(What max_pool2d returns, and the places of the maxima in their flattened images.)",
  .dtypes  = kPoolable,
  .forward = max_pool_with_indices<2>,
})

OP(max_pool3d,
   "(Tensor input, int[3] kernel_size, int[3]? stride=None, int[3] padding=0, int[3] dilation=1, "
   "bool ceil_mode=False) -> Tensor", {
  .home    = "torch nn.functional",
  .doc     = R"(The maxima over windows of volumes: max_pool2d with a depth before the height.)",
  .dtypes  = kPoolable,
  .autocast = autocast::on_cpu(autocast::single),
  .forward = max_pool<3>,
})

OP(max_pool3d_with_indices,
   "(Tensor input, int[3] kernel_size, int[3]? stride=None, int[3] padding=0, int[3] dilation=1, "
   "bool ceil_mode=False) -> (Tensor, Tensor)", {
  .home    = "nn.functional",
  .doc     = R"(What max_pool3d returns, and the places of the maxima in their flattened volumes.)",
  .dtypes  = kPoolable,
  .forward = max_pool_with_indices<3>,
})

OP(adaptive_max_pool1d_with_indices, "(Tensor input, int[1] output_size) -> (Tensor, Tensor)", {
  .home    = "nn.functional",
  .doc     = R"(The maxima of the windows of adaptive_avg_pool1d, and their places.)",
  .dtypes  = floating,
  .forward = adaptive_max_pool<1>,
})

OP(adaptive_max_pool2d_with_indices, "(Tensor input, int[2] output_size) -> (Tensor, Tensor)", {
  .home    = "nn.functional",
  .doc     = R"(The maxima of the windows of adaptive_avg_pool2d, and their places.)",
  .dtypes  = floating,
  .forward = adaptive_max_pool<2>,
})

OP(adaptive_max_pool3d_with_indices, "(Tensor input, int[3] output_size) -> (Tensor, Tensor)", {
  .home    = "nn.functional",
  .doc     = R"(The maxima of the windows of adaptive_avg_pool3d, and their places.)",
  .dtypes  = floating,
  .autocast = autocast::on_cpu(autocast::single),
  .forward = adaptive_max_pool<3>,
})

}  // namespace rushlight
