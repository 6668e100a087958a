// Owns what the kernels are written in that fused_cuda.cpp makes of chains of formulas.
//
// A kernel reads n neighboring elements of each tensor, computes value after value for each, and
// writes those that are wanted. Where a tensor lies in another order than the results, its elements
// are looked up one by one.
#pragma once

#include "core/tensor/formula.cuh"

#include "core/tensor/convert.h"
#include "core/tensor/fused_args.h"
#include "core/tensor/lane_walk.cuh"
#include "core/tensor/pack.cuh"

// A formula by its two texts.
#define FORMULA(NAME, PARAMS, ...)                                                           \
  struct NAME {                                                                              \
    template <class T, class S, class B, class R = T, class N = T, class C = T, class I = T> \
    static auto apply PARAMS {                                                               \
      return __VA_ARGS__;                                                                    \
    }                                                                                        \
  };

namespace rushlight::on_cuda {

// The first element of a thread that has n.
template <int n>
int64_t first_of_thread() {
  return (int64_t(blockIdx.x) * blockDim.x + threadIdx.x) * n;
}

template <class T, int n>
Pack<T, n> read(const FusedArgs& args, int k, int64_t first) {
  const T* data = static_cast<const T*>(args.reads[k]) + first;
  if (first + n <= args.numel) return *reinterpret_cast<const Pack<T, n>*>(data);
  Pack<T, n> vector;
  for (int e = 0; e < n; ++e)
    if (first + e < args.numel) vector.at[e] = data[e];
  return vector;
}

template <class T>
T read_single(const FusedArgs& args, int k) {
  return *static_cast<const T*>(args.reads[k]);
}

// Where the elements of a thread lie in the tensors of a layout.
template <int lanes, int n>
struct Places {
  int64_t of[lanes][n] = {};

  Places(const FusedArgs& args, const FusedLayout& layout, int64_t first) {
    // Also those numbers are below 2^31 that the last block has left over.
    if (args.numel < (int64_t(1) << 31) - n * 1024) walk<uint32_t>(layout, first);
    else walk<uint64_t>(layout, first);
  }

 private:
  template <class Index>
  void walk(const FusedLayout& layout, int64_t first) {
    Index numbers[n];
    for (int e = 0; e < n; ++e) numbers[e] = Index(first + e);
    find_elements(layout, numbers, of);
  }
};

template <class T, int n>
Pack<T, n> read_places(const FusedArgs& args, int k, int64_t first, const int64_t* places) {
  const T* data = static_cast<const T*>(args.reads[k]);
  Pack<T, n> vector;
#pragma unroll
  for (int e = 0; e < n; ++e)
    if (first + e < args.numel) vector.at[e] = data[places[e]];
  return vector;
}

template <class T>
T number(const FusedArgs& args, int slot) {
  return *reinterpret_cast<const T*>(args.numbers[slot]);
}

// What a formula gave, as the dtype of its result.
template <class T, class Result>
T stored(Result result) {
  return convert<T>(typename detail::Given<Result>::type(result));
}

template <class T, int n>
void write(const FusedArgs& args, int k, int64_t first, const Pack<T, n>& vector) {
  T* data = static_cast<T*>(args.writes[k]) + first;
  if (first + n <= args.numel) {
    *reinterpret_cast<Pack<T, n>*>(data) = vector;
  } else {
    for (int e = 0; e < n; ++e)
      if (first + e < args.numel) data[e] = vector.at[e];
  }
}

}  // namespace rushlight::on_cuda
