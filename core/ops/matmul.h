// Owns the products behind mm, matmul, linear and their relatives, on tensors in memory.
//
// They choose among OpenBLAS, oneDNN and a loop for integers. Nothing is recorded, and transposed
// or broadcast operands are not copied as long as rows or columns lie without gaps.
#pragma once

#include "core/tensor/tensor.h"

namespace rushlight {

// a @ b for tensors of one dtype and at least two dims; those before the last two broadcast.
Tensor matmul_cpu(const Tensor& a, const Tensor& b);

// input @ weight.T + bias, where weight is a matrix and bias may be undefined.
Tensor linear_cpu(const Tensor& input, const Tensor& weight, const Tensor& bias);

// sum of input[i] * other[i] over two vectors of one dtype and length.
Tensor dot_cpu(const Tensor& input, const Tensor& other);

}  // namespace rushlight
