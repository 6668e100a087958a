// Owns the kernels of gather and scatter, where an index of the result's own shape picks the place
// along one dim.
#pragma once

#include "core/tensor/tensor.h"

namespace rushlight {

// How a value meets the element it is scattered to.
enum class Scatter { write, add, multiply, maximum, minimum };

Tensor gather_along(const Tensor& input, int64_t dim, const Tensor& index);
// input[..., index[...], ...] becomes or is combined with src[...]. Where an element is named
// twice the values come in the order of the index, for any number of threads.
void scatter_along(const Tensor& input, int64_t dim, const Tensor& index, const Tensor& src,
                   Scatter how);

}  // namespace rushlight
