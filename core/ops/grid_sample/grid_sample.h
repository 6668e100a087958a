// Owns sampling images at the places of a grid: its arguments, its kernels, and the same made of
// ops, for gradients of gradients.
//
// Shapes: input (N, C, ...) and grid (N, ..., D) with D coordinates per place, the last dim of the
// input first; the result is (N, C, ...). Nothing of the kernels is recorded.
#pragma once

#include <utility>

#include "core/ops/grid_sample/grid_args.h"
#include "core/tensor/tensor.h"

namespace rushlight {

struct GridSampling {
  GridMode mode;
  GridPadding padding;
  GridUnits units;
};

// How each image of the batch is sampled; raises where one is too large.
GridImage grid_image(GridSampling how, const Tensor& input, const Tensor& grid);

// The gradients of input and grid, undefined where they are not wanted.
struct GridGradients {
  Tensor input, grid;
};

Tensor grid_sample_on_cpu(GridSampling how, const Tensor& input, const Tensor& grid);
GridGradients grid_sample_backward_on_cpu(GridSampling how, const Tensor& grad, const Tensor& input,
                                          const Tensor& grid, bool wants_input, bool wants_grid);

Tensor grid_sample_on_cuda(GridSampling how, const Tensor& input, const Tensor& grid);
GridGradients grid_sample_backward_on_cuda(GridSampling how, const Tensor& grad,
                                           const Tensor& input, const Tensor& grid,
                                           bool wants_input, bool wants_grid);

// grid_sample_ops.cpp
GridGradients grid_sample_backward_of_ops(GridSampling how, const Tensor& grad, const Tensor& input,
                                          const Tensor& grid, bool wants_input, bool wants_grid);

}  // namespace rushlight
