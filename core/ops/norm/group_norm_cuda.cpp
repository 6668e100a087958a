// Owns group_norm on CUDA: a group of a sample is a row of layer_norm.cu; what channels do to it
// are ops, and so are their gradients.
#include "core/ops/norm/by_channel.h"
#include "core/ops/norm/norm.h"
#include "core/ops/operands.h"

namespace rushlight {
namespace {

Tensor in_rows(const Tensor& t, const Tensor& mean) {
  return reshape(t, Shape{mean.sizes()[0], mean.sizes()[1], -1});
}

}  // namespace

Tensor group_norm_cuda(const Tensor& input, const Tensor& weight, const Tensor& bias, double eps,
                       const Tensor& mean, const Tensor& rstd) {
  Tensor x = prepared(in_rows(input, mean), input.dtype());
  Tensor z = empty(x.sizes(), x.dtype(), x.device());
  layer_norm_cuda(x, x.sizes()[2], Tensor(), Tensor(), eps, z, mean, rstd);
  return scaled_by_channel(reshape(z, input.sizes()), weight, bias);
}

std::tuple<Tensor, Tensor, Tensor> group_norm_backward_cuda(const Tensor& grad, const Tensor& input,
                                                            const Tensor& mean, const Tensor& rstd,
                                                            const Tensor& weight) {
  Tensor h = weight.defined() ? grad * by_channel(weight, input.dim()) : grad;
  Tensor x = prepared(in_rows(input, mean), input.dtype());
  Tensor rows = prepared(in_rows(h, mean), input.dtype());
  auto [grad_rows, no_weight, no_bias] =
      layer_norm_backward_cuda(rows, x, x.sizes()[2], mean, rstd, Tensor(), false, false);
  Shape each{mean.sizes()[0], mean.sizes()[1], 1}, dims = all_but_channel(input.dim());
  Tensor z = reshape((x - reshape(mean, each)) * reshape(rstd, each), input.sizes());
  return {reshape(grad_rows, input.sizes()), sum(grad * z, dims),
          sum(cast(grad, mean.dtype()), dims)};
}

}  // namespace rushlight
