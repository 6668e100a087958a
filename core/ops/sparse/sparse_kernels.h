// Declares the kernels of products with sparse matrices. Nothing is recorded. A pattern of more
// than two dims is the block-diagonal matrix of all its matrices.
#pragma once

#include "core/tensor/sparse.h"

namespace rushlight {

// A matrix of a pattern and its values, transposed or not, times a dense matrix.
Tensor multiply_sparse_dense(const SparsePattern& pattern, const Tensor& values,
                             const Tensor& dense, bool transposed);
// For the entry in row r and column c: left[r, :] . right[c, :].
Tensor dots_of_entries(const SparsePattern& pattern, const Tensor& left, const Tensor& right);

// The product of two sparse matrices: coalesced indices, and values.
struct SparseProduct {
  Tensor indices, values;
};
SparseProduct multiply_sparse(const SparsePattern& a, const Tensor& a_values,
                              const SparsePattern& b, const Tensor& b_values);

}  // namespace rushlight
