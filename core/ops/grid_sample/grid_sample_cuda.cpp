// Defines the kernels of grid_sample on CUDA, see grid_sample.cu.
#include <algorithm>

#include "core/base/ceil_div.h"
#include "core/device/cuda.h"
#include "core/device/cuda_kernel_map.h"
#include "core/device/cuda_memory.h"
#include "core/ops/grid_sample/grid_sample.h"
#include "core/ops/index/index_args.h"
#include "core/ops/operands.h"
#include "core/ops/ops.h"
#include "core/ops/sort/sort.h"
#include "core/tensor/cuda_types.h"

namespace rushlight {

extern const char* const grid_sample_cu;

namespace {

constexpr unsigned kThreads = 128;    // of a block
constexpr int64_t kWanted = 1 << 17;  // threads, so that a GPU is full

struct Variant {
  DType item;
  int dims, along;  // along: taps in each dim
  friend auto operator<=>(const Variant&, const Variant&) = default;

  int taps() const { return dims == 3 ? along * along * along : along * along; }
};

struct Kernels {
  cuda::CudaModule module;
  cuda::CudaKernel sample{module, "sample"}, grid_grad{module, "grid_grad"},
      list_taps{module, "list_taps"}, sum_shares{module, "sum_shares"},
      sum_parts{module, "sum_parts"};

  explicit Kernels(const Variant& v) : module(name(v), grid_sample_cu, prelude(v)) {}

  static std::string name(const Variant& v) {
    return std::string("grid_sample_") + std::to_string(v.dims) + "d<" + device_type(v.item) +
           ", " + std::to_string(v.along) + ">";
  }
  static std::string prelude(const Variant& v) {
    using cuda::define;
    return define("ITEM", device_type(v.item)) + define("DTYPE", "ITEM") +
           define("COMBINE", "wrapped_sum") +
           define("COMPUTE", device_type(compute_dtype(v.item))) +
           define("DIMS", std::to_string(v.dims)) + define("ALONG", std::to_string(v.along));
  }
};

Variant variant_of(const GridImage& image, DType dtype) {
  int along = image.mode == GridMode::nearest ? 1 : image.mode == GridMode::bilinear ? 2 : 4;
  return {dtype, image.dims, along};
}

cuda::CudaKernelFamily family([] {
  for (DType dtype : {DType::float32, DType::float16, DType::bfloat16})
    for (int dims : {2, 3})
      for (int along : {1, 2, 4})
        if (dims == 2 || along < 4) cuda::kernels_of<Kernels>(Variant{dtype, dims, along});
});

// What each pixel sums: the shares of the taps that see it, sorted by the pixel.
void sum_by_pixel(Kernels& kernels, const GridImage& image, int taps, const Tensor& grad,
                  const Tensor& grid, const Tensor& grad_input) {
  Device device = grad.device();
  DType compute = compute_dtype(grad.dtype());
  int64_t images = grad.size(0), places = images * image.places, positions = taps * places;
  int64_t nowhere = grad_input.numel();
  Tensor offsets = empty(Shape{positions}, DType::int64, device);
  Tensor weights = empty(Shape{positions}, compute, device);
  kernels.list_taps.launch({cuda::blocks_for(places, kThreads)}, {kThreads}, 0, image, images,
                           grid.address(), nowhere, offsets.address(), weights.address());
  Sorted sorted = sort_offsets(offsets, nowhere);

  auto item = int64_t(grad_input.itemsize());
  PickedArgs args{};
  args.picked = static_cast<char*>(grad_input.address());
  args.offsets = static_cast<const int64_t*>(sorted.values.address());
  args.order = static_cast<const int64_t*>(sorted.indices.address());
  args.offset_bytes = item;
  args.positions = positions;
  args.after_count = 1;
  args.total = image.channels * positions;
  args.before = {1, {image.channels}, {image.pixels * item}};
  PickedArgs by_chunk = args;
  int64_t chunks = by_chunk.positions = ceil_div(positions, kRunChunk);
  by_chunk.total = image.channels * chunks;
  cuda::CudaBuffer parts(size_t(by_chunk.total) * 2 * dtype_size(compute), device.index);
  kernels.sum_shares.launch({cuda::blocks_for(args.total, kIndexThreads)}, {kIndexThreads}, 0, args,
                            image, places, nowhere, grad.address(), weights.address(), parts.data(),
                            chunks);
  kernels.sum_parts.launch({cuda::blocks_for(by_chunk.total, kIndexThreads)}, {kIndexThreads}, 0,
                           args, by_chunk, nowhere, parts.data());
}

}  // namespace

Tensor grid_sample_on_cuda(GridSampling how, const Tensor& input, const Tensor& grid) {
  GridImage image = grid_image(how, input, grid);
  Shape sizes = grid.sizes();
  sizes.pop_back();
  sizes.insert(1, image.channels);
  Tensor result = empty(sizes, input.dtype(), input.device());
  if (result.numel() == 0) return result;
  Tensor x = to_contiguous(input), at = to_contiguous(grid);
  // Few places share their channels out among more threads.
  int64_t images = input.size(0), places = images * image.places;
  int64_t parts = std::clamp<int64_t>(kWanted / places, 1, std::min<int64_t>(image.channels, 1024));
  int64_t each = ceil_div(image.channels, parts);
  auto rows = unsigned(ceil_div(image.channels, each));
  cuda::DeviceGuard guard(result.device().index);
  cuda::kernels_of<Kernels>(variant_of(image, input.dtype()))
      .sample.launch({cuda::blocks_for(places, kThreads), rows}, {kThreads}, 0, image, images, each,
                     x.address(), at.address(), result.address());
  return result;
}

GridGradients grid_sample_backward_on_cuda(GridSampling how, const Tensor& grad,
                                           const Tensor& input, const Tensor& grid,
                                           bool wants_input, bool wants_grid) {
  GridImage image = grid_image(how, input, grid);
  Variant variant = variant_of(image, input.dtype());
  Tensor g = to_contiguous(grad), at = to_contiguous(grid);
  GridGradients gradients;
  cuda::DeviceGuard guard(grad.device().index);
  Kernels& kernels = cuda::kernels_of<Kernels>(variant);
  if (wants_input) {
    gradients.input = zeros(input.sizes(), input.dtype(), input.device());
    if (g.numel() > 0) sum_by_pixel(kernels, image, variant.taps(), g, at, gradients.input);
  }
  if (wants_grid) {
    gradients.grid = empty(grid.sizes(), grid.dtype(), grid.device());
    Tensor x = to_contiguous(input);
    int64_t images = input.size(0), places = images * image.places;
    kernels.grid_grad.launch({cuda::blocks_for(places, kThreads)}, {kThreads}, 0, image, images,
                             g.address(), x.address(), at.address(), gradients.grid.address());
  }
  return gradients;
}

}  // namespace rushlight
