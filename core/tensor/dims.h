// Owns the arithmetic of loops over several strided tensors of one shape: fewer and longer dims,
// walking through them, and moving elements of any dtype.
//
// A lane is one tensor of such a loop. Strides are in bytes or in elements, as the caller likes.
#pragma once

#include <algorithm>
#include <array>
#include <span>

#include "core/base/shape.h"
#include "core/tensor/lane_layout.h"
#include "core/tensor/tensor.h"

namespace rushlight {

// Drops dims of size 1, orders dims by the strides of the first lane, outermost first, and joins
// dims that every lane walks as one. Dims along which that lane repeats are outside of the others,
// so that runs are of neighbors.
void join_dims(Shape& sizes, std::span<Shape* const> strides);

// The strides of a tensor by dim of `sizes`, which it broadcasts to; 0 where it repeats.
Shape broadcast_strides(const Tensor& tensor, ShapeRef sizes);

// How a kernel walks lanes of these sizes: the last lane decides the order of the dims. Raises when
// there are more than a kernel walks.
template <int kLanes>
LaneLayout<kLanes> kernel_layout(Shape sizes, std::span<Shape> strides) {
  ASSERT(strides.size() <= kLanes);
  Shape* lanes[kLanes];
  for (size_t k = 0; k < strides.size(); ++k) lanes[strides.size() - 1 - k] = &strides[k];
  join_dims(sizes, {lanes, strides.size()});
  CHECK(sizes.size() <= kMaxKernelDims, ErrorKind::kNotImplemented, "a CUDA kernel walks at most ",
        kMaxKernelDims, " dims that cannot be joined, but these tensors have ", sizes.size(),
        ". Call contiguous() on them first.");
  LaneLayout<kLanes> layout;
  layout.dims = int32_t(sizes.size());
  for (size_t d = 0; d < sizes.size(); ++d) {
    layout.sizes[d] = sizes[d];
    layout.divisors[d] = Divisor::of(uint32_t(std::min<int64_t>(sizes[d], INT32_MAX)));
    for (size_t k = 0; k < strides.size(); ++k) layout.strides[k][d] = strides[k][d];
  }
  return layout;
}

// A row-major shape as one dim sees it: blocks of `length` rows of `inner` elements.
struct AroundDim {
  int64_t outer = 1, length = 1, inner = 1;
  AroundDim(ShapeRef sizes, int64_t dim) {
    for (int64_t d = 0; d < int64_t(sizes.size()); ++d)
      (d < dim ? outer : d == dim ? length : inner) *= sizes[size_t(d)];
  }
};

// Where element `index` in row-major order lies.
inline int64_t offset_of(ShapeRef sizes, ShapeRef strides, int64_t index) {
  int64_t offset = 0;
  for (size_t d = sizes.size(); d-- > 1;) {
    offset += index % sizes[d] * strides[d];
    index /= sizes[d];
  }
  return sizes.empty() ? 0 : offset + index * strides[0];
}

// Walks elements [begin, begin + n) in row-major order in runs along the last dim: calls f(pointer
// to the first, stride in bytes, count, elements done) for each. Without dims there is one element.
template <class F>
void for_each_run(char* data, ShapeRef sizes, ShapeRef strides, int64_t begin, int64_t n, F&& f) {
  if (sizes.empty()) return f(data, int64_t(0), n, int64_t(0));
  size_t last = sizes.size() - 1;
  int64_t index[kMaxDims];
  char* p = data;
  int64_t rest = begin;
  for (size_t d = last + 1; d-- > 0;) {
    index[d] = rest % sizes[d];
    rest /= sizes[d];
    p += index[d] * strides[d];
  }
  for (int64_t done = 0; done < n;) {
    int64_t run = std::min(n - done, sizes[last] - index[last]);
    f(p, strides[last], run, done);
    done += run;
    p += run * strides[last];
    index[last] += run;
    for (size_t d = last; d > 0 && index[d] == sizes[d]; --d) {
      p += strides[d - 1] - index[d] * strides[d];
      index[d] = 0;
      ++index[d - 1];
    }
  }
}

// Walks row-major through `sizes` and keeps the place of every lane.
template <size_t N>
class Odometer {
 public:
  Odometer(ShapeRef sizes, std::array<ShapeRef, N> strides, int64_t start = 0)
      : sizes_(sizes), strides_(strides), index_(sizes.size()) {
    for (size_t d = sizes.size(); d-- > 0;) {
      index_[d] = start % sizes[d];
      start /= sizes[d];
      for (size_t k = 0; k < N; ++k) at_[k] += index_[d] * strides[k][d];
    }
  }

  int64_t at(size_t lane) const { return at_[lane]; }
  void next() {
    for (size_t d = sizes_.size(); d-- > 0;) {
      for (size_t k = 0; k < N; ++k) at_[k] += strides_[k][d];
      if (++index_[d] < sizes_[d]) return;
      for (size_t k = 0; k < N; ++k) at_[k] -= sizes_[d] * strides_[k][d];
      index_[d] = 0;
    }
  }

 private:
  ShapeRef sizes_;
  std::array<ShapeRef, N> strides_;
  Shape index_;
  std::array<int64_t, N> at_{};
};

// Calls f with an unsigned type of `item` bytes, for loops that move elements without reading them.
struct Item16 {
  uint64_t low, high;
};
template <class F>
decltype(auto) visit_item(int64_t item, F&& f) {
  switch (item) {
    case 1: return f(Tag<uint8_t>{});
    case 2: return f(Tag<uint16_t>{});
    case 4: return f(Tag<uint32_t>{});
    case 8: return f(Tag<uint64_t>{});
    default: return f(Tag<Item16>{});
  }
}

}  // namespace rushlight
