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

// A link as the loop reads it. A product and the sum that follows are done at once, which saves
// looking up the second.
template <class T>
struct Step {
  Arithmetic how;
  bool is_number;
  bool is_added_to;  // a product, by the next step
  const T* y;
};

// The steps of a chain whose operand k begins at at(k). Returns how many.
template <class T, class At>
int read_links(const Chain& chain, At at, Step<T>* steps) {
  for (int l = 0; l < chain.count; ++l) {
    const auto [how, operand, is_number] = chain.links[l];
    steps[l] = {how, is_number, false, has_two_operands(how) ? at(operand, is_number) : nullptr};
    if (l && how == Arithmetic::add && steps[l - 1].how == Arithmetic::multiply)
      steps[l - 1].is_added_to = true;
  }
  return chain.count;
}

// All steps for `count` vectors from `at` on: enough of them to do while the next step is looked
// up, and few enough for the registers.
template <int count, class T>
[[gnu::always_inline]] inline void run_block(const Step<T>* step, int steps, const T* start,
                                             int64_t at, T* result) {
  using V = Vector<T>;
  V x[count];
#pragma GCC unroll 8
  for (int v = 0; v < count; ++v) x[v] = load_vector(start + at + v * kWidth<T>);
  auto each = [&](auto f) __attribute__((always_inline)) {
#pragma GCC unroll 8
    for (int v = 0; v < count; ++v) x[v] = f(x[v], v);
  };
  // Calls f with what gives the operand of a step for vector v.
  auto with_operand = [&](const Step<T>& of, auto f) __attribute__((always_inline)) {
    if (of.is_number) {
      const V number = broadcast(*of.y);
      f([=](int) __attribute__((always_inline)) { return number; });
    } else {
      const T* y = of.y + at;
      f([=](int v) __attribute__((always_inline)) { return load_vector(y + v * kWidth<T>); });
    }
  };
  auto with_y = [&](auto f) __attribute__((always_inline)) {
    with_operand(*step, [&](auto y) __attribute__((always_inline)) {
      each([&](V a, int v) __attribute__((always_inline)) { return f(a, y(v)); });
    });
  };
  auto multiply_add = [&]() __attribute__((always_inline)) {
    with_operand(step[0], [&](auto y) __attribute__((always_inline)) {
      with_operand(step[1], [&](auto z) __attribute__((always_inline)) {
        each([&](V a, int v) __attribute__((always_inline)) { return a * y(v) + z(v); });
      });
    });
    ++step;
  };
  for (const Step<T>* end = step + steps; step != end; ++step) switch (step->how) {
      case Arithmetic::add: with_y([](V a, V b) { return a + b; }); break;
      case Arithmetic::subtract: with_y([](V a, V b) { return a - b; }); break;
      case Arithmetic::subtract_from: with_y([](V a, V b) { return b - a; }); break;
      case Arithmetic::multiply:
        if (step->is_added_to) multiply_add();
        else with_y([](V a, V b) { return a * b; });
        break;
      case Arithmetic::divide: with_y([](V a, V b) { return a / b; }); break;
      case Arithmetic::divide_from: with_y([](V a, V b) { return b / a; }); break;
      case Arithmetic::negate: each([](V a, int) { return -a; }); break;
      case Arithmetic::absolute:
        each([](V a, int) { return V(VectorBits<T>(a) << 1 >> 1); });
        break;
      case Arithmetic::square: each([](V a, int) { return a * a; }); break;
      case Arithmetic::relu: each([](V a, int) { return a <= 0 ? V{} : a; }); break;
      case Arithmetic::round_float16:
        if constexpr (detail::kSame<T, float>) each([](V a, int) { return rounded<Half>(a); });
        break;
      case Arithmetic::round_bfloat16:
        if constexpr (detail::kSame<T, float>) each([](V a, int) { return rounded<BFloat16>(a); });
        break;
    }
#pragma GCC unroll 8
  for (int v = 0; v < count; ++v) store_vector(result + at + v * kWidth<T>, x[v]);
}

template <class T>
void run_chain(const void* const* operands, const void* scalars, void* result, int64_t n) {
  constexpr int kVectors = 8;
  const Chain& chain = *static_cast<const Chain*>(scalars);
  auto operand = [&](int k) { return static_cast<const T*>(operands[k]); };
  const T* start = operand(0);
  T* to = static_cast<T*>(result);
  Step<T> steps[Chain::kMost];
  int count = read_links(chain, [&](int k, bool) { return operand(k); }, steps);
  int64_t i = 0;
  for (; i + kVectors * kWidth<T> <= n; i += kVectors * kWidth<T>)
    run_block<kVectors>(steps, count, start, i, to);
  for (; i + kWidth<T> <= n; i += kWidth<T>) run_block<1>(steps, count, start, i, to);
  if (i == n) return;
  // What fills no vector, from copies that do.
  T copies[Chain::kMost + 1][kWidth<T>] = {}, last[kWidth<T>];
  const size_t rest = size_t(n - i) * sizeof(T);
  auto copy = [&](int k) {
    __builtin_memcpy(copies[k], operand(k) + i, rest);
    return copies[k];
  };
  count = read_links(
      chain, [&](int k, bool is_number) { return is_number ? operand(k) : copy(k); }, steps);
  run_block<1>(steps, count, copy(0), 0, last);
  __builtin_memcpy(to + i, last, rest);
}

}  // namespace

extern const ChainLoops chain_loops;
constexpr ChainLoops chain_loops = {run_chain<float>, run_chain<double>};

}  // namespace rushlight::RUSHLIGHT_ISA_NAMESPACE
