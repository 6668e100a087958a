// Owns dropout on CUDA: mask and result from one piece of the stream. See Note [Random numbers].
//   ITEM   the dtype of input and result
#include "core/tensor/formula.cuh"

#include "core/device/philox.h"
#include "core/ops/random/random_args.h"
#include "core/tensor/convert.h"
#include "core/tensor/pack.cuh"

namespace rushlight::on_cuda {

using Number = ComputeOf<ITEM>::type;
constexpr int kEach = 4;  // words of a counter
template <class T>
using Four = Pack<T, kEach>;

extern "C" __global__ void dropout(DrawPlace place, DropoutArgs args) {
  int64_t counter = int64_t(blockIdx.x) * blockDim.x + threadIdx.x, first = counter * kEach;
  if (first >= place.numel) return;
  Philox4 w = place.draw.words(uint64_t(counter));
  const uint32_t words[] = {w.x, w.y, w.z, w.w};
  const ITEM* input = static_cast<const ITEM*>(args.input) + first;
  ITEM* out = static_cast<ITEM*>(place.out) + first;
  bool* mask = args.mask + first;
  Number scale = Number(args.scale);
  // The results are fresh, so their memory is aligned; the input may be a view.
  bool whole = first + kEach <= place.numel;
  Four<ITEM> items{};
  if (whole && reinterpret_cast<uint64_t>(input) % alignof(Four<ITEM>) == 0) {
    items = *reinterpret_cast<const Four<ITEM>*>(input);
  } else {
#pragma unroll
    for (int e = 0; e < kEach; ++e)
      if (first + e < place.numel) items.at[e] = input[e];
  }
  Four<bool> kept;
#pragma unroll
  for (int e = 0; e < kEach; ++e) {
    kept.at[e] = words[e] >= args.threshold;
    Number x = convert<Number>(items.at[e]);
    items.at[e] = convert<ITEM>(kept.at[e] ? x * scale : Number(0));
  }
  if (whole) {
    *reinterpret_cast<Four<ITEM>*>(out) = items;
    *reinterpret_cast<Four<bool>*>(mask) = kept;
    return;
  }
#pragma unroll
  for (int e = 0; e < kEach; ++e) {
    if (first + e >= place.numel) continue;
    out[e] = items.at[e];
    mask[e] = kept.at[e];
  }
}

}  // namespace rushlight::on_cuda
