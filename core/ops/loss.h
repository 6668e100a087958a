// Declares the kernels of nll_loss. All tensors are row-major: input (N, C, S), target (N, S) of
// int64, weight (C) or undefined. On the CPU the others are all float32 or all float64, and the
// classes have been checked. On CUDA input, output and gradients have any one floating-point dtype,
// weights float64 with float64 and else float32, and a class that does not exist gives NaN.
#pragma once

#include "core/tensor/tensor.h"

namespace rushlight {

enum class LossReduction : int64_t { none, mean, sum };

// Reads "none", "mean" or "sum"; raises ValueError for other words.
LossReduction parse_reduction(std::string_view reduction);

struct NllShape {
  int64_t batch, classes, inner;
};

// The losses (N, S), or their sum, or their mean weighted by class; `total_weight` is 0-d.
void nll_loss_cpu(const Tensor& input, const Tensor& target, const Tensor& weight, NllShape shape,
                  int64_t ignore_index, LossReduction reduction, const Tensor& output,
                  const Tensor& total_weight);
void nll_loss_backward_cpu(const Tensor& grad, const Tensor& target, const Tensor& weight,
                           const Tensor& total_weight, NllShape shape, int64_t ignore_index,
                           LossReduction reduction, const Tensor& grad_input);
void nll_loss_cuda(const Tensor& input, const Tensor& target, const Tensor& weight, NllShape shape,
                   int64_t ignore_index, LossReduction reduction, const Tensor& output,
                   const Tensor& total_weight);
void nll_loss_backward_cuda(const Tensor& grad, const Tensor& target, const Tensor& weight,
                            const Tensor& total_weight, NllShape shape, int64_t ignore_index,
                            LossReduction reduction, const Tensor& grad_input);

}  // namespace rushlight
