// Owns resampling on CUDA: a thread finishes an output by itself, so that no order of threads
// shows. ELEMENT names the type in memory, SUM the one to compute in; MOVES is 1 where elements
// only move.
#include "core/tensor/formula.cuh"

#include "core/ops/resample/resample_args.h"
#include "core/tensor/convert.h"

namespace rushlight::on_cuda {

using Sum = SUM;

// Index is as narrow as the count of elements allows, because divisions of 64 bits are slow.
template <class Index>
void resample_one(const ResampleArgs& args, Index index) {
  const ResampleTable &depth = args.axes[0], &rows = args.axes[1], &columns = args.axes[2];
  auto split = [&](int64_t size) {
    Index rest = index % Index(size);
    index /= Index(size);
    return int64_t(rest);
  };
  int64_t pixel = split(args.pixel), column = split(columns.out), row = split(rows.out);
  int64_t plane = split(depth.out), first = int64_t(index) * depth.size;
  const ELEMENT* input = static_cast<const ELEMENT*>(args.input) + pixel;
  ELEMENT* result =
      static_cast<ELEMENT*>(args.result) +
      ((((int64_t(index) * depth.out + plane) * rows.out + row) * columns.out + column) *
           args.pixel +
       pixel);
#if MOVES
  int64_t at = first + depth.index[plane];
  at = (at * rows.size + rows.index[row]) * columns.size + columns.index[column];
  *result = input[at * args.pixel];
#else
  Sum sum(0);
  for (int64_t d = depth.start[plane]; d < depth.start[plane + 1]; ++d)
    for (int64_t r = rows.start[row]; r < rows.start[row + 1]; ++r) {
      int64_t line = ((first + depth.index[d]) * rows.size + rows.index[r]) * columns.size;
      Sum weight = Sum(depth.weight[d]) * Sum(rows.weight[r]);
      for (int64_t c = columns.start[column]; c < columns.start[column + 1]; ++c)
        sum += weight * Sum(columns.weight[c]) *
               convert<Sum>(input[(line + columns.index[c]) * args.pixel]);
    }
#ifdef ROUNDS
  sum = round(sum);
  sum = sum < Sum(0) ? Sum(0) : sum > Sum(255) ? Sum(255) : sum;
#endif
  *result = convert<ELEMENT>(sum);
#endif
}

extern "C" __global__ void resample(ResampleArgs args) {
  int64_t index = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (index >= args.total) return;
  if (args.total < int64_t(1) << 32) resample_one<uint32_t>(args, uint32_t(index));
  else resample_one<uint64_t>(args, uint64_t(index));
}

}  // namespace rushlight::on_cuda
