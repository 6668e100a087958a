// Owns the ops that sample images at the places of a grid, and those that make grids.
#include "core/ops/grid_sample/grid_sample.h"

#include "core/autograd/call_watch.h"
#include "core/ops/joined_samples.h"
#include "core/ops/op.h"
#include "core/ops/same_device.h"

namespace rushlight {
namespace {

constexpr GridSampling kBetweenPixels{GridMode::bilinear, GridPadding::zeros, GridUnits::pixels};

GridSampling sampling_of(int64_t mode, int64_t padding, bool align_corners) {
  CHECK(mode >= 0 && mode <= 2, "interpolation_mode must be 0 (bilinear), 1 (nearest) or 2 ",
        "(bicubic), but is ", mode, ".");
  CHECK(padding >= 0 && padding <= 2, "padding_mode must be 0 (zeros), 1 (border) or 2 ",
        "(reflection), but is ", padding, ".");
  return {GridMode(mode), GridPadding(padding), GridUnits(align_corners)};
}

void check_operands(GridSampling how, const Tensor& input, const Tensor& grid, int64_t dims) {
  CHECK(input.dim() == dims + 2 && grid.dim() == dims + 2, "expected ", dims + 2,
        "D input and grid, but got input with sizes ", input.sizes(), " and grid with sizes ",
        grid.sizes());
  check_same_device(input, grid, "grid");
  CHECK(input.dtype() == grid.dtype(), "expected input and grid to have same dtype, but input has ",
        dtype_name(input.dtype()), " and grid has ", dtype_name(grid.dtype()));
  CHECK(input.size(0) == grid.size(0), "expected grid and input to have same batch size, but got ",
        "input with sizes ", input.sizes(), " and grid with sizes ", grid.sizes());
  CHECK(grid.size(-1) == dims, "expected grid to have size ", dims, " in last dimension, but got ",
        "grid with sizes ", grid.sizes());
  for (int64_t d = 2; d < input.dim(); ++d)
    CHECK(input.size(d) > 0, "expected input to have non-empty spatial dimensions, but input has ",
          "sizes ", input.sizes(), " with dimension ", d, " being empty");
  CHECK(dims == 2 || how.mode != GridMode::bicubic, "bicubic interpolation only supports 4D input");
}

Tensor sampled(GridSampling how, const Tensor& input, const Tensor& grid, int64_t dims) {
  check_operands(how, input, grid, dims);
  if (input.device().is_cpu()) return grid_sample_on_cpu(how, input, grid);
  if (input.device().is_cuda()) return grid_sample_on_cuda(how, input, grid);
  Shape sizes = grid.sizes();
  sizes.pop_back();
  sizes.insert(1, input.size(1));
  return empty(sizes, input.dtype(), input.device());
}

// The fields that images and volumes share.
template <int64_t dims>
constexpr auto sample_grid =
    [](const Tensor& input, const Tensor& grid, int64_t mode, int64_t padding, bool align_corners) {
      return sampled(sampling_of(mode, padding, align_corners), input, grid, dims);
    };

std::tuple<Tensor, Tensor> gradients(GridSampling how, const Tensor& g, const Tensor& input,
                                     const Tensor& grid, GradMask<2> mask) {
  // Modes are shown the ops that the gradient is made of.
  bool is_watched = call_watch.watchers & kWatchedByModes;
  bool runs_kernel = !is_grad_enabled() && !is_watched && !g.is_hollow() && !input.is_hollow() &&
                     !grid.is_hollow() && !g.device().is_meta();
  auto backward = !runs_kernel           ? &grid_sample_backward_of_ops
                  : g.device().is_cuda() ? &grid_sample_backward_on_cuda
                                         : &grid_sample_backward_on_cpu;
  GridGradients found = backward(how, g, input, grid, mask[0], mask[1]);
  return {found.input, found.grid};
}

constexpr auto grid_gradients = [](const Tensor& g, const Tensor& input, const Tensor& grid,
                                   int64_t mode, int64_t padding, bool align_corners,
                                   GradMask<2> mask) {
  return gradients({GridMode(mode), GridPadding(padding), GridUnits(align_corners)}, g, input, grid,
                   mask);
};

// All samples of vmap as one batch.
template <FixedString name>
constexpr auto sample_batch = [](const Batch& batch, const Tensor&, const Tensor&, int64_t mode,
                                 int64_t padding, bool align_corners) {
  Tensor input = batch.full("input");
  Tensor result = call<name, Tensor>(joined_samples(input), joined_samples(batch.full("grid")),
                                     mode, padding, align_corners);
  return parted_samples(result, input.size(0), input.size(1));
};

// The coordinates of the centers of `size` pixels, or with align_corners of those from end to end.
Tensor centers(int64_t size, bool align_corners, const Tensor& like) {
  if (size <= 1) return zeros(Shape{size}, like.dtype(), like.device());
  Tensor steps =
      call<"linspace", Tensor>(Scalar(-1.0), Scalar(1.0), size, std::optional<DType>(like.dtype()),
                               std::optional<Device>(like.device()));
  // Rounded twice as in PyTorch: the last bit says on which side of a pixel a place lies.
  return align_corners ? steps : steps * double(size - 1) / double(size);
}

}  // namespace

GridImage grid_image(GridSampling how, const Tensor& input, const Tensor& grid) {
  int dims = int(input.dim()) - 2;
  GridImage image{how.mode, how.padding, how.units, dims, {}, input.size(1), 1, 1};
  for (int d = 0; d < dims; ++d) {
    image.sizes[d] = input.size(-1 - d);
    image.pixels *= image.sizes[d];
    image.places *= grid.size(1 + d);
  }
  CHECK(image.pixels < int64_t(1) << 30, "an image of ", image.pixels,
        " pixels is too large: it may have 2^30 - 1.");
  return image;
}

OP(grid_sampler_2d,
   "(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) -> "
   "Tensor", {
  .doc     = R"(The values of images at the places of a grid, see nn.functional.grid_sample.

Args:
    input: (N, C, H, W).
    grid: (N, H_out, W_out, 2) of x, y; -1 and 1 are the ends of the image.
    interpolation_mode: 0 bilinear, 1 nearest, 2 bicubic.
    padding_mode: 0 zeros, 1 border, 2 reflection.
    align_corners: whether -1 and 1 are the centers of the corner pixels.)",
  .dtypes  = floating,
  .variants = function,
  .node    = "grid_sampler2D",
  .autocast = {CastTo::single, CastTo::widest},
  .batch   = sample_batch<"grid_sampler_2d">,
  .forward = sample_grid<2>,
  .saves   = saves<"input", "grid">,
  .grads   = grads(d<"input", "grid">(grid_gradients)),
})

