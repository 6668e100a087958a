// Owns convolutions whose groups have few channels. Kernels take channels in blocks, so several
// groups are joined into one, with weights of zero between them. Measured: with tiles of bfloat16 a
// third of the time for groups of 8 channels, a quarter for those of 4; with AVX2 half of it for
// floats in groups of 4, and a third for their gradients.
//
// Operands and results lie in the layouts of the convolution. Every function returns false, its
// result without meaning, where that is not possible; the caller then takes its own way.
#pragma once

#include "core/ops/conv/conv.h"

namespace rushlight {

// The bias may be undefined, as may its gradient.
bool joined_forward(const Convolution& conv, const Tensor& input, const Tensor& weight,
                    const Tensor& bias, const Tensor& output);
bool joined_backward_input(const Convolution& conv, const Tensor& grad, const Tensor& weight,
                           const Tensor& grad_input);
bool joined_backward_weight(const Convolution& conv, const Tensor& input, const Tensor& grad,
                            const Tensor& grad_weight, const Tensor& grad_bias);

}  // namespace rushlight
