// Owns the kernels of index tensors: which elements input[indices] names, reading and writing them.
//
// NumPy's rule for the place of the index dims: where the first index stands when the indices stand
// side by side, else in front.
#pragma once

#include <vector>

#include "core/ops/index/combine.h"
#include "core/ops/value.h"

namespace rushlight {

inline bool is_mask(const Tensor& index) {
  return index.defined() && (is_bool(index.dtype()) || index.dtype() == DType::uint8);
}

// Whether an index is a mask of input's first dims, to which one number can be written without a
// list of the places.
bool is_whole_mask(const Tensor& index, const Tensor& input);

struct Picked {
  Shape before, shape, after;           // the result is of shape before + shape + after
  Shape before_strides, after_strides;  // of input, in elements
  Tensor offsets;  // int64, one for each position of `shape`, in elements; may be the index itself
  int64_t reach = 0;      // the largest that an offset could be
  int64_t unit = 0;       // divides all offsets; 0 when all are 0
  bool distinct = false;  // no two offsets are equal

  Shape sizes() const;
};

// Checks the indices, unless that is done already. Undefined ones take the whole dim; a mask stands
// for the places of its true elements; negative numbers count from the end.
Picked pick(const Tensor& input, TensorList indices, bool checked = false);
Tensor read_picked(const Tensor& input, const Picked& picked);
// Writes values, which broadcast to the picked shape, or adds them. Where an element is named twice
// the last value wins, or all are added in order, for any number of threads.
void write_picked(const Tensor& input, const Picked& picked, const Tensor& values, bool accumulate);

// Refuses an index of slices along a dim that is no vector of int32 or int64.
void check_index_vector(const Tensor& index);
// Refuses a tensor on meta, where the shape of a result depends on values.
void check_has_values(const Tensor& tensor);

// The places of the elements that are not zero: shape (count, dims), each column contiguous.
Tensor nonzero_places(const Tensor& input);

// A row-major tensor, recorded: where results are so in PyTorch, whatever the order of the input.
Tensor in_row_major(const Tensor& t);

// The batching rules, see batch.h.
class Batch;
Tensor index_samples(const Batch& batch, const Tensor& input, TensorList indices);
Tensor index_put_samples(const Batch& batch, const Tensor& input, TensorList indices,
                         const Tensor& values, bool accumulate);

struct Bounds {
  int64_t least, greatest;
};
// Of a row-major int64 tensor with elements. On CUDA this waits for the device.
Bounds bounds_of(const Tensor& numbers);
// While a CUDA graph is captured nothing can wait: then a kernel refuses numbers that are not from
// `first` to `end` - 1 when the graph is replayed, and this is true. See Note [CUDA graphs].
bool leaves_check_to_device(const Tensor& numbers, int64_t first, int64_t end);
[[noreturn, gnu::cold]] void refuse_index(int64_t index, size_t dim, int64_t size);
// Refuses indices that are not from `first` to `end` - 1.
void check_bounds(const Tensor& index, int64_t first, int64_t end, size_t dim, int64_t size);

// The kernels, of what has elements.

// to[i] += index[i] * stride, for an index broadcast to `shape`; the first index finds no sum.
void add_offsets_cpu(const Tensor& to, const Shape& shape, const Tensor& index, size_t dim,
                     int64_t size, int64_t stride, bool is_first);
// Whether an index is row-major and all its places are from 0 to below `size`.
bool are_places_cpu(const Tensor& index, int64_t size);
void add_offsets_cuda(const Tensor& to, const Shape& shape, const Tensor& index, int64_t size,
                      int64_t stride);
void read_picked_cpu(const Tensor& input, const Picked& picked, const Tensor& out);
void read_picked_cuda(const Tensor& input, const Picked& picked, const Tensor& out);
// `source` broadcasts to the picked shape.
void write_picked_cpu(const Tensor& input, const Picked& picked, const Tensor& source,
                      bool accumulate);
void write_picked_cuda(const Tensor& input, const Picked& picked, const Tensor& source,
                       Scatter how);
Tensor nonzero_places_cpu(const Tensor& flags);
Tensor nonzero_places_cuda(const Tensor& flags);
Bounds bounds_of_cuda(const Tensor& numbers);

}  // namespace rushlight
