// Owns grid_sample on CUDA, and its gradients. A thread takes a place of the grid; what places add
// to the gradient of the input is summed by the pixel, in the order of the places.
//   ITEM      the dtype in memory
//   COMPUTE   float or double
//   DIMS      2 or 3
//   ALONG     taps along each dim: 1 nearest, 2 bilinear, 4 bicubic
#include "core/tensor/formula.cuh"

#include "core/ops/grid_sample/grid_taps.h"
#include "core/ops/index/index_combine.cuh"
#include "core/tensor/convert.h"

namespace rushlight::on_cuda {

using Compute = COMPUTE;
constexpr int kTaps = DIMS == 3 ? ALONG * ALONG * ALONG : ALONG * ALONG;

// The tap's place among those of a dim.
constexpr int part(int tap, int dim) {
  return tap / (dim == 0 ? 1 : dim == 1 ? ALONG : ALONG * ALONG) % ALONG;
}

// The taps of a place, which are all combinations of those along the dims.
struct Taps {
  GridTaps<Compute, ALONG> axes[DIMS];
  int32_t offsets[kTaps];  // in the plane, -1 outside

  Taps(const GridImage& image, const ITEM* place) {
#pragma unroll
    for (int d = 0; d < DIMS; ++d) {
      GridAxis<Compute> axis(Compute(image.sizes[d]), image.units);
      axes[d] = grid_taps<ALONG>(convert<Compute>(place[d]), axis, image.padding);
    }
#pragma unroll
    for (int tap = 0; tap < kTaps; ++tap) {
      int32_t offset = 0, stride = 1;
      bool inside = true;
#pragma unroll
      for (int d = 0; d < DIMS; ++d) {
        int32_t index = int32_t(axes[d].index[part(tap, d)]), size = int32_t(image.sizes[d]);
        inside &= index >= 0 && index < size;
        offset += index * stride;
        stride *= size;
      }
      offsets[tap] = inside ? offset : -1;
    }
  }
  Compute weight(int tap) const {
    Compute product = axes[0].weight[part(tap, 0)];
#pragma unroll
    for (int d = 1; d < DIMS; ++d) product *= axes[d].weight[part(tap, d)];
    return product;
  }
  // The slope of a tap's weight along a dim, without regard to what lies outside.
  Compute slope(int tap, int dim) const {
    Compute product = 1;
#pragma unroll
    for (int d = 0; d < DIMS; ++d)
      product *= d == dim ? axes[d].slope[part(tap, d)] : axes[d].weight[part(tap, d)];
    return product;
  }
  Compute value(const ITEM* plane, int tap) const {
    return offsets[tap] < 0 ? Compute(0) : convert<Compute>(plane[offsets[tap]]);
  }
};

// Which place of which image a thread has; `number` counts those of all images.
struct Place {
  int64_t number, image, place;
  explicit Place(const GridImage& image_in)
      : number(thread_number()), image(number / image_in.places), place(number % image_in.places) {}
  // Where its element of a channel lies in (images, channels, places).
  int64_t element(const GridImage& of, int64_t channel) const {
    return (image * of.channels + channel) * of.places + place;
  }
};

// The samples of `each` channels for every row of blocks.
extern "C" __global__ void sample(GridImage image, int64_t images, int64_t each, const ITEM* input,
                                  const ITEM* grid, ITEM* output) {
  Place at(image);
  if (at.image >= images) return;
  Taps taps(image, grid + at.number * DIMS);
  Compute weights[kTaps];
#pragma unroll
  for (int tap = 0; tap < kTaps; ++tap) weights[tap] = taps.weight(tap);
  int64_t first = blockIdx.y * each;
  int64_t end = first + each < image.channels ? first + each : image.channels;
#pragma unroll 2
  for (int64_t c = first; c < end; ++c) {
    const ITEM* plane = input + (at.image * image.channels + c) * image.pixels;
    Compute sum = 0;
#pragma unroll
    for (int tap = 0; tap < kTaps; ++tap)
      sum = multiply_add(taps.value(plane, tap), weights[tap], sum);
    output[at.element(image, c)] = convert<ITEM>(sum);
  }
}

extern "C" __global__ void grid_grad(GridImage image, int64_t images, const ITEM* grad,
                                     const ITEM* input, const ITEM* grid, ITEM* grad_grid) {
  Place at(image);
  if (at.image >= images) return;
  Taps taps(image, grid + at.number * DIMS);
  Compute products[kTaps] = {};  // of the gradients and what each tap saw, over the channels
#pragma unroll 2
  for (int64_t c = 0; c < image.channels; ++c) {
    const ITEM* plane = input + (at.image * image.channels + c) * image.pixels;
    Compute g = convert<Compute>(grad[at.element(image, c)]);
#pragma unroll
    for (int tap = 0; tap < kTaps; ++tap)
      products[tap] = multiply_add(g, taps.value(plane, tap), products[tap]);
  }
#pragma unroll
  for (int d = 0; d < DIMS; ++d) {
    Compute sum = 0;
#pragma unroll
    for (int tap = 0; tap < kTaps; ++tap)
      sum = multiply_add(taps.slope(tap, d), products[tap], sum);
    grad_grid[at.number * DIMS + d] = convert<ITEM>(sum);
  }
}

// What the taps add to: the first channel's element of the input, or `nowhere`; (taps, places of
// all images).
extern "C" __global__ void list_taps(GridImage image, int64_t images, const ITEM* grid,
                                     int64_t nowhere, int64_t* offsets, Compute* weights) {
  Place at(image);
  if (at.image >= images) return;
  Taps taps(image, grid + at.number * DIMS);
#pragma unroll
  for (int tap = 0; tap < kTaps; ++tap) {
    int64_t to = tap * images * image.places + at.number, plane = at.image * image.channels;
    offsets[to] = taps.offsets[tap] < 0 ? nowhere : plane * image.pixels + taps.offsets[tap];
    weights[to] = taps.weight(tap);
  }
}

// The values that go to the gradient of the input, as index_combine.cuh wants them: positions are
// those of list_taps, and channels come before them.
struct Shares {
  const GridImage& image;
  int64_t places;  // of all images
  const ITEM* grad;
  const Compute* weights;

  Compute operator()(const PickedElement& element, int64_t position) const {
    int64_t number = position % places, n = number / image.places;
    // In (images, channels, places) the channels of the images before lie in between.
    int64_t at = number + (n * (image.channels - 1) + element.before) * image.places;
    return convert<Compute>(grad[at]) * weights[position];
  }
};
extern "C" __global__ void sum_shares(PickedArgs args, GridImage image, int64_t places,
                                      int64_t nowhere, const ITEM* grad, const Compute* weights,
                                      Compute* parts, int64_t chunks) {
  combine_run(args, nowhere, Shares{image, places, grad, weights}, parts, chunks);
}
extern "C" __global__ void sum_parts(PickedArgs args, PickedArgs by_chunk, int64_t nowhere,
                                     const Compute* parts) {
  combine_parts_of_runs(args, by_chunk, nowhere, parts);
}

}  // namespace rushlight::on_cuda
