// Owns depthwise convolutions on the CPU, every channel by itself, where oneDNN has no code for
// them: for sequences and volumes, gradients of filters wider than 3, several filters for a
// channel, float64.
//
// Sums do not depend on the number of threads.
#pragma once

#include "core/ops/conv/conv.h"

namespace rushlight {

// The convolutions are depthwise by their is_depthwise(). Operands and results are row-major, of
// float32 or float64, and have elements; a bias may be null.
void depthwise_forward(const Convolution& conv, DType dtype, const void* input, const void* weight,
                       const void* bias, void* output);
void depthwise_backward_input(const Convolution& conv, DType dtype, const void* grad,
                              const void* weight, void* grad_input);
void depthwise_backward_weight(const Convolution& conv, DType dtype, const void* input,
                               const void* grad, void* grad_weight, void* grad_bias);

}  // namespace rushlight
