// Declares the kernels of the normalizations. They take row-major tensors whose input, output and
// gradients have any one floating-point dtype; statistics are float64 for float64, else float32,
// and so are parameters on the CPU. On CUDA these may have any.
#pragma once

#include <tuple>

#include "core/tensor/tensor.h"

namespace rushlight {

// The input of batch_norm or group_norm, (samples, channels, inner): a plane is a channel of a
// sample. Statistics are those of cells: a channel of all samples or, where there are groups, a
// group of channels of one sample. With by_columns memory is (samples, inner, channels).
struct ChannelView {
  int64_t samples, channels, inner;
  int64_t groups;  // of a sample, 0 for batch_norm
  bool by_columns;

  int64_t cells() const { return groups ? samples * groups : channels; }
  int64_t planes_of_cell() const { return groups ? channels / groups : samples; }
  int64_t numel_of_cell() const { return planes_of_cell() * inner; }
  int64_t cell_of(int64_t plane) const {
    return groups ? plane / (channels / groups) : plane % channels;
  }
};

// output = (input - mean) / sqrt(var + eps) * weight + bias, with statistics by cell, var without
// Bessel's correction. With `training` they are written, else read; rstd is written always.
void channel_norm_cpu(const Tensor& input, const ChannelView& view, const Tensor& weight,
                      const Tensor& bias, bool training, double eps, const Tensor& mean,
                      const Tensor& var, const Tensor& rstd, const Tensor& output);

// (grad_input, grad_weight, grad_bias); `training` when mean and rstd came from the input itself.
std::tuple<Tensor, Tensor, Tensor> channel_norm_backward_cpu(const Tensor& grad,
                                                             const Tensor& input,
                                                             const ChannelView& view,
                                                             const Tensor& mean, const Tensor& rstd,
                                                             const Tensor& weight, bool training);

// With `training`, mean and rstd come from the input, and the running statistics, if they are
// defined, move towards them; else they come from the running ones.
void batch_norm_cuda(const Tensor& input, const ChannelView& view, const Tensor& weight,
                     const Tensor& bias, const Tensor& running_mean, const Tensor& running_var,
                     bool training, double momentum, double eps, const Tensor& output,
                     const Tensor& mean, const Tensor& rstd);
std::tuple<Tensor, Tensor, Tensor> batch_norm_backward_cuda(const Tensor& grad, const Tensor& input,
                                                            const ChannelView& view,
                                                            const Tensor& mean, const Tensor& rstd,
                                                            const Tensor& weight, bool training);

// Rows of n elements; writes output, mean and rstd (one per row). rms_norm has no mean: it is
// undefined, and so is bias.
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

// The rows of layer_norm with parameters by channel; writes mean and rstd, returns the output.
Tensor group_norm_cuda(const Tensor& input, const Tensor& weight, const Tensor& bias, double eps,
                       const Tensor& mean, const Tensor& rstd);
std::tuple<Tensor, Tensor, Tensor> group_norm_backward_cuda(const Tensor& grad, const Tensor& input,
                                                            const Tensor& mean, const Tensor& rstd,
                                                            const Tensor& weight);

}  // namespace rushlight
