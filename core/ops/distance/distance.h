// Declares the kernels of distances between all pairs of points.
#pragma once

#include "core/tensor/tensor.h"

namespace rushlight {

// The distances of the rows of x1 (B, P, M) to those of x2 (B, R, M), shape (B, P, R). They are
// row-major float32 or float64 and have elements.
Tensor distances_cpu(const Tensor& x1, const Tensor& x2, double p);
// The distances of the rows of x (P, M) to the rows behind them, P * (P - 1) / 2 in one dim.
Tensor distances_of_rows_cpu(const Tensor& x, double p);
// The gradient of x1, from those of the distances.
Tensor distances_grad_cpu(const Tensor& g, const Tensor& x1, const Tensor& x2, double p,
                          const Tensor& distances);

}  // namespace rushlight
