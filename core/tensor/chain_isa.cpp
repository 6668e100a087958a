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

// What a step does, whose second operand is elements or one number. Each is a case of one switch,
// because every further choice costs as much as the arithmetic.
constexpr int kMultiplyAdd = 2 * (int(Arithmetic::round_bfloat16) + 1);
constexpr int of_vectors(Arithmetic how) { return 2 * int(how); }
constexpr int of_number(Arithmetic how) { return 2 * int(how) + 1; }

// A link as the loop reads it, or a product and the sum that follows.
template <class T>
struct Step {
  int what;
  const T* y;
  const T* z;  // what is added to a product
};

// The steps of a chain whose operand k begins at at(k). Returns how many.
template <class T, class At>
int read_links(const Chain& chain, At at, Step<T>* steps) {
  int count = 0;
  for (int l = 0; l < chain.count; ++l) {
    const auto [how, operand, is_number] = chain.links[l];
    const T* y = has_two_operands(how) ? at(operand, is_number) : nullptr;
    Step<T>* last = steps + count - 1;
    if (count && how == Arithmetic::add && last->what / 2 == int(Arithmetic::multiply)) {
      last->what = kMultiplyAdd + 2 * (last->what % 2) + is_number;
      last->z = y;
    } else {
      steps[count++] = {2 * int(how) + is_number, y, nullptr};
    }
  }
  return count;
}

// Calls f with an example of what lies in memory.
template <class T, class F>
[[gnu::always_inline]] inline void with_example(Element element, F f) {
  if constexpr (detail::kSame<T, float>) {
    if (element == Element::float16) return f(Half{});
    if (element == Element::bfloat16) return f(BFloat16{});
  }
  f(T{});
}

// All steps for `count` vectors from `at` on: enough of them to do while the next step is looked
// up, and few enough for the registers.
template <int count, class T>
[[gnu::always_inline]] inline void run_block(const Chain& chain, const Step<T>* step, int steps,
                                             const void* start, int64_t at, void* result) {
  using V = Vector<T>;
  V x[count];
  with_example<T>(chain.first, [&](auto example) __attribute__((always_inline)) {
    auto* from = static_cast<const decltype(example)*>(start) + at;
#pragma GCC unroll 8
    for (int v = 0; v < count; ++v) x[v] = load_wide(from + v * kWidth<T>);
  });
  auto each = [&](auto f) __attribute__((always_inline)) {
#pragma GCC unroll 8
    for (int v = 0; v < count; ++v) x[v] = f(x[v], v);
  };
  // What gives the operand of vector v.
  auto vectors = [=](const T* from) __attribute__((always_inline)) {
    return [from = from + at](int v)
               __attribute__((always_inline)) { return load_vector(from + v * kWidth<T>); };
  };
  auto number = [](const T* from) __attribute__((always_inline)) {
    return [value = broadcast(*from)](int) __attribute__((always_inline)) { return value; };
  };
  auto with = [&](auto y, auto f) __attribute__((always_inline)) {
    each([=](V a, int v) __attribute__((always_inline)) { return f(a, y(v)); });
  };
  auto multiply_add = [&](auto y, auto z) __attribute__((always_inline)) {
    each([=](V a, int v) __attribute__((always_inline)) { return a * y(v) + z(v); });
  };
  auto plus = [](V a, V b) __attribute__((always_inline)) { return a + b; };
  auto minus = [](V a, V b) __attribute__((always_inline)) { return a - b; };
  auto minus_from = [](V a, V b) __attribute__((always_inline)) { return b - a; };
  auto times = [](V a, V b) __attribute__((always_inline)) { return a * b; };
  auto over = [](V a, V b) __attribute__((always_inline)) { return a / b; };
  auto over_from = [](V a, V b) __attribute__((always_inline)) { return b / a; };
  using enum Arithmetic;
  for (const Step<T>* end = step + steps; step != end; ++step) switch (step->what) {
      case of_vectors(add): with(vectors(step->y), plus); break;
      case of_number(add): with(number(step->y), plus); break;
      case of_vectors(subtract): with(vectors(step->y), minus); break;
      case of_number(subtract): with(number(step->y), minus); break;
      case of_vectors(subtract_from): with(vectors(step->y), minus_from); break;
      case of_number(subtract_from): with(number(step->y), minus_from); break;
      case of_vectors(multiply): with(vectors(step->y), times); break;
      case of_number(multiply): with(number(step->y), times); break;
      case of_vectors(divide): with(vectors(step->y), over); break;
      case of_number(divide): with(number(step->y), over); break;
      case of_vectors(divide_from): with(vectors(step->y), over_from); break;
      case of_number(divide_from): with(number(step->y), over_from); break;
      case kMultiplyAdd: multiply_add(vectors(step->y), vectors(step->z)); break;
      case kMultiplyAdd + 1: multiply_add(vectors(step->y), number(step->z)); break;
      case kMultiplyAdd + 2: multiply_add(number(step->y), vectors(step->z)); break;
      case kMultiplyAdd + 3: multiply_add(number(step->y), number(step->z)); break;
      case of_vectors(negate): each([](V a, int) { return -a; }); break;
      case of_vectors(absolute):
        each([](V a, int) { return V(VectorBits<T>(a) << 1 >> 1); });
        break;
      case of_vectors(square): each([](V a, int) { return a * a; }); break;
      case of_vectors(relu): each([](V a, int) { return a <= 0 ? V{} : a; }); break;
      case of_vectors(round_float16):
        if constexpr (detail::kSame<T, float>) each([](V a, int) { return rounded<Half>(a); });
        break;
      case of_vectors(round_bfloat16):
        if constexpr (detail::kSame<T, float>) each([](V a, int) { return rounded<BFloat16>(a); });
        break;
      default: __builtin_unreachable();
    }
  with_example<T>(chain.result, [&](auto example) __attribute__((always_inline)) {
    auto* to = static_cast<decltype(example)*>(result) + at;
    if constexpr (count == 1) return store_rounded(to, x[0]);
#pragma GCC unroll 8
    for (int v = 0; v + 1 < count; v += 2) store_rounded(to + v * kWidth<T>, x[v], x[v + 1]);
  });
}