OP(grid_sampler_3d,
   "(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) -> "
   "Tensor", {
  .doc     = R"(The values of volumes at the places of a grid, see nn.functional.grid_sample.

Args:
    input: (N, C, D, H, W).
    grid: (N, D_out, H_out, W_out, 3) of x, y, z; -1 and 1 are the ends of the volume.
    interpolation_mode: 0 trilinear, 1 nearest.
    padding_mode: 0 zeros, 1 border, 2 reflection.
    align_corners: whether -1 and 1 are the centers of the corner voxels.)",
  .dtypes  = floating,
  .variants = function,
  .node    = "grid_sampler3D",
  .autocast = {CastTo::single, CastTo::widest},
  .batch   = sample_batch<"grid_sampler_3d">,
  .forward = sample_grid<3>,
  .saves   = saves<"input", "grid">,
  .grads   = grads(d<"input", "grid">(grid_gradients)),
})

OP(grid_sampler,
   "(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) -> "
   "Tensor", {
  .doc     = R"(grid_sampler_2d or grid_sampler_3d, by the dims of the input.)",
  .dtypes  = floating,
  .variants = function,
  .autocast = {CastTo::single, CastTo::widest},
  .forward = [](const Tensor& input, const Tensor& grid, int64_t interpolation_mode,
                int64_t padding_mode, bool align_corners) {
    CHECK(input.dim() == 4 || input.dim() == 5,
          "expected 4D or 5D input, but got input with sizes ", input.sizes());
    if (input.dim() == 5)
      return call<"grid_sampler_3d", Tensor>(input, grid, interpolation_mode, padding_mode,
                                             align_corners);
    return call<"grid_sampler_2d", Tensor>(input, grid, interpolation_mode, padding_mode,
                                           align_corners);
  },
})

