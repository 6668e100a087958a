// Owns the kernels of index tensors: which elements input[indices] names, reading and writing them.
//
// NumPy's rule for the place of the index dims: where the first index stands when the indices stand
// side by side, else in front.
#pragma once

#include <vector>

#include "core/tensor/tensor.h"

namespace rushlight {

struct Picked {
  Shape before, shape, after;           // the result is of shape before + shape + after
  Shape before_strides, after_strides;  // of input, in elements
  Tensor offsets;                       // int64, one for each position of `shape`, in elements
  int64_t reach = 0;                    // the largest that an offset could be

  Shape sizes() const;
};

// Checks the indices. Undefined ones take the whole dim; a mask stands for the places of its true
// elements; negative numbers count from the end.
Picked pick(const Tensor& input, TensorList indices);
Tensor read_picked(const Tensor& input, const Picked& picked);
// Writes values, which broadcast to the picked shape, or adds them. Where an element is named twice
// the last value wins, or all are added in order, for any number of threads.
void write_picked(const Tensor& input, const Picked& picked, const Tensor& values, bool accumulate);

// to[i] += from[i] for a run of elements; steps are in bytes.
void add_run(DType dtype, char* to, int64_t to_step, const char* from, int64_t from_step,
             int64_t n);

// The places of the elements that are not zero: shape (count, dims), each column contiguous.
Tensor nonzero_places(const Tensor& input);

}  // namespace rushlight