template <class T>
void run_chain(const void* const* operands, const void* scalars, void* result, int64_t n) {
  constexpr int kVectors = 8;
  const Chain& chain = *static_cast<const Chain*>(scalars);
  auto operand = [&](int k, bool) { return static_cast<const T*>(operands[k]); };
  Step<T> steps[Chain::kMost];
  int count = read_links(chain, operand, steps);
  int64_t i = 0;
  for (; i + kVectors * kWidth<T> <= n; i += kVectors * kWidth<T>)
    run_block<kVectors>(chain, steps, count, operands[0], i, result);
  for (; i + kWidth<T> <= n; i += kWidth<T>)
    run_block<1>(chain, steps, count, operands[0], i, result);
  if (i == n) return;
  // What fills no vector, from copies that do.
  const size_t rest = size_t(n - i);
  T copies[Chain::kMost + 1][kWidth<T>] = {}, last[kWidth<T>];
  count = read_links(
      chain,
      [&](int k, bool is_number) {
        if (is_number) return operand(k, true);
        __builtin_memcpy(copies[k], operand(k, false) + i, rest * sizeof(T));
        return static_cast<const T*>(copies[k]);
      },
      steps);
  with_example<T>(chain.first, [&](auto example) {
    auto* from = static_cast<const decltype(example)*>(operands[0]) + i;
    __builtin_memcpy(copies[0], from, rest * sizeof(example));
  });
  run_block<1>(chain, steps, count, copies[0], 0, last);
  with_example<T>(chain.result, [&](auto example) {
    __builtin_memcpy(static_cast<decltype(example)*>(result) + i, last, rest * sizeof(example));
  });
}

}  // namespace

extern const ChainLoops chain_loops;
constexpr ChainLoops chain_loops = {run_chain<float>, run_chain<double>};

}  // namespace rushlight::RUSHLIGHT_ISA_NAMESPACE
