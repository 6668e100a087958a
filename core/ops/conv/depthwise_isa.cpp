// Owns the loops of depthwise convolution: a vector of outputs, or of sums, stays in a register for
// all that is added to it.
#include "core/ops/conv/depthwise_loops.h"
#include "core/tensor/vectors.h"

namespace rushlight::RUSHLIGHT_ISA_NAMESPACE {
namespace {

template <class T, int vectors>
[[gnu::always_inline]] inline void correlate_block(const T* in, const DepthwiseTap* taps,
                                                   int64_t count, const T* weights, T bias,
                                                   T* out) {
  Vector<T> sums[vectors];
  for (auto& sum : sums) sum = broadcast(bias);
  for (int64_t t = 0; t < count; ++t) {
    Vector<T> weight = broadcast(weights[taps[t].weight]);
    const T* from = in + taps[t].offset;
#pragma GCC unroll 8
    for (int v = 0; v < vectors; ++v)
      sums[v] = multiply_add(weight, load_vector(from + v * kWidth<T>), sums[v]);
  }
  for (int v = 0; v < vectors; ++v) store_vector(out + v * kWidth<T>, sums[v]);
}

template <class T>
void correlate(const void* in, const DepthwiseTap* taps, int64_t count, const void* weights,
               const void* bias, void* out, int64_t n) {
  constexpr int kMany = 6;  // enough chains of additions to hide their latency
  const T* from = static_cast<const T*>(in);
  T first = bias ? *static_cast<const T*>(bias) : T(0);
  T* to = static_cast<T*>(out);
  int64_t i = 0;
  for (; i + kMany * kWidth<T> <= n; i += kMany * kWidth<T>)
    correlate_block<T, kMany>(from + i, taps, count, static_cast<const T*>(weights), first, to + i);
  for (; i + 2 * kWidth<T> <= n; i += 2 * kWidth<T>)
    correlate_block<T, 2>(from + i, taps, count, static_cast<const T*>(weights), first, to + i);
  for (; i < n; i += kWidth<T>)
    correlate_block<T, 1>(from + i, taps, count, static_cast<const T*>(weights), first, to + i);
}

template <class T>
T sum_lanes(Vector<T> v) {
  T sum = v[0];
  for (int i = 1; i < kWidth<T>; ++i) sum += v[i];
  return sum;
}

template <class T, int taps_at_once>
[[gnu::always_inline]] inline void sum_taps(const T* in, const DepthwiseTap* taps, const T* grad,
                                            T* grad_weights, int64_t n) {
  Vector<T> sums[taps_at_once] = {};
  const T* from[taps_at_once];
  for (int t = 0; t < taps_at_once; ++t) from[t] = in + taps[t].offset;
  for (int64_t i = 0; i < n; i += kWidth<T>) {
    Vector<T> factor = load_vector(grad + i);
#pragma GCC unroll 8
    for (int t = 0; t < taps_at_once; ++t)
      sums[t] = multiply_add(factor, load_vector(from[t] + i), sums[t]);
  }
  for (int t = 0; t < taps_at_once; ++t) grad_weights[taps[t].weight] += sum_lanes<T>(sums[t]);
}

template <class T>
void sum_taps(const void* in, const DepthwiseTap* taps, int64_t count, const void* grad,
              void* grad_weights, void* grad_bias, int64_t n) {
  const T *from = static_cast<const T*>(in), *g = static_cast<const T*>(grad);
  T* to = static_cast<T*>(grad_weights);
  int64_t t = 0;
  for (; t + 8 <= count; t += 8) sum_taps<T, 8>(from, taps + t, g, to, n);
  for (; t + 3 <= count; t += 3) sum_taps<T, 3>(from, taps + t, g, to, n);
  for (; t < count; ++t) sum_taps<T, 1>(from, taps + t, g, to, n);
  if (!grad_bias) return;
  Vector<T> sums{};
  for (int64_t i = 0; i < n; i += kWidth<T>) sums += load_vector(g + i);
  *static_cast<T*>(grad_bias) += sum_lanes<T>(sums);
}

}  // namespace

extern const DepthwiseLoops depthwise_loops;
constexpr DepthwiseLoops depthwise_loops = {{&correlate<float>, &correlate<double>},
                                            {&sum_taps<float>, &sum_taps<double>}};

}  // namespace rushlight::RUSHLIGHT_ISA_NAMESPACE
