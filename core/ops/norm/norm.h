// Declares the kernels of the normalisations. They take row-major tensors whose input, output and
// gradients have any one floating-point dtype; statistics are float64 for float64, else float32,
// and so are parameters on the CPU. On CUDA these may have any.
#pragma once

#include <tuple>

#include "core/tensor/tensor.h"

namespace rushlight {

// The input of batch_norm seen as (outer, channels, inner); inner is 1 for channels_last memory.
struct ChannelView {
  int64_t outer, channels, inner;
};

struct ChannelStats {
  Tensor mean, var;  // (channels), var without Bessel's correction
};
ChannelStats channel_stats_cpu(const Tensor& input, ChannelView view);

// output = (input - mean) / sqrt(var + eps) * weight + bias, by channel.
void batch_norm_cpu(const Tensor& input, ChannelView view, const Tensor& mean, const Tensor& rstd,
                    const Tensor& weight, const Tensor& bias, const Tensor& output);

// (grad_input, grad_weight, grad_bias); `training` when mean and rstd came from the input itself.
std::tuple<Tensor, Tensor, Tensor> batch_norm_backward_cpu(const Tensor& grad, const Tensor& input,
                                                           ChannelView view, const Tensor& mean,
                                                           const Tensor& rstd, const Tensor& weight,
                                                           bool training);

// With `training`, mean and rstd come from the input, and the running statistics, if they are
// defined, move towards them; else they come from the running ones.
void batch_norm_cuda(const Tensor& input, ChannelView view, const Tensor& weight,
                     const Tensor& bias, const Tensor& running_mean, const Tensor& running_var,
                     bool training, double momentum, double eps, const Tensor& output,
                     const Tensor& mean, const Tensor& rstd);
std::tuple<Tensor, Tensor, Tensor> batch_norm_backward_cuda(const Tensor& grad, const Tensor& input,
                                                            ChannelView view, const Tensor& mean,
                                                            const Tensor& rstd,
                                                            const Tensor& weight, bool training);

// Rows of n elements; writes output, mean and rstd (one per row).
void layer_norm_cpu(const Tensor& input, int64_t n, const Tensor& weight, const Tensor& bias,
                    double eps, const Tensor& output, const Tensor& mean, const Tensor& rstd);
void layer_norm_cuda(const Tensor& input, int64_t n, const Tensor& weight, const Tensor& bias,
                     double eps, const Tensor& output, const Tensor& mean, const Tensor& rstd);

// (grad_input, grad_weight, grad_bias), the last two (n), undefined when not wanted.
std::tuple<Tensor, Tensor, Tensor> layer_norm_backward_cpu(const Tensor& grad, const Tensor& input,
                                                           int64_t n, const Tensor& mean,
                                                           const Tensor& rstd, const Tensor& weight,
                                                           bool want_weight, bool want_bias);
std::tuple<Tensor, Tensor, Tensor> layer_norm_backward_cuda(const Tensor& grad, const Tensor& input,
                                                            int64_t n, const Tensor& mean,
                                                            const Tensor& rstd,
                                                            const Tensor& weight, bool want_weight,
                                                            bool want_bias);

}  // namespace rushlight
