// Declares the checks on layouts, and on indices that come from outside. What they let through,
// kernels trust.
#pragma once

#include "core/tensor/sparse.h"

namespace rushlight {

const Tensor& expect_sparse(const Tensor& input);
const SparsePattern& expect_coo(const Tensor& input);

struct CooParts {
  Tensor indices;  // a copy: int64, row-major
  Shape sparse_sizes;
};
// Without a size it is the smallest that holds the indices. `in_order` claims that they are
// sorted and distinct.
CooParts checked_coo(const Tensor& indices, const Tensor& values, std::optional<ShapeRef> size,
                     bool in_order);

struct CompressedParts {
  EntryOrder lines;    // copies
  Shape sizes, block;  // as those of a SparsePattern
  bool in_order;       // along each row or column indices grow
};
CompressedParts checked_compressed(const Tensor& compressed, const Tensor& plain,
                                   const Tensor& values, std::optional<ShapeRef> size,
                                   Layout layout);

// A COO tensor without entries.
Tensor empty_coo(ShapeRef sizes, int64_t sparse_dim, DType dtype);

}  // namespace rushlight
