// Declares what the families of reductions share: dtype rules, errors and the way of gradients
// back from a result to the elements that went into it.
#pragma once

#include "core/tensor/reduce.h"

namespace rushlight {

// The argument dim: an int or several, or all dims when it is None; and how a gradient gets it.
using Dims = std::optional<ShapeRef>;
using KeptDims = std::optional<Shape>;
inline Dims as_ref(const KeptDims& dim) { return dim ? Dims(*dim) : std::nullopt; }

// The dtype of a sum or product: `dtype` if given, int64 for integers and bool, else the input's.
DType sum_dtype(const Tensor& input, std::optional<DType> dtype);
// The dtype of a mean, variance or norm: floating or complex, else it raises.
DType mean_dtype(const Tensor& input, std::optional<DType> dtype);

// Refuses an extreme over no elements, in PyTorch's words and classes.
void check_extreme_exists(const Tensor& input, Dims dim, ErrorKind kind = ErrorKind::kIndex);

// A result, or its gradient, with the reduced dims back as size 1, so that it broadcasts.
Tensor restore_dims(const Tensor& result, const Shape& shape, const KeptDims& dim, bool keepdim);
// The gradient of a sum: the gradient of the result at each element.
Tensor spread(const Tensor& g, const Shape& shape, const KeptDims& dim, bool keepdim);
// The gradient of an extreme: shared equally by the elements that equal it.
Tensor share_among_equal(const Tensor& g, const Tensor& input, const Tensor& result,
                         const KeptDims& dim, bool keepdim);

// How many elements go into each result.
int64_t count_of(const Shape& shape, const KeptDims& dim);

}  // namespace rushlight
