// Owns the means over windows that Python calls, and lp_pool, which is made of them.
#include <algorithm>
#include <cmath>

#include "core/ops/op.h"
#include "core/ops/pool/pool_arguments.h"

namespace rushlight {
namespace {

// The forwards of the ops, which differ in their dims.
template <int64_t dims>
constexpr auto avg_pool = [](const Tensor& input, ShapeRef kernel_size,
                             std::optional<ShapeRef> stride, ShapeRef padding, bool ceil_mode,
                             bool count_include_pad, std::optional<int64_t> divisor) {
  CHECK(!divisor || *divisor != 0, "divisor must be not zero");
  PoolBatch batch(input, dims);
  PoolArguments a(dims, batch.volumes(), kernel_size, stride, padding, Shape{1}, ceil_mode);
  return batch.restore(call<"_avg_pool", Tensor>(
      batch.volumes(), ShapeRef(a.out), ShapeRef(a.kernel), ShapeRef(a.stride), ShapeRef(a.padding),
      count_include_pad, divisor.value_or(0)));
};

template <int64_t dims>
constexpr auto adaptive_avg_pool = [](const Tensor& input, ShapeRef output_size) {
  PoolBatch batch(input, dims);
  Shape out = pool_numbers(output_size, dims, 1, "output_size");
  const Tensor& volumes = batch.volumes();
  if (std::ranges::all_of(out, [](int64_t o) { return o == 1; })) {
    Shape spatial = volumes.dim() == 4 ? Shape{2, 3} : Shape{2, 3, 4};
    return batch.restore(mean(volumes, spatial, true));
  }
  return batch.restore(call<"_avg_pool", Tensor>(volumes, ShapeRef(out), ShapeRef(), ShapeRef(),
                                                 ShapeRef(), true, int64_t(0)));
};

// The roots of sums of powers: the means of windows times how many elements a window has.
template <int64_t dims>
constexpr auto lp_pool = [](const Tensor& input, double norm_type, ShapeRef kernel_size,
                            std::optional<ShapeRef> stride, bool ceil_mode) {
  CHECK(norm_type != 0, ErrorKind::kValue, "norm_type must not be zero, which has no root");
  if (std::isinf(norm_type)) {
    bool largest = norm_type > 0;
    Tensor sizes = largest ? abs(input) : -abs(input);
    Tensor norms = std::get<0>(
        max_pool_nd(dims, sizes, kernel_size, stride, Shape{0}, Shape{1}, ceil_mode, false));
    return largest ? norms : -norms;
  }
  Tensor means = avg_pool<dims>(pow(input, Scalar(norm_type)), kernel_size, stride, Shape{0},
                                ceil_mode, true, {});
  double count = 1;
  for (int64_t k : pool_numbers(kernel_size, dims, 1, "kernel_size")) count *= double(k);
  // Zero for negative sums, with a gradient of zero at 0, where the root has none.
  Tensor sums = sign(means) * call<"relu", Tensor>(abs(means), false) * Scalar(count);
  return pow(sums, Scalar(1.0 / norm_type));
};

}  // namespace

OP(avg_pool1d,
   "(Tensor input, int[1] kernel_size, int[1]? stride=None, int[1] padding=0, "
   "bool ceil_mode=False, bool count_include_pad=True) -> Tensor", {
  .home    = "torch nn.functional",
  .doc     = R"(The means over windows of sequences.

Output length: floor((L + 2 * padding - kernel_size) / stride) + 1, rounded up with ceil_mode.

Args:
    input: (N, C, L) or (C, L).
    kernel_size: length of the window.
    stride: step between windows; kernel_size if None.
    padding: zeros added at both ends, at most half of the window.
    ceil_mode: whether a window may overhang the end.
    count_include_pad: whether the padding counts among the elements.)",
  .dtypes  = kPoolable,
  .forward = [](const Tensor& input, ShapeRef kernel_size, std::optional<ShapeRef> stride,
                ShapeRef padding, bool ceil_mode, bool count_include_pad) {
    return avg_pool<1>(input, kernel_size, stride, padding, ceil_mode, count_include_pad, {});
  },
})

