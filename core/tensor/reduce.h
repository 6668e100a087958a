// Owns the reduce loop: every reduction, over any dims of any layout, runs here.
//
// How the elements are grouped follows from the shape and the layout alone, never from the number
// of threads or the instruction set, so the digits of a result are the same everywhere.
// Rounding errors grow with the logarithm of the number of elements: see Note [Pairwise sums].
#pragma once

#include <bitset>
#include <utility>

#include "core/tensor/reduce_loops.h"
#include "core/tensor/tensor.h"

namespace rushlight {

using DimSet = std::bitset<kMaxDims>;

// The dims of a tensor of `ndim` dims that `dim` names; all of them when it is absent or empty.
DimSet reduced_dims(std::optional<ShapeRef> dim, int64_t ndim);

// The shape of a result: the reduced dims have size 1, or are gone.
Shape reduced_sizes(ShapeRef sizes, DimSet dims, bool keepdim);

// How many elements go into each result.
int64_t reduced_numel(ShapeRef sizes, DimSet dims);

// Reduces `input`, converted to `dtype`, over `dims`; the result has this dtype. Half types are
// accumulated in float32, integers in int64. Over no elements at all a sum is 0, a product 1, a
// norm 0, log_sum_exp -inf, a mean or variance NaN; an extreme does not exist and raises.
Tensor reduce(Reduction reduction, const Tensor& input, DimSet dims, bool keepdim, DType dtype,
              double parameter = 0);

// How many elements are not zero, int64.
Tensor count_nonzero(const Tensor& input, DimSet dims);

// A reduction with two results: both of `dtype`, but positions are int64. A position is that in
// the only reduced dim, or in the row-major order of all elements.
std::pair<Tensor, Tensor> reduce_pair(Reduction reduction, const Tensor& input, DimSet dims,
                                      bool keepdim, DType dtype, double parameter = 0);

}  // namespace rushlight
