// Declares the kernels of softmax and log_softmax.
#pragma once

#include "core/tensor/dims.h"

namespace rushlight {

enum class SoftmaxKind { softmax, log_softmax };

// For row-major tensors with elements; `blocks` has what is normalized as its length. The gradient
// is computed from that of the result and the result.
void softmax_cpu(SoftmaxKind kind, const Tensor& input, AroundDim blocks, const Tensor& result);
void softmax_backward_cpu(SoftmaxKind kind, const Tensor& grad, const Tensor& result,
                          AroundDim blocks, const Tensor& grad_input);
void softmax_cuda(SoftmaxKind kind, const Tensor& input, AroundDim blocks, const Tensor& result);
void softmax_backward_cuda(SoftmaxKind kind, const Tensor& grad, const Tensor& result,
                           AroundDim blocks, const Tensor& grad_input);

}  // namespace rushlight
