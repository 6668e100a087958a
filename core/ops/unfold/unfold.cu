// Owns unfold and fold on CUDA. A thread finishes an element of the result by itself, so that no
// order of threads shows. ITEM names the type in memory, SUM the one that fold adds up in.
#include "core/tensor/formula.cuh"

#include "core/ops/unfold/unfold_windows.h"
#include "core/tensor/convert.h"

namespace rushlight::on_cuda {

using Sum = SUM;

// Takes the number of an element apart, the last dim first. Index is as narrow as the number
// allows, because divisions of 64 bits are slow.
template <class Index>
struct Split {
  Index rest;
  int64_t next(int64_t size) {
    Index part = rest % Index(size);
    rest /= Index(size);
    return int64_t(part);
  }
};

// Columns are (planes, window rows, window columns, outputs down, outputs across).
template <class Index>
void unfold_one(const UnfoldArgs& args, Index number) {
  const UnfoldWindows &rows = args.rows, &columns = args.columns;
  Split<Index> split{number};
  int64_t across = split.next(columns.out()), down = split.next(rows.out());
  int64_t j = split.next(columns.kernel), i = split.next(rows.kernel), plane = int64_t(split.rest);
  int64_t y = rows.place(down, i), x = columns.place(across, j);
  bool inside = y >= 0 && y < rows.size && x >= 0 && x < columns.size;
  const ITEM* images = static_cast<const ITEM*>(args.input);
  static_cast<ITEM*>(args.result)[number] =
      inside ? images[(plane * rows.size + y) * columns.size + x] : ITEM{};
}

template <class Index>
void fold_one(const UnfoldArgs& args, Index number) {
  const UnfoldWindows &rows = args.rows, &columns = args.columns;
  Split<Index> split{number};
  int64_t x = split.next(columns.size), y = split.next(rows.size), plane = int64_t(split.rest);
  int64_t wide = columns.out(), high = rows.out();
  Sum sum(0);
  for (int64_t i = 0; i < rows.kernel; ++i) {
    int64_t down = rows.window(y, i);
    if (down < 0) continue;
    const ITEM* from = static_cast<const ITEM*>(args.input) +
                       ((plane * rows.kernel + i) * columns.kernel * high + down) * wide;
    for (int64_t j = 0; j < columns.kernel; ++j) {
      int64_t across = columns.window(x, j);
      if (across >= 0) sum = sum + convert<Sum>(from[j * high * wide + across]);
    }
  }
  static_cast<ITEM*>(args.result)[number] = convert<ITEM>(sum);
}

inline int64_t number() { return int64_t(blockIdx.x) * blockDim.x + threadIdx.x; }

extern "C" __global__ void unfold(UnfoldArgs args) {
  int64_t window = args.rows.kernel * args.columns.kernel, i = number();
  int64_t total = args.planes * window * args.rows.out() * args.columns.out();
  if (i >= total) return;
  if (total < int64_t(1) << 32) unfold_one(args, uint32_t(i));
  else unfold_one(args, uint64_t(i));
}

extern "C" __global__ void fold(UnfoldArgs args) {
  int64_t total = args.planes * args.rows.size * args.columns.size, i = number();
  if (i >= total) return;
  if (total < int64_t(1) << 32) fold_one(args, uint32_t(i));
  else fold_one(args, uint64_t(i));
}

}  // namespace rushlight::on_cuda
