// Owns the ops that pool over regions of interest: rushlight.vision.ops gives them their arguments.
#include "core/ops/vision/roi.h"

#include "core/ops/joined_samples.h"
#include "core/ops/op.h"
#include "core/ops/same_device.h"

namespace rushlight {
namespace {

constexpr int64_t kMostBins = 1 << 12, kMostSamples = 1 << 12;  // along an axis

void check_pooling(const RoiPooling& how) {
  CHECK(how.down >= 1 && how.across >= 1 && how.down <= kMostBins && how.across <= kMostBins,
        ErrorKind::kValue, "output_size must be two numbers from 1 to ", kMostBins, ", but is (",
        how.down, ", ", how.across, ").");
  CHECK(how.samples <= kMostSamples, ErrorKind::kValue, "sampling_ratio must be at most ",
        kMostSamples, ", but is ", how.samples, ".");
}

void check_rois(const RoiPooling& how, const Tensor& input, const Tensor& rois) {
  check_pooling(how);
  CHECK(input.dim() == 4, "input must be (N, C, H, W), but has shape ", input.sizes(), ".");
  CHECK(rois.dim() == 2 && rois.size(1) == 5, "rois must be (R, 5), of (image, x1, y1, x2, y2), ",
        "but have shape ", rois.sizes(), ".");
  check_same_device(input, rois, "rois");
  CHECK(rois.dtype() == input.dtype() || (is_half(input.dtype()) && is_floating(rois.dtype())),
        "expected rois to have the same type as input, but input is ", dtype_name(input.dtype()),
        " and rois are ", dtype_name(rois.dtype()), ". Use rois.to(input.dtype).");
  CHECK(rois.size(0) == 0 || (input.size(2) > 0 && input.size(3) > 0),
        "input must have pixels where there are rois, but has shape ", input.sizes(), ".");
  if (how.by_planes())
    CHECK(input.size(1) % (how.down * how.across) == 0, "input channels must be a multiple of ",
          "pooling height * pooling width, but there are ", input.size(1), " channels and ",
          how.down, " * ", how.across, " bins.");
}

// The numbers of RoiPooling but its rule, as ops pass them on.
RoiPooling pooling_of(int64_t rule, double scale, int64_t down, int64_t across, int64_t samples) {
  return {RoiRule(rule), scale, down, across, samples};
}

Tensor pooled(RoiRule rule, const Tensor& input, const Tensor& rois, double scale, int64_t down,
              int64_t across, int64_t samples) {
  check_rois({rule, scale, down, across, samples}, input, rois);
  if (rule == RoiRule::maximum)
    return std::get<0>(
        call<"_roi_maxima", std::tuple<Tensor, Tensor>>(input, rois, scale, down, across));
  return call<"_roi_sums", Tensor>(input, rois, int64_t(rule), scale, down, across, samples);
}

Shape pooled_sizes(const RoiPooling& how, const Tensor& input, const Tensor& rois) {
  int64_t channels = how.by_planes() ? input.size(1) / (how.down * how.across) : input.size(1);
  return Shape{rois.size(0), channels, how.down, how.across};
}

// The rois of all samples of vmap, of `images` images each, as rois of all of their images.
Tensor joined_rois(const Batch& batch, int64_t images) {
  Tensor rois = batch.full("rois");  // (samples, R, 5)
  if (is_half(rois.dtype())) rois = cast(rois, DType::float32);
  Tensor before = cast(batch.numbers(rois) * images, rois.dtype());
  Tensor parts[] = {narrow(rois, 2, 0, 1) + before, narrow(rois, 2, 1, 4)};
  return joined_samples(cat(parts, 2));
}

}  // namespace

OP(_roi_sums,
   "(Tensor input, Tensor rois, int rule, float spatial_scale, int height, int width, "
   "int sampling_ratio) -> Tensor", {
  .home    = "core",
  .doc     = R"(The weighted sums over the bins of rois, by the number of a RoiRule.)",
  .dtypes  = floating,
  .batch   = [](const Batch& batch, const Tensor&, const Tensor& rois, int64_t rule,
                double spatial_scale, int64_t height, int64_t width, int64_t sampling_ratio) {
    Tensor input = batch.full("input");
    Tensor result = call<"_roi_sums", Tensor>(joined_samples(input),
                                              joined_rois(batch, input.size(1)), rule,
                                              spatial_scale, height, width, sampling_ratio);
    return parted_samples(result, input.size(0), rois.size(-2));
  },
  .forward = [](const Tensor& input, const Tensor& rois, int64_t rule, double spatial_scale,
                int64_t height, int64_t width, int64_t sampling_ratio) {
    RoiPooling how = pooling_of(rule, spatial_scale, height, width, sampling_ratio);
    Shape sizes = pooled_sizes(how, input, rois);
    if (input.device().is_meta() || checked_numel(sizes) == 0)
      return empty(sizes, input.dtype(), input.device());
    return (input.device().is_cuda() ? roi_sums_on_cuda : roi_sums_on_cpu)(how, input, rois);
  },
  .saves   = saves<"input.shape", "rois">,
  .grads   = grads(
    d<"input">([](const Tensor& g, const Shape& size, const Tensor& rois, int64_t rule,
                  double scale, int64_t, int64_t, int64_t samples) {
      return call<"_roi_sums_backward", Tensor>(g, rois, ShapeRef(size), rule, scale, samples);
    }),
    no_grad<"rois">),
})

OP(_roi_sums_backward,
   "(Tensor grad, Tensor rois, int[] size, int rule, float spatial_scale, int sampling_ratio) -> "
   "Tensor", {
  .home    = "core",
  .doc     = R"(The gradient of _roi_sums for an input of `size`.)",
  .dtypes  = floating,
  .batch   = [](const Batch& batch, const Tensor&, const Tensor&, ShapeRef size, int64_t rule,
                double spatial_scale, int64_t sampling_ratio) {
    Shape all(size.begin(), size.end());
    all[0] *= batch.size();
    Tensor result = call<"_roi_sums_backward", Tensor>(
        joined_samples(batch.full("grad")), joined_rois(batch, size[0]), ShapeRef(all), rule,
        spatial_scale, sampling_ratio);
    return parted_samples(result, batch.size(), size[0]);
  },
  .forward = [](const Tensor& grad, const Tensor& rois, ShapeRef size, int64_t rule,
                double spatial_scale, int64_t sampling_ratio) {
    RoiPooling how = pooling_of(rule, spatial_scale, grad.size(2), grad.size(3), sampling_ratio);
    if (grad.device().is_meta()) return empty(size, grad.dtype(), grad.device());
    if (grad.numel() == 0) return zeros(size, grad.dtype(), grad.device());
    return (grad.device().is_cuda() ? roi_sums_backward_on_cuda
                                    : roi_sums_backward_on_cpu)(how, grad, rois, size);
  },
  .saves   = saves<"grad.shape", "rois">,
  .grads   = grads(
    d<"grad">([](const Tensor& g, const Shape& bins, const Tensor& rois, const Shape&,
                 int64_t rule, double scale, int64_t samples) {
      return call<"_roi_sums", Tensor>(g, rois, rule, scale, bins[2], bins[3], samples);
    }),
    no_grad<"rois">),
})

OP(_roi_maxima,
   "(Tensor input, Tensor rois, float spatial_scale, int height, int width) -> "
   "(Tensor values, Tensor places)", {
  .home    = "core",
  .doc     = R"(The maxima over the bins of rois, and where in their planes they are (int64).

An empty bin has the value 0 and the place -1.)",
  .dtypes  = floating,
  .batch   = [](const Batch& batch, const Tensor&, const Tensor& rois, double spatial_scale,
                int64_t height, int64_t width) {
    Tensor input = batch.full("input");
    auto [values, places] = call<"_roi_maxima", std::tuple<Tensor, Tensor>>(
        joined_samples(input), joined_rois(batch, input.size(1)), spatial_scale, height, width);
    int64_t samples = input.size(0), count = rois.size(-2);
    return std::tuple(parted_samples(values, samples, count),
                      parted_samples(places, samples, count));
  },
  .forward = [](const Tensor& input, const Tensor& rois, double spatial_scale, int64_t height,
                int64_t width) {
    RoiPooling how{RoiRule::maximum, spatial_scale, height, width, 0};
    Shape sizes = pooled_sizes(how, input, rois);
    Device device = input.device();
    if (device.is_meta() || checked_numel(sizes) == 0)
      return std::tuple(empty(sizes, input.dtype(), device), empty(sizes, DType::int64, device));
    RoiMaxima found = (device.is_cuda() ? roi_maxima_on_cuda : roi_maxima_on_cpu)(how, input, rois);
    return std::tuple(found.values, found.places);
  },
  .saves   = saves<"input.shape", "rois", "places">,
  .grads   = grads(
    d<"input">([](TensorList g, const Shape& size, const Tensor& rois, const Tensor& places,
                  double, int64_t, int64_t) {
      int64_t pixels = size[2] * size[3];
      Tensor first = cast(select(rois, 1, 0), DType::int64) * (size[1] * pixels);
      Tensor channel = call<"arange", Tensor>(Scalar(size[1]), std::optional<DType>(DType::int64),
                                              std::optional<Device>(rois.device()));
      Tensor found = places >= 0.0;
      Tensor at = reshape(first, Shape{-1, 1, 1, 1}) + reshape(channel * pixels, Shape{-1, 1, 1}) +
                  places * cast(found, DType::int64);
      Tensor share = select(found, g[0], 0.0);
      Tensor flat = call<"index_add", Tensor>(new_zeros(g[0], Shape{checked_numel(size)}),
                                              int64_t(0), reshape(at, Shape{-1}),
                                              reshape(share, Shape{-1}), Scalar(1));
      return reshape(flat, size);
    }),
    no_grad<"rois">),
})

