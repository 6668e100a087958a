// Owns the three kernels of convolution. Each is linear in both of its operands, and the gradients
// of each are the other two, so that these three are all there is to differentiate.
//
// They work on whole batches and are not recorded. A channels_last operand gives a channels_last
// result.
#pragma once

#include <utility>

#include "core/device/onednn.h"
#include "core/tensor/tensor.h"

namespace rushlight {

// The kernels set dtype and layouts themselves; the rest says what is convolved with what.
using Convolution = onednn::Convolution;

// input convolved with weight, plus the bias if it is defined.
Tensor conv_forward(Convolution conv, const Tensor& input, const Tensor& weight,
                    const Tensor& bias);

// The gradient of the input.
Tensor conv_backward_input(Convolution conv, const Tensor& grad, const Tensor& weight);

// The gradients of the weight and, if wanted, of the bias.
std::pair<Tensor, Tensor> conv_backward_weight(Convolution conv, const Tensor& input,
                                               const Tensor& grad, bool wants_bias);

// ---- for each device ---------------------------------------------------------------------------

// The forms above with a place for the results, which have elements (but the weight may have none).
void conv_forward_on_cpu(const Convolution& conv, const Tensor& input, const Tensor& weight,
                         const Tensor& bias, const Tensor& output);
void conv_forward_on_cuda(const Convolution& conv, const Tensor& input, const Tensor& weight,
                          const Tensor& bias, const Tensor& output);
void conv_backward_input_on_cpu(const Convolution& conv, const Tensor& grad, const Tensor& weight,
                                const Tensor& grad_input);
void conv_backward_input_on_cuda(const Convolution& conv, const Tensor& grad, const Tensor& weight,
                                 const Tensor& grad_input);
void conv_backward_weight_on_cpu(const Convolution& conv, const Tensor& input, const Tensor& grad,
                                 const Tensor& grad_weight, const Tensor& grad_bias);
void conv_backward_weight_on_cuda(const Convolution& conv, const Tensor& input, const Tensor& grad,
                                  const Tensor& grad_weight);

// The tensor itself when it lies in a layout, else a copy.
Tensor in_layout(const Tensor& tensor, onednn::ImageLayout layout, int dims);

// The same convolution with leading dims of size 1.
Convolution in_three_dims(Convolution conv);

}  // namespace rushlight
