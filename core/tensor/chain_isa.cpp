// Owns the loops of chains of arithmetic.
#include "core/tensor/chain_loops.h"
#include "core/tensor/vectors.h"

namespace rushlight::RUSHLIGHT_ISA_NAMESPACE {
namespace {

// All links for `count` vectors, or elements, from `at` on. There are enough of them to do while
// the next link is looked up, and few enough for the registers.
template <class V, int count, class T>
[[gnu::always_inline]] inline void run_block(const Chain& chain, const void* const* operands,
                                             int64_t at, T* result) {
  constexpr int64_t width = sizeof(V) / sizeof(T);
  auto load = [](const T* from) __attribute__((always_inline)) {
    V v;
    __builtin_memcpy(&v, from, sizeof(v));
    return v;
  };
  V x[count];
  const T* start = static_cast<const T*>(operands[0]) + at;
#pragma GCC unroll 8
  for (int v = 0; v < count; ++v) x[v] = load(start + v * width);
  for (int l = 0; l < chain.count; ++l) {
    const T* y = static_cast<const T*>(operands[l + 1]);
    auto apply = [&](auto how) __attribute__((always_inline)) {
      if (chain.links[l].is_number) {
        const V number = *y - V{};  // which keeps -0
#pragma GCC unroll 8
        for (int v = 0; v < count; ++v) x[v] = how(x[v], number);
      } else {
#pragma GCC unroll 8
        for (int v = 0; v < count; ++v) x[v] = how(x[v], load(y + at + v * width));
      }
    };
    switch (chain.links[l].how) {
      case Arithmetic::add: apply([](V a, V b) { return a + b; }); break;
      case Arithmetic::subtract: apply([](V a, V b) { return a - b; }); break;
      case Arithmetic::subtract_from: apply([](V a, V b) { return b - a; }); break;
      case Arithmetic::multiply: apply([](V a, V b) { return a * b; }); break;
      case Arithmetic::divide: apply([](V a, V b) { return a / b; }); break;
      case Arithmetic::divide_from: apply([](V a, V b) { return b / a; }); break;
    }
  }
#pragma GCC unroll 8
  for (int v = 0; v < count; ++v) __builtin_memcpy(result + at + v * width, &x[v], sizeof(V));
}

template <class T>
void run_chain(const void* const* operands, const void* scalars, void* result, int64_t n) {
  constexpr int kVectors = 8;
  constexpr int64_t kBlock = kVectors * kWidth<T>;
  const Chain& chain = *static_cast<const Chain*>(scalars);
  T* to = static_cast<T*>(result);
  int64_t i = 0;
  for (; i + kBlock <= n; i += kBlock) run_block<Vector<T>, kVectors>(chain, operands, i, to);
  for (; i < n; ++i) run_block<T, 1>(chain, operands, i, to);
}

}  // namespace

extern const ChainLoops chain_loops;
constexpr ChainLoops chain_loops = {run_chain<float>, run_chain<double>};

}  // namespace rushlight::RUSHLIGHT_ISA_NAMESPACE
