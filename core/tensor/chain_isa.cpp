// Owns the loops of chains of arithmetic.
#include "core/tensor/chain_loops.h"
#include "core/tensor/wide_load.h"

namespace rushlight::RUSHLIGHT_ISA_NAMESPACE {
namespace {

// Rounded as the conversion to a half type and back does.
template <class Short>
[[gnu::always_inline]] inline Vector<float> rounded(Vector<float> x) {
  if constexpr (detail::kSame<Short, BFloat16>) {
    using Words = uint32_t __attribute__((vector_size(sizeof(x))));
    const Words bits = Words(x), nearest = bits + 0x7fff + ((bits >> 16) & 1);
    return Vector<float>((x == x ? nearest : bits | 0x400000) & 0xffff0000);
  } else {
    Short halves[kWidth<float>];
    store_half(halves, x);
    return load_half(halves);
  }
}

// All links for `count` vectors from `at` on: enough of them to do while the next link is looked
// up, and few enough for the registers.
template <int count, class T>
[[gnu::always_inline]] inline void run_block(const Chain& chain, const void* const* operands,
                                             int64_t at, T* result) {
  using V = Vector<T>;
  V x[count];
  const T* start = static_cast<const T*>(operands[0]) + at;
#pragma GCC unroll 8
  for (int v = 0; v < count; ++v) x[v] = load_vector(start + v * kWidth<T>);
  for (int l = 0; l < chain.count; ++l) {
    const auto [how, operand, is_number] = chain.links[l];
    auto with_y = [&](auto f) __attribute__((always_inline)) {
      const T* y = static_cast<const T*>(operands[operand]);
      if (is_number) {
        const V number = broadcast(*y);
#pragma GCC unroll 8
        for (int v = 0; v < count; ++v) x[v] = f(x[v], number);
      } else {
#pragma GCC unroll 8
        for (int v = 0; v < count; ++v) x[v] = f(x[v], load_vector(y + at + v * kWidth<T>));
      }
    };
    auto alone = [&](auto f) __attribute__((always_inline)) {
#pragma GCC unroll 8
      for (int v = 0; v < count; ++v) x[v] = f(x[v]);
    };
    switch (how) {
      case Arithmetic::add: with_y([](V a, V b) { return a + b; }); break;
      case Arithmetic::subtract: with_y([](V a, V b) { return a - b; }); break;
      case Arithmetic::subtract_from: with_y([](V a, V b) { return b - a; }); break;
      case Arithmetic::multiply: with_y([](V a, V b) { return a * b; }); break;
      case Arithmetic::divide: with_y([](V a, V b) { return a / b; }); break;
      case Arithmetic::divide_from: with_y([](V a, V b) { return b / a; }); break;
      case Arithmetic::negate: alone([](V a) { return -a; }); break;
      case Arithmetic::absolute: alone([](V a) { return V(VectorBits<T>(a) << 1 >> 1); }); break;
      case Arithmetic::square: alone([](V a) { return a * a; }); break;
      case Arithmetic::relu: alone([](V a) { return a <= 0 ? V{} : a; }); break;
      case Arithmetic::round_float16:
        if constexpr (detail::kSame<T, float>) alone(rounded<Half>);
        break;
      case Arithmetic::round_bfloat16:
        if constexpr (detail::kSame<T, float>) alone(rounded<BFloat16>);
        break;
    }
  }
#pragma GCC unroll 8
  for (int v = 0; v < count; ++v) store_vector(result + at + v * kWidth<T>, x[v]);
}

template <class T>
void run_chain(const void* const* operands, const void* scalars, void* result, int64_t n) {
  constexpr int kVectors = 8;
  const Chain& chain = *static_cast<const Chain*>(scalars);
  T* to = static_cast<T*>(result);
  int64_t i = 0;
  for (; i + kVectors * kWidth<T> <= n; i += kVectors * kWidth<T>)
    run_block<kVectors>(chain, operands, i, to);
  for (; i + kWidth<T> <= n; i += kWidth<T>) run_block<1>(chain, operands, i, to);
  if (i == n) return;
  // What fills no vector, from copies that do.
  T copies[Chain::kMost + 1][kWidth<T>] = {}, last[kWidth<T>];
  const void* in[Chain::kMost + 1];
  const size_t rest = size_t(n - i) * sizeof(T);
  auto copy = [&](int k) {
    __builtin_memcpy(copies[k], static_cast<const T*>(operands[k]) + i, rest);
    in[k] = copies[k];
  };
  copy(0);
  for (int l = 0; l < chain.count; ++l) {
    const auto [how, operand, is_number] = chain.links[l];
    if (is_number) in[operand] = operands[operand];
    else if (has_two_operands(how)) copy(operand);
  }
  run_block<1>(chain, in, 0, last);
  __builtin_memcpy(to + i, last, rest);
}

}  // namespace

extern const ChainLoops chain_loops;
constexpr ChainLoops chain_loops = {run_chain<float>, run_chain<double>};

}  // namespace rushlight::RUSHLIGHT_ISA_NAMESPACE