OP(avg_pool2d,
   "(Tensor input, int[2] kernel_size, int[2]? stride=None, int[2] padding=0, "
   "bool ceil_mode=False, bool count_include_pad=True, int? divisor_override=None) -> Tensor", {
  .home    = "nn.functional",
  .doc     = R"(The means over windows of images.

Output height: floor((H + 2 * padding - kernel_size) / stride) + 1, rounded up with ceil_mode, and
likewise the width.

Args:
    input: (N, C, H, W) or (C, H, W).
    kernel_size: height and width of the window.
    stride: step between windows; kernel_size if None.
    padding: zeros added at all sides, at most half of the window.
    ceil_mode: whether a window may overhang the image.
    count_include_pad: whether the padding counts among the elements.
    divisor_override: what to divide the sums by instead; integers are rounded towards zero.)",
  .dtypes  = kPoolable,
  .forward = avg_pool<2>,
})

OP(avg_pool3d,
   "(Tensor input, int[3] kernel_size, int[3]? stride=None, int[3] padding=0, "
   "bool ceil_mode=False, bool count_include_pad=True, int? divisor_override=None) -> Tensor", {
  .home    = "nn.functional",
  .doc     = R"(The means over windows of volumes: avg_pool2d with a depth before the height.)",
  .dtypes  = kPoolable,
  .autocast = autocast::on_cpu(autocast::single),
  .forward = avg_pool<3>,
})

OP(adaptive_avg_pool1d, "(Tensor input, int[1] output_size) -> Tensor", {
  .home    = "torch nn.functional",
  .doc     = R"(The means of `output_size` windows that share a sequence out as evenly as they can.

Output i is the mean of the elements from floor(i * L / output_size) to below
ceil((i + 1) * L / output_size).)",
  .dtypes  = floating,
  .forward = adaptive_avg_pool<1>,
})

OP(adaptive_avg_pool2d, "(Tensor input, int[2] output_size) -> Tensor", {
  .home    = "nn.functional",
  .doc     = R"(The means of `output_size` windows that share an image out as evenly as they can.

Along each dim, output i covers the elements from floor(i * size / output_size) to below
ceil((i + 1) * size / output_size).)",
  .dtypes  = floating,
  .forward = adaptive_avg_pool<2>,
})

OP(adaptive_avg_pool3d, "(Tensor input, int[3] output_size) -> Tensor", {
  .home    = "nn.functional",
  .doc     = R"(The means of `output_size` windows that share a volume out as evenly as they can.

Along each dim, output i covers the elements from floor(i * size / output_size) to below
ceil((i + 1) * size / output_size).)",
  .dtypes  = floating,
  .autocast = autocast::on_cpu(autocast::single),
  .forward = adaptive_avg_pool<3>,
})

OP(lp_pool1d,
   "(Tensor input, float norm_type, int[1] kernel_size, int[1]? stride=None, "
   "bool ceil_mode=False) -> Tensor", {
  .home    = "nn.functional",
  .doc     = R"(The p-norms of windows of sequences: sum(x ** p) ** (1 / p).

Args:
    input: (N, C, L) or (C, L).
    norm_type: p; 1 gives sums, inf and -inf the largest and smallest absolute values.
    kernel_size: length of the window.
    stride: step between windows; kernel_size if None.
    ceil_mode: whether a window may overhang the end.)",
  .dtypes  = real,
  .forward = lp_pool<1>,
})

OP(lp_pool2d,
   "(Tensor input, float norm_type, int[2] kernel_size, int[2]? stride=None, "
   "bool ceil_mode=False) -> Tensor", {
  .home    = "nn.functional",
  .doc     = R"(The p-norms of windows of images: sum(x ** p) ** (1 / p).

Args:
    input: (N, C, H, W) or (C, H, W).
    norm_type: p; 1 gives sums, inf and -inf the largest and smallest absolute values.
    kernel_size: height and width of the window.
    stride: step between windows; kernel_size if None.
    ceil_mode: whether a window may overhang the end.)",
  .dtypes  = real,
  .forward = lp_pool<2>,
})

OP(lp_pool3d,
   "(Tensor input, float norm_type, int[3] kernel_size, int[3]? stride=None, "
   "bool ceil_mode=False) -> Tensor", {
  .home    = "nn.functional",
  .doc     = R"(The p-norms of windows of volumes: sum(x ** p) ** (1 / p).

Args:
    input: (N, C, D, H, W) or (C, D, H, W).
    norm_type: p; 1 gives sums, inf and -inf the largest and smallest absolute values.
    kernel_size: depth, height and width of the window.
    stride: step between windows; kernel_size if None.
    ceil_mode: whether a window may overhang the end.)",
  .dtypes  = real,
  .autocast = autocast::single,
  .forward = lp_pool<3>,
})

}  // namespace rushlight
