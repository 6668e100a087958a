// Owns the kernels of sorting and of searching sorted rows. Sorts are stable; NaN is greater than
// every number.
#pragma once

#include "core/tensor/tensor.h"

namespace rushlight {

struct Sorted {
  Tensor values, indices;
};

// Uninitialized results for sort_rows, in memory as the input when it is sorted as a whole.
Sorted empty_sorted(const Tensor& input, int64_t dim, int64_t keep);
// The first `keep` elements of each row along dim, in order, and where they were.
Sorted sort_rows(const Tensor& input, int64_t dim, int64_t keep, bool descending);
Sorted sort_rows_cpu(const Tensor& input, int64_t dim, int64_t keep, bool descending);
Sorted sort_rows_cuda(const Tensor& input, int64_t dim, int64_t keep, bool descending);
// The elements that the sorted rows along dim have at `ranks`, and where they were. The ranks are
// int64 and have the sizes of the input but along dim; those out of range are taken as the nearest.
Sorted rows_at_ranks_cpu(const Tensor& input, const Tensor& ranks, int64_t dim);
// The medians of the rows along dim, and where they are: of two elements in the middle the lower. A
// row with NaN has NaN as its median, unless NaN is ignored.
Sorted medians_cpu(const Tensor& input, int64_t dim, bool ignore_nan);
// The last of the most frequent elements of each row along dim, and where it is; of several values
// the smallest counts. No NaN equals another.
Sorted modes_cpu(const Tensor& input, int64_t dim);
// The gradient of values that were taken from `indices` along dim of a tensor of this shape.
Tensor taken_backward(const Tensor& g, const Tensor& indices, const Shape& shape, int64_t dim);
// A contiguous vector of int64 on CUDA, all from 0 to `most`.
Sorted sort_offsets(const Tensor& offsets, int64_t most);

// Where each value would be inserted into its sorted row: before equals, or behind them when
// `right`. Both are row-major and of one dtype; `sorted` of one dim serves for all values.
void search_rows_cpu(const Tensor& places, const Tensor& sorted, const Tensor& values, bool right);
void search_rows_cuda(const Tensor& places, const Tensor& sorted, const Tensor& values, bool right);

}  // namespace rushlight
