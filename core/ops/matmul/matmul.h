// Owns the products behind mm, matmul, linear and their relatives, on tensors in memory.
//
// matmul_kernel.cpp brings tensors into the form of MatrixProducts: transposed or broadcast
// operands are not copied as long as rows or columns lie without gaps. Each device computes those.
// Nothing is recorded.
#pragma once

#include "core/tensor/tensor.h"

namespace rushlight {

// Refuses operands of two dtypes or devices.
void check_kinds(const Tensor& a, const Tensor& b, const char* a_name = "mat1",
                 const char* b_name = "mat2");
// Compares the last dim of a with the second to last of b, or with its only one.
void check_inner(const Tensor& a, const Tensor& b);

// a @ b for tensors of one dtype and at least two dims; those before the last two broadcast.
Tensor matmul_kernel(const Tensor& a, const Tensor& b);

// input @ weight.T + bias, where weight is a matrix and bias may be undefined.
Tensor linear_kernel(const Tensor& input, const Tensor& weight, const Tensor& bias);

// The same in float32 for an input and a weight of one half type; the bias is float32.
Tensor wide_linear_kernel(const Tensor& input, const Tensor& weight, const Tensor& bias);

// beta * input + alpha * a @ b, rounded once, for real floats of one dtype. The input has the
// result's shape and is not read when beta is 0; a and b have the same dims before the last two.
Tensor add_product_kernel(const Tensor& input, const Tensor& a, const Tensor& b, double beta,
                          double alpha);

// sum of input[i] * other[i] over two vectors of one dtype and length.
Tensor dot_kernel(const Tensor& input, const Tensor& other);

// Rows, or columns when `transposed`, lie `stride` elements apart, their elements side by side.
struct MatrixLayout {
  bool transposed;
  int64_t stride;

  int64_t row_stride() const { return transposed ? 1 : stride; }
  int64_t column_stride() const { return transposed ? stride : 1; }
};

struct Matrix {
  const char* data;
  MatrixLayout layout;
};

// c = alpha * a @ b + beta * c, plus the bias in each row, for a batch of matrices that lie some
// elements apart. Integers and complex numbers take no other factors than 1 and 0, which go with a
// bias too. c has elements; k may be 0.
struct MatrixProduct {
  DType dtype;
  int64_t m, n, k;
  Matrix a{}, b{};
  const char* bias = nullptr;  // n elements
  char* c;                     // dense
  int64_t batch = 1, a_step = 0, b_step = 0;
  double alpha = 1, beta = 0;
  bool is_wide = false;  // bias and c are float32, though the operands are halves

  DType out_dtype() const { return is_wide ? DType::float32 : dtype; }
  bool is_plain() const { return alpha == 1 && beta == 0; }
};

// Of halves oneDNN takes fewer dots than this one by one.
inline constexpr int64_t kFewDots = 32;

// Returns false, having done nothing, for half types when oneDNN does not take them.
bool multiply_on_cpu(const MatrixProduct& product);

// The same for half types with few rows or one column; returns false when there are more, or their
// sizes do not suit it.
bool multiply_few_rows(const MatrixProduct& product);
// How many rows are few: one by one they are done before oneDNN has packed the matrix, or, where it
// has no code for halves, before the matrix has become one of floats.
int64_t few_rows(DType dtype);

// On the current stream of the current device.
void multiply_on_cuda(const MatrixProduct& product);

}  // namespace rushlight