OP(_roi_align,
   "(Tensor input, Tensor rois, float spatial_scale, int height, int width, int sampling_ratio, "
   "bool aligned) -> Tensor", {
  .home    = "vision.ops",
  .doc     = R"(Means of bilinear samples in the bins of rois: what vision.ops.roi_align runs.

Args:
    input: (N, C, H, W).
    rois: (R, 5) of (image, x1, y1, x2, y2).
    spatial_scale: from the coordinates of rois to pixels.
    height: bins down.
    width: bins across.
    sampling_ratio: samples of a bin along each axis; about one for each pixel if not positive.
    aligned: whether rois are moved half a pixel to the left and up.)",
  .dtypes  = floating,
  .variants = function,
  .forward = [](const Tensor& input, const Tensor& rois, double spatial_scale, int64_t height,
                int64_t width, int64_t sampling_ratio, bool aligned) {
    return pooled(aligned ? RoiRule::align_halved : RoiRule::align, input, rois, spatial_scale,
                  height, width, sampling_ratio);
  },
})

OP(_roi_pool,
   "(Tensor input, Tensor rois, float spatial_scale, int height, int width) -> Tensor", {
  .home    = "vision.ops",
  .doc     = R"(The maxima over the bins of rois: what vision.ops.roi_pool runs.

Args:
    input: (N, C, H, W).
    rois: (R, 5) of (image, x1, y1, x2, y2).
    spatial_scale: from the coordinates of rois to pixels.
    height: bins down.
    width: bins across.)",
  .dtypes  = floating,
  .variants = function,
  .forward = [](const Tensor& input, const Tensor& rois, double spatial_scale, int64_t height,
                int64_t width) {
    return pooled(RoiRule::maximum, input, rois, spatial_scale, height, width, 0);
  },
})

