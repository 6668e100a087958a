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
Tensor conv_cpu(Convolution conv, const Tensor& input, const Tensor& weight, const Tensor& bias);

// The gradient of the input.
Tensor conv_input_cpu(Convolution conv, const Tensor& grad, const Tensor& weight);

// The gradients of the weight and, if wanted, of the bias.
std::pair<Tensor, Tensor> conv_weight_cpu(Convolution conv, const Tensor& input, const Tensor& grad,
                                          bool wants_bias);

}  // namespace rushlight
