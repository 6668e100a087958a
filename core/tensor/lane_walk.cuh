// Owns how a kernel finds its elements in a LaneLayout.
#pragma once

#include "core/tensor/lane_layout.h"

namespace rushlight::on_cuda {

// Adds to each lane's offsets where the elements lie whose numbers, in the order of the dims, are
// in `numbers`, which is used up. Index is uint32_t where the numbers are below 2^31.
template <class Index, int lanes, int n, class Layout>
void find_elements(const Layout& layout, Index (&numbers)[n], int64_t (&offsets)[lanes][n]) {
#pragma unroll 1  // to save registers
  for (int d = layout.dims - 1; d >= 0; --d) {
#pragma unroll
    for (int e = 0; e < n; ++e) {
      Index index = numbers[e];
      numbers[e] = d > 0 ? layout.divide(d, index) : 0;
#pragma unroll
      for (int k = 0; k < lanes; ++k) offsets[k][e] += int64_t(index) * layout.strides[k][d];
    }
  }
}

}  // namespace rushlight::on_cuda
