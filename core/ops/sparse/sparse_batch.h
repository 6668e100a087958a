// Declares how batches of compressed matrices are taken apart and put together.
//
// Their parts are those that Python sees: (batch..., lines + 1) starts, (batch..., entries) plain
// indices and (batch..., entries, ...) values, counted in each matrix by itself. Patterns have them
// as one block-diagonal matrix, Note [Sparse tensors] in tensor/sparse.h. For a single matrix both
// are the same.
#pragma once

#include <functional>

#include "core/ops/ops.h"
#include "core/tensor/sparse.h"

namespace rushlight {

// How many entries a matrix has; all entries of a COO tensor.
int64_t entries_of_matrix(const SparsePattern& pattern);
// The parts of a compressed pattern, read-only.
Tensor starts_by_matrix(const SparsePattern& pattern);
Tensor others_by_matrix(const SparsePattern& pattern);
// The values of any sparse tensor.
Tensor values_by_matrix(const Tensor& sparse);

// From contiguous parts by matrix: the lines of a pattern, where a line is `width` long, and its
// values.
EntryOrder joined_lines(const Tensor& starts, const Tensor& others, int64_t width);
Tensor by_entry(const Tensor& values, int64_t batch_dims);
// Raises unless each matrix along the first of the sizes has as many entries as the others.
void check_equal_counts(const EntryOrder& lines, ShapeRef sizes);

// The compressed tensor whose parts by matrix are what `change` makes of each part of another one;
// it knows of the batch dims only, which are the first ones of every part.
Tensor with_changed_batch(const Tensor& input, const std::function<Tensor(const Tensor&)>& change);

}  // namespace rushlight
