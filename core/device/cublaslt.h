// Owns the calls into cuBLASLt (the nvidia-cublas package), which is opened at first use.
//
// Matrices are row-major. Work goes to the current stream of the current device, and sums are taken
// in float32 for half types, in the same order each time. RUSHLIGHT_CUBLASLT=off makes it unused;
// another value names the library's file.
#pragma once

#include <cstdint>

#include "core/base/dtype.h"

namespace rushlight::cublaslt {

// How an operand lies: rows, or columns when `transposed`, are `stride` elements apart, their
// elements side by side; the matrices of a batch are `step` elements apart.
struct Operand {
  bool transposed;
  int64_t stride, step;
};

// c = alpha * a @ b + beta * c for a batch of matrices, plus n elements of bias in each row. c is
// dense, and no size is zero.
struct Gemm {
  DType dtype;
  int64_t batch, m, n, k;
  Operand a, b;
};

// Returns false, having done nothing, when the library is not there or has no code for the case.
// `bias` may be null.
bool gemm(const Gemm& gemm, double alpha, const void* a, const void* b, const void* bias,
          double beta, void* c);

// Whether float32 factors may be rounded to the 10 bits of TF32, which is several times as fast.
void allow_tf32(bool allow);
bool allows_tf32();

}  // namespace rushlight::cublaslt