OP(_ps_roi_align,
   "(Tensor input, Tensor rois, float spatial_scale, int height, int width, int sampling_ratio) "
   "-> Tensor", {
  .home    = "vision.ops",
  .doc     = R"(roi_align whose bins have planes of their own: what vision.ops.ps_roi_align runs.

Args:
    input: (N, C * height * width, H, W).
    rois: (R, 5) of (image, x1, y1, x2, y2).
    spatial_scale: from the coordinates of rois to pixels.
    height: bins down.
    width: bins across.
    sampling_ratio: samples of a bin along each axis; about one for each pixel if not positive.)",
  .dtypes  = floating,
  .variants = function,
  .forward = [](const Tensor& input, const Tensor& rois, double spatial_scale, int64_t height,
                int64_t width, int64_t sampling_ratio) {
    return pooled(RoiRule::align_planes, input, rois, spatial_scale, height, width, sampling_ratio);
  },
})

OP(_ps_roi_pool,
   "(Tensor input, Tensor rois, float spatial_scale, int height, int width) -> Tensor", {
  .home    = "vision.ops",
  .doc     = R"(Means in rois whose bins have planes of their own: what vision.ops.ps_roi_pool runs.

Args:
    input: (N, C * height * width, H, W).
    rois: (R, 5) of (image, x1, y1, x2, y2).
    spatial_scale: from the coordinates of rois to pixels.
    height: bins down.
    width: bins across.)",
  .dtypes  = floating,
  .variants = function,
  .forward = [](const Tensor& input, const Tensor& rois, double spatial_scale, int64_t height,
                int64_t width) {
    return pooled(RoiRule::mean_planes, input, rois, spatial_scale, height, width, 0);
  },
})

}  // namespace rushlight
