// Owns the kernels that find out which elements an index names: places in memory, the range of the
// indices, and the places of true flags.
#include "core/ops/block_scan.cuh"
#include "core/ops/index/index_layout.cuh"

namespace rushlight::on_cuda {

// offsets[i] += index[i] * stride, for an index that broadcasts to the shape of `layout`.
extern "C" __global__ void add_offsets(int64_t* offsets, const int64_t* index, IndexLayout layout,
                                       int64_t count, int64_t size, int64_t stride) {
  int64_t i = thread_number();
  if (i >= count) return;
  int64_t at = index[place_of(layout, i)];
  offsets[i] += (at < 0 ? at + size : at) * stride;
}

// The places of elements of a layout, moved along one more dim by an index of the same shape.
extern "C" __global__ void offsets_along(int64_t* offsets, const int64_t* index, IndexLayout layout,
                                         int64_t count, int64_t stride) {
  int64_t i = thread_number();
  if (i < count) offsets[i] = place_of(layout, i) + index[i] * stride;
}

// The least and the greatest of all values, together with those in bounds[0] and bounds[1].
extern "C" __global__ void find_bounds(const int64_t* values, int64_t count, int64_t* bounds) {
  int64_t least = values[0], greatest = values[0], step = int64_t(gridDim.x) * blockDim.x;
  for (int64_t i = thread_number(); i < count; i += step) {
    int64_t value = values[i];
    least = value < least ? value : least;
    greatest = value > greatest ? value : greatest;
  }
  for (int lanes = 16; lanes > 0; lanes /= 2) {
    int64_t low = __shfl_xor_sync(~0u, least, lanes), high = __shfl_xor_sync(~0u, greatest, lanes);
    least = low < least ? low : least;
    greatest = high > greatest ? high : greatest;
  }
  if (threadIdx.x % 32) return;
  atomicMin(reinterpret_cast<long long*>(bounds), static_cast<long long>(least));
  atomicMax(reinterpret_cast<long long*>(bounds + 1), static_cast<long long>(greatest));
}

// Ends all work of the process on the device if a value is not from `first` to `end` - 1; for CUDA
// graphs, which cannot tell the host.
extern "C" __global__ void require_range(const int64_t* values, int64_t count, int64_t first,
                                         int64_t end) {
  int64_t i = thread_number();
  if (i < count && (values[i] < first || values[i] >= end)) __trap();
}

// How many flags of each block's share are true.
extern "C" __global__ void count_flags(const bool* flags, int64_t numel, int64_t* counts) {
  int64_t first = int64_t(blockIdx.x) * kFlagsPerBlock + threadIdx.x;
  int count = 0;
  for (int k = 0; k < kFlagsPerBlock; k += kIndexThreads)
    count += __syncthreads_count(first + k < numel && flags[first + k]);
  if (threadIdx.x == 0) counts[blockIdx.x] = count;
}

// Each value becomes the sum of those before it, one more the sum of all; one block does it.
extern "C" __global__ void __launch_bounds__(1024) sum_up(int64_t* values, int64_t count) {
  int64_t carry = 0;
  for (int64_t first = 0; first < count; first += blockDim.x) {
    int64_t i = first + threadIdx.x, total;
    int64_t before = sum_before(i < count ? values[i] : int64_t(0), total);
    if (i < count) values[i] = carry + before;
    carry += total;
  }
  if (threadIdx.x == 0) values[count] = carry;
}

// Writes the places of true flags by dim, column d of `count` rows after column d - 1.
extern "C" __global__ void list_flags(const bool* flags, int64_t numel, const int64_t* starts,
                                      IndexLayout shape, int64_t* places, int64_t count) {
  int64_t first = int64_t(blockIdx.x) * kFlagsPerBlock + threadIdx.x, start = starts[blockIdx.x];
  for (int k = 0; k < kFlagsPerBlock; k += kIndexThreads) {
    int64_t i = first + k;
    bool flag = i < numel && flags[i];
    int total, before = sum_before(int(flag), total);
    if (flag) {
      int64_t rest = i;
      for (int d = shape.dims - 1; d >= 0; --d) {
        places[d * count + start + before] = rest % shape.sizes[d];
        rest /= shape.sizes[d];
      }
    }
    start += total;
  }
}

}  // namespace rushlight::on_cuda