OP(_sample_pixels, "(Tensor input, Tensor places) -> Tensor", {
  .home    = "core",
  .doc     = R"(The bilinear values of images at places (N, ..., 2) of x, y that count pixels.

Outside of an image everything is 0.)",
  .dtypes  = floating,
  .batch   = [](const Batch& batch, const Tensor&, const Tensor&) {
    Tensor input = batch.full("input");
    Tensor result = call<"_sample_pixels", Tensor>(joined_samples(input),
                                                   joined_samples(batch.full("places")));
    return parted_samples(result, input.size(0), input.size(1));
  },
  .forward = [](const Tensor& input, const Tensor& places) {
    return sampled(kBetweenPixels, input, places, 2);
  },
  .saves   = saves<"input", "places">,
  .grads   = grads(d<"input", "places">([](const Tensor& g, const Tensor& input,
                                           const Tensor& places, GradMask<2> mask) {
    return gradients(kBetweenPixels, g, input, places, mask);
  })),
})

OP(affine_grid_generator, "(Tensor theta, int[] size, bool align_corners) -> Tensor", {
  .doc     = R"(The grid of places that affine maps take the pixels of images to.

Args:
    theta: (N, 2, 3) or (N, 3, 4): a map per image, applied to (x, y, 1) or (x, y, z, 1).
    size: that of the images, (N, C, H, W) or (N, C, D, H, W).
    align_corners: whether -1 and 1 are the centers of the corner pixels.)",
  .dtypes  = floating_or_complex,
  .variants = function,
  .forward = [](const Tensor& theta, ShapeRef size, bool align_corners) {
    CHECK(size.size() == 4 || size.size() == 5,
          "expects 4 or 5 sizes, of images or volumes, but got ", ShapeText{size}, ".");
    int64_t dims = int64_t(size.size()) - 2;
    CHECK(theta.sizes() == (Shape{size[0], dims, dims + 1}), "Expected a batch of ", dims,
          "D affine matrices of shape ", Shape{size[0], dims, dims + 1}, " for size ",
          ShapeText{size}, ". Got ", theta.sizes(), ".");
    for (int64_t n : size.subspan(2))
      CHECK(n > 0, "Expected non-zero, positive output size. Got ", ShapeText{size});
    Shape all(size.begin() + 2, size.end());
    Tensor grid;  // one coordinate after the other, the last dim of the images first
    for (int64_t d = 0; d < dims; ++d) {
      Shape along(size_t(dims) + 1, 1);
      along[dims - 1 - d] = size[size_t(dims + 1 - d)];
      Tensor weight = reshape(select(theta, 2, d), Shape{size[0], dims});
      Tensor at = reshape(centers(along[dims - 1 - d], align_corners, theta), along);
      for (int64_t one = 0; one < dims; ++one) weight = unsqueeze(weight, 1);
      Tensor part = at * weight;  // (N, ..., D)
      grid = grid.defined() ? grid + part : part;
    }
    Tensor shift = select(theta, 2, dims);
    for (int64_t one = 0; one < dims; ++one) shift = unsqueeze(shift, 1);
    return grid + shift;
  },
})

}  // namespace rushlight
