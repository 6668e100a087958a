// Declares what the losses share, and the kernels of nll_loss and cross_entropy. All tensors of
// nll_loss are row-major: input (N, C, S) and its gradient, of any one floating-point dtype, target
// (N, S) of int64, weight (C) or undefined, of float64 with float64 and else float32. The classes
// have been checked, and one that was written since, by another thread or through memory that
// target shares, counts as ignored on the CPU; on CUDA a class that does not exist gives NaN.
// Tensors of cross_entropy are all float32 or all float64.
#pragma once

#include "core/base/error.h"
#include "core/tensor/tensor.h"

namespace rushlight {

enum class LossReduction : int64_t { none, mean, sum };

// Reads "none", "mean" or "sum"; raises ValueError for other words.
LossReduction parse_reduction(std::string_view reduction);
// PyTorch's former arguments size_average and reduce.
using Legacy = std::optional<bool>;
// The reduction that they stand for, with PyTorch's warning, when one is given.
std::string_view reduction_of(std::string_view reduction, Legacy size_average, Legacy reduce);
// The losses, times a weight of the input's sizes if there is one.
Tensor weighted_losses(const Tensor& losses, const Tensor& weight, const Tensor& input);
// Warns when target would be broadcast with input, which is a mistake more often than not.
void warn_of_broadcast(const Tensor& input, const Tensor& target);

// Raises unless target is of int64 or uint8 and, on the CPU, every class lies in [0, classes) or is
// the ignored one: the first bad one is named with its position, by an error of the kind.
// Elsewhere that would have to be waited for.
void check_classes(const Tensor& target, int64_t classes, std::optional<int64_t> ignored,
                   ErrorKind kind);
// Of an input of these sizes: the classes are dim 1, or dim 0 of one without a batch. Kernels check
// it anew, because a program may replace the .data of what was saved.
void check_class_sizes(const Shape& sizes, const Tensor& target, const Tensor& weight);
// Refuses a weight that has not one number for each class.
void check_class_weight(const Tensor& weight, int64_t classes);
// All that the losses over classes ask of their arguments.
void check_class_loss(const Tensor& input, const Tensor& target, const Tensor& weight,
                      int64_t ignore_index);
inline int64_t class_dim(const Tensor& input) { return input.dim() == 1 ? 0 : 1; }
// A single class may come as a vector of one.
Tensor as_class_target(const Tensor& input, const Tensor& target);

struct NllShape {
  int64_t batch, classes, inner;
};
inline bool is_class(int64_t c, int64_t classes, int64_t ignore_index) {
  return c != ignore_index && uint64_t(c) < uint64_t(classes);
}

// The op _label_margins.
void label_margins_cpu(const Tensor& input, const Tensor& targets, const Tensor& others,
                       int64_t count, const Tensor& losses);

// The losses (N, S), or their sum, or their mean weighted by class; `total_weight` is 0-d.
void nll_loss_cpu(const Tensor& input, const Tensor& target, const Tensor& weight, NllShape shape,
                  int64_t ignore_index, LossReduction reduction, const Tensor& output,
                  const Tensor& total_weight);
// Writes the gradient at each target into zeros.
void nll_loss_backward_cpu(const Tensor& grad, const Tensor& target, const Tensor& weight,
                           const Tensor& total_weight, NllShape shape, int64_t ignore_index,
                           LossReduction reduction, const Tensor& grad_input);
void nll_loss_cuda(const Tensor& input, const Tensor& target, const Tensor& weight, NllShape shape,
                   int64_t ignore_index, LossReduction reduction, const Tensor& output,
                   const Tensor& total_weight);
void nll_loss_backward_cuda(const Tensor& grad, const Tensor& target, const Tensor& weight,
                            const Tensor& total_weight, NllShape shape, int64_t ignore_index,
                            LossReduction reduction, const Tensor& grad_input);

// cross_entropy of rows of logits (N, C), for classes that have been checked: the losses (N), their
// sum or mean; the largest logit of each row and the logarithm of the sum of exp(logit - largest),
// both in `normalizer` (2, N); the sum of the weights of the targets. All but target are float32,
// or all float64.
struct CrossEntropy {
  int64_t ignore_index;
  LossReduction reduction;
  double smoothing;
};
void cross_entropy_cpu(const Tensor& input, const Tensor& target, const Tensor& weight,
                       const CrossEntropy& how, const Tensor& output, const Tensor& normalizer,
                       const Tensor& total_weight);
void cross_entropy_backward_cpu(const Tensor& grad, const Tensor& input, const Tensor& normalizer,
                                const Tensor& target, const Tensor& weight,
                                const Tensor& total_weight, const CrossEntropy& how,
                                const Tensor& grad_input);

}  // namespace rushlight
