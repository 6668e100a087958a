// Declares the kernels of Fourier transforms along one or more dims of row-major tensors.
#pragma once

#include "core/tensor/tensor.h"

namespace rushlight {

// The transform of real or complex numbers; `in` may be `out` when they are complex.
void fft_c2c_cpu(const Tensor& in, const Tensor& out, ShapeRef dims, bool inverse, double scale);
// Of real numbers, of which the last of dims keeps the first n / 2 + 1 numbers.
void fft_r2c_cpu(const Tensor& in, const Tensor& out, ShapeRef dims, double scale);
// The inverse transform of such halves to real numbers.
void fft_c2r_cpu(const Tensor& in, const Tensor& out, ShapeRef dims, double scale);

// The same on CUDA.
void fft_c2c_cuda(const Tensor& in, const Tensor& out, ShapeRef dims, bool inverse, double scale);
void fft_r2c_cuda(const Tensor& in, const Tensor& out, ShapeRef dims, double scale);
void fft_c2r_cuda(const Tensor& in, const Tensor& out, ShapeRef dims, double scale);

}  // namespace rushlight
