// Declares the kernels of softmax and log_softmax.
#pragma once

#include "core/tensor/dims.h"

namespace rushlight {

enum class SoftmaxKind { softmax, log_softmax };

// The dim to normalize along; without one PyTorch's rule holds: 0 for 0, 1 or 3 dims, else 1.
int64_t softmax_dim(std::optional<int64_t> dim, int64_t ndim);

// The softmax of floating-point numbers along `dim`, row-major in `dtype`.
Tensor softmax_kernel(SoftmaxKind kind, const Tensor& input, int64_t dim, DType dtype);
// The gradient of the input in grad's dtype, from that of the result and the result.
Tensor softmax_backward_kernel(SoftmaxKind kind, const Tensor& grad, const Tensor& result,
                               int64_t dim);

// The same by device, for row-major tensors with elements; `blocks` has what is normalized as its
// length.
void softmax_cpu(SoftmaxKind kind, const Tensor& input, AroundDim blocks, const Tensor& result);
void softmax_backward_cpu(SoftmaxKind kind, const Tensor& grad, const Tensor& result,
                          AroundDim blocks, const Tensor& grad_input);
void softmax_cuda(SoftmaxKind kind, const Tensor& input, AroundDim blocks, const Tensor& result);
void softmax_backward_cuda(SoftmaxKind kind, const Tensor& grad, const Tensor& result,
                           AroundDim blocks, const Tensor& grad_input);

}  // namespace rushlight
