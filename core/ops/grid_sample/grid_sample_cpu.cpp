// Defines the kernels of grid_sample on the CPU: layouts and threads. A thread takes whole images,
// because several places of a grid may share an element of an image.
#include <algorithm>
#include <cstring>

#include "core/device/threads.h"
#include "core/ops/grid_sample/grid_sample.h"
#include "core/ops/grid_sample/grid_sample_loops.h"
#include "core/ops/operands.h"

namespace rushlight {

ISA_TABLES(GridLoops, grid_loops)

namespace {

constexpr int64_t kGrain = 4096;  // samples that are worth a thread

const GridLoops& loops() { return active(grid_loops_sets); }

char* at(const Tensor& tensor, int64_t image, int64_t elements) {
  return tensor.data<char>() + image * elements * int64_t(tensor.itemsize());
}

}  // namespace

Tensor grid_sample_on_cpu(GridSampling how, const Tensor& input, const Tensor& grid) {
  GridImage image = grid_image(how, input, grid);
  DType dtype = compute_dtype(input.dtype());
  Tensor x = prepared(input, dtype), places = prepared(grid, dtype);
  Shape sizes = grid.sizes();
  sizes.pop_back();
  sizes.insert(1, image.channels);
  Tensor result = empty(sizes, dtype);
  GridSampleLoop loop = loops().sample[dtype == DType::float64];
  if (result.numel() == 0) return to_dtype(result, input.dtype());
  int64_t work = image.channels * image.places;
  parallel_for(0, input.size(0), std::max<int64_t>(1, kGrain / work),
               [&](int64_t begin, int64_t end) {
                 for (int64_t n = begin; n < end; ++n)
                   loop(image, at(x, n, image.channels * image.pixels),
                        at(places, n, image.places * image.dims), at(result, n, work));
               });
  return to_dtype(result, input.dtype());
}

GridGradients grid_sample_backward_on_cpu(GridSampling how, const Tensor& grad, const Tensor& input,
                                          const Tensor& grid, bool wants_input, bool wants_grid) {
  GridImage image = grid_image(how, input, grid);
  DType dtype = compute_dtype(input.dtype());
  Tensor g = prepared(grad, dtype), x = prepared(input, dtype), places = prepared(grid, dtype);
  GridGradients gradients;
  if (wants_input) gradients.input = empty(input.sizes(), dtype);
  if (wants_grid) gradients.grid = empty(grid.sizes(), dtype);
  int64_t elements = image.channels * image.pixels, coordinates = image.places * image.dims;
  int64_t work = std::max<int64_t>(1, image.channels * image.places);
  GridBackwardLoop loop = loops().backward[dtype == DType::float64];
  parallel_for(0, input.size(0), std::max<int64_t>(1, kGrain / work),
               [&](int64_t begin, int64_t end) {
                 for (int64_t n = begin; n < end; ++n) {
                   char* to = wants_input ? at(gradients.input, n, elements) : nullptr;
                   // Zeros, which the additions find in the cache.
                   if (to) std::memset(to, 0, size_t(elements) * dtype_size(dtype));
                   loop(image, at(g, n, image.channels * image.places), at(x, n, elements),
                        at(places, n, coordinates), to,
                        wants_grid ? at(gradients.grid, n, coordinates) : nullptr);
                 }
               });
  if (wants_input) gradients.input = to_dtype(gradients.input, input.dtype());
  if (wants_grid) gradients.grid = to_dtype(gradients.grid, grid.dtype());
  return gradients;
}

}  // namespace rushlight
