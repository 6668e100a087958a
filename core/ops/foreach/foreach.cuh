// Owns what kernels over many tensors share: which part of which tensor a block has, loads and
// stores.
//   ITEM   the dtype of the tensors; half types compute in float
#pragma once

#include "core/tensor/formula.cuh"

#include "core/ops/foreach/foreach_args.h"
#include "core/tensor/convert.h"
#include "core/tensor/pack.cuh"

namespace rushlight::on_cuda {

using Number = ComputeOf<ITEM>::type;

constexpr int kVector = 16 / sizeof(ITEM);
using Vector = Pack<ITEM, kVector>;

// The tensor that the block works on: the last one that begins at or before it.
int tensor_of_block(const ManyTensors& many) {
  int low = 0, high = many.count;
  while (high - low > 1) {
    int middle = (low + high) / 2;
    if (many.first_block[middle] <= blockIdx.x) low = middle;
    else high = middle;
  }
  return low;
}

// The elements of a tensor that a block works on.
struct Chunk {
  int64_t begin, end;
  bool aligned;
  Chunk(const ManyTensors& many, int t)
      : begin(int64_t(blockIdx.x - many.first_block[t]) * kChunk),
        end(begin + kChunk < many.numel[t] ? begin + kChunk : many.numel[t]),
        aligned(many.is_aligned >> t & 1) {}
};

// Zeros stand for elements past the end.
void load(const void* array, int64_t first, int64_t end, bool aligned, Number (&numbers)[kVector]) {
  const ITEM* from = static_cast<const ITEM*>(array) + first;
  if (aligned && first + kVector <= end) {
    Vector vector = *reinterpret_cast<const Vector*>(from);
#pragma unroll
    for (int e = 0; e < kVector; ++e) numbers[e] = convert<Number>(vector.at[e]);
    return;
  }
#pragma unroll
  for (int e = 0; e < kVector; ++e)
    numbers[e] = first + e < end ? convert<Number>(from[e]) : Number(0);
}

void store(void* array, int64_t first, int64_t end, bool aligned,
           const Number (&numbers)[kVector]) {
  ITEM* to = static_cast<ITEM*>(array) + first;
  if (aligned && first + kVector <= end) {
    Vector vector;
#pragma unroll
    for (int e = 0; e < kVector; ++e) vector.at[e] = convert<ITEM>(numbers[e]);
    // An ordinary store, which the compiler does not take apart to join it with those below.
    __stwb(reinterpret_cast<uint4*>(to), __builtin_bit_cast(uint4, vector));
    return;
  }
#pragma unroll
  for (int e = 0; e < kVector; ++e)
    if (first + e < end) to[e] = convert<ITEM>(numbers[e]);
}

}  // namespace rushlight::on_cuda
