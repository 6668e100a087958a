// Owns the kernels that move picked elements without reading them: ITEM is of their size, or of
// several elements that always lie together.
#include "core/ops/index/index_layout.cuh"

namespace rushlight::on_cuda {

struct alignas(16) Item16 {
  uint64_t low, high;
};

extern "C" __global__ void read_picked(PickedArgs args, ITEM* dense) {
  int64_t i = thread_number();
  if (i >= args.total) return;
  PickedElement element = element_of(args, i);
  dense[i] = *reinterpret_cast<const ITEM*>(picked_at(args, element, args.offsets[element.j]));
}

// Of values for one place the last is written; `single` takes one value for all.
extern "C" __global__ void write_picked(PickedArgs args, const ITEM* dense, bool single) {
  int64_t i = thread_number();
  if (i >= args.total) return;
  PickedElement element = element_of(args, i);
  int64_t position = args.order ? args.order[element.j] : element.j;
  int64_t offset = args.offsets[element.j];
  if (args.order && element.j + 1 < args.positions && args.offsets[element.j + 1] == offset) return;
  *reinterpret_cast<ITEM*>(picked_at(args, element, offset)) =
      dense[single ? 0 : dense_number(args, element, position)];
}

// dense[i] is the element at place i of the layout, moved along one more dim by the index.
extern "C" __global__ void gather(const ITEM* input, const int64_t* index, IndexLayout layout,
                                  int64_t count, int64_t stride, ITEM* dense) {
  int64_t i = thread_number();
  if (i < count) dense[i] = input[place_of(layout, i) + index[i] * stride];
}

}  // namespace rushlight::on_cuda
