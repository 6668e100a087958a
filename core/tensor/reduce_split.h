// Owns the dims of a reduction as its loops walk them, and declares the loops of each device.
#pragma once

#include "core/tensor/reduce.h"
#include "core/tensor/tile_loop.h"

namespace rushlight {

// Some dims of the input, walked as one index whose last dim is the nearest in memory.
struct ReduceSpace {
  Shape sizes;
  Shape strides;  // in bytes
  int64_t numel = 1;

  void add(int64_t size, int64_t stride) {
    sizes.push_back(size);
    strides.push_back(stride);
    numel *= size;
  }
  int64_t run() const { return sizes.empty() ? 1 : sizes.back(); }
  int64_t rest_of_run(int64_t index) const {
    return sizes.size() <= 1 ? numel - index : sizes.back() - index % sizes.back();
  }
  int64_t run_stride() const { return strides.empty() ? 0 : strides.back(); }
};

struct ReduceSplit {
  ReduceSpace outputs, reduced;
  Shape output_strides;     // of the results, in elements
  bool reduced_is_nearest;  // a reduced dim is the nearest in memory of all
};

// Orders dims by their strides, joins those that are walked as one, and sorts them by role.
ReduceSplit split_dims(const Tensor& input, DimSet reduced);

// The kernels of the CPU for a result of `dtype`; raises where the reduction has no meaning.
const Reducer& reducer_of(Reduction reduction, DType dtype);

// Reduce elements, of which there are some, in the dtype `compute`; `second` may be undefined.
// With a `source`, the elements of the input, which is dense, are computed when their turn comes;
// they are left in the memory of the input, if it has any.
void run_reduce_cpu(Reduction reduction, const Tensor& input, DimSet dims, DType compute,
                    double parameter, const Tensor& first, const Tensor& second,
                    const RangedLoop* source = nullptr);
// Whether a reduction reads its input in ranges that are long enough for a source.
bool reads_ranges(const Tensor& input, DimSet dims, DType compute);
void run_reduce_cuda(Reduction reduction, const Tensor& input, DimSet dims, DType compute,
                     double parameter, const Tensor& first, const Tensor& second);

}  // namespace rushlight
