// Owns the kernels of gather and scatter, where an index of the result's own shape picks the place
// along one dim.
#pragma once

#include "core/ops/index/index.h"

namespace rushlight {

// input[..., index[...], ...] becomes or is combined with src[...]. Where an element is named
// twice the values come in the order of the index, for any number of threads.
void scatter_along(const Tensor& input, int64_t dim, const Tensor& index, const Tensor& src,
                   Scatter how);

// The kernels, of tensors with dims and elements; the index is of int64.
void gather_cpu(const Tensor& input, size_t dim, const Tensor& index, const Tensor& out);
void gather_cuda(const Tensor& input, size_t dim, const Tensor& index, const Tensor& out);
void scatter_cpu(const Tensor& input, size_t dim, const Tensor& index, const Tensor& src,
                 Scatter how);
void scatter_cuda(const Tensor& input, size_t dim, const Tensor& index, const Tensor& src,
                  Scatter how);
// How often each number from 0 to below `length` occurs in a row-major vector of such numbers.
Tensor occurrences_cpu(const Tensor& numbers, int64_t length);

}  // namespace rushlight
