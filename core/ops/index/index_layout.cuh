// Owns the way from the number of an element to its place in memory.
#pragma once

#include "core/device/device_types.cuh"
#include "core/ops/index/index_args.h"

namespace rushlight::on_cuda {

// Index is as narrow as the number allows, because divisions of 64 bits are slow.
template <class Index>
inline int64_t place_in(const IndexLayout& layout, Index i) {
  int64_t place = 0;
  for (int d = layout.dims - 1; d > 0; --d) {
    Index size = Index(layout.sizes[d]);
    place += int64_t(i % size) * layout.strides[d];
    i /= size;
  }
  return layout.dims ? place + int64_t(i) * layout.strides[0] : 0;
}
inline int64_t place_of(const IndexLayout& layout, int64_t i) {
  return i < int64_t(1) << 32 ? place_in(layout, uint32_t(i)) : place_in(layout, uint64_t(i));
}

// The number of this thread's element.
inline int64_t thread_number() { return int64_t(blockIdx.x) * blockDim.x + threadIdx.x; }

// Which element a thread of PickedArgs has: position `order[j]` of the index.
struct PickedElement {
  int64_t before, j, after;
};
template <class Index>
inline PickedElement split(const PickedArgs& args, Index i) {
  Index after = Index(args.after_count), positions = Index(args.positions), row = i / after;
  return {int64_t(row / positions), int64_t(row % positions), int64_t(i % after)};
}
inline PickedElement element_of(const PickedArgs& args, int64_t i) {
  return args.total < int64_t(1) << 32 ? split(args, uint32_t(i)) : split(args, uint64_t(i));
}

inline char* picked_at(const PickedArgs& args, const PickedElement& element, int64_t offset) {
  return args.picked + place_of(args.before, element.before) + offset * args.offset_bytes +
         place_of(args.after, element.after);
}
// The number of the element in a row-major tensor of the picked shape.
inline int64_t dense_number(const PickedArgs& args, const PickedElement& element,
                            int64_t position) {
  return (element.before * args.positions + position) * args.after_count + element.after;
}

}  // namespace rushlight::on_cuda
