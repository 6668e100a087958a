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

// What a step does and what its second operand is, in one number: every choice beyond one costs as
// much as the arithmetic.
enum class Operand { vectors, float16, bfloat16, number };
constexpr int code_of(Arithmetic how, Operand operand = Operand::vectors) {
  return 4 * int(how) + int(operand);
}
constexpr int kMultiplyAdd = code_of(Arithmetic::round_bfloat16) + 4;

// A link as the loop reads it, or a product and the sum that follows.
struct Step {
  int code;
  const void* y;
  const void* z;  // what is added to a product
};

// The steps of a chain, where the operand of a link begins at at(link). Returns how many.
template <class At>
int read_links(const Chain& chain, At at, Step* steps) {
  int count = 0;
  for (int l = 0; l < chain.count; ++l) {
    const Chain::Link& link = chain.links[l];
    const void* y = has_two_operands(link.how) ? at(link) : nullptr;
    const Operand operand = link.is_number ? Operand::number : Operand(link.element);
    auto follows = [&](Operand factor) {
      return count && steps[count - 1].code == code_of(Arithmetic::multiply, factor);
    };
    const bool of_number = follows(Operand::number), is_sum = link.how == Arithmetic::add;
    if (is_sum && link.element == Element::whole && (of_number || follows(Operand::vectors))) {
      steps[count - 1].code = kMultiplyAdd + 2 * of_number + link.is_number;
      steps[count - 1].z = y;
    } else {
      steps[count++] = {code_of(link.how, operand), y, nullptr};
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
[[gnu::always_inline]] inline void run_block(const Chain& chain, const Step* step, int steps,
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
  // What gives the operand of vector v. One address serves all: GCC would have an index for each.
  auto elements = [=](const void* operand, auto example) __attribute__((always_inline)) {
    auto* from = static_cast<const decltype(example)*>(operand) + at;
    __asm__("" : "+r"(from));
    return [=](int v) __attribute__((always_inline)) { return load_wide(from + v * kWidth<T>); };
  };
  auto vectors = [=](const void* from)
                     __attribute__((always_inline)) { return elements(from, T{}); };
  auto number = [](const void* from) __attribute__((always_inline)) {
    return [value = broadcast(*static_cast<const T*>(from))](int)
               __attribute__((always_inline)) { return value; };
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
  constexpr bool has_halves = detail::kSame<T, float>;
  using Float16 = std::conditional_t<has_halves, Half, T>;
  using UpperHalf = std::conditional_t<has_halves, BFloat16, T>;
#define CASES(how, f)                                                                         \
  case code_of(how): with(vectors(step->y), f); break;                                        \
  case code_of(how, Operand::float16): with(elements(step->y, Float16{}), f); break;          \
  case code_of(how, Operand::bfloat16): with(elements(step->y, UpperHalf{}), f); break;       \
  case code_of(how, Operand::number): with(number(step->y), f); break;
  using enum Arithmetic;
  for (const Step* end = step + steps; step != end; ++step) switch (step->code) {
      CASES(add, plus)
      CASES(subtract, minus)
      CASES(subtract_from, minus_from)
      CASES(multiply, times)
      CASES(divide, over)
      CASES(divide_from, over_from)
      case kMultiplyAdd: multiply_add(vectors(step->y), vectors(step->z)); break;
      case kMultiplyAdd + 1: multiply_add(vectors(step->y), number(step->z)); break;
      case kMultiplyAdd + 2: multiply_add(number(step->y), vectors(step->z)); break;
      case kMultiplyAdd + 3: multiply_add(number(step->y), number(step->z)); break;
      case code_of(negate): each([](V a, int) { return -a; }); break;
      case code_of(absolute): each([](V a, int) { return V(VectorBits<T>(a) << 1 >> 1); }); break;
      case code_of(square): each([](V a, int) { return a * a; }); break;
      case code_of(relu): each([](V a, int) { return a <= 0 ? V{} : a; }); break;
      case code_of(round_float16):
        if constexpr (has_halves) each([](V a, int) { return rounded<Half>(a); });
        break;
      case code_of(round_bfloat16):
        if constexpr (has_halves) each([](V a, int) { return rounded<BFloat16>(a); });
        break;
      default: __builtin_unreachable();
    }
#undef CASES
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
  Step steps[Chain::kMost];
  int count =
      read_links(chain, [=](const Chain::Link& link) { return operands[link.operand]; }, steps);
  int64_t i = 0;
  for (; i + kVectors * kWidth<T> <= n; i += kVectors * kWidth<T>)
    run_block<kVectors, T>(chain, steps, count, operands[0], i, result);
  for (; i + kWidth<T> <= n; i += kWidth<T>)
    run_block<1, T>(chain, steps, count, operands[0], i, result);
  if (i == n) return;
  // What fills no vector, from copies that do.
  const size_t rest = size_t(n - i);
  T copies[Chain::kMost + 1][kWidth<T>] = {}, last[kWidth<T>];
  auto copy = [&](int k, Element element) -> const void* {
    with_example<T>(element, [&](auto example) {
      auto* from = static_cast<const decltype(example)*>(operands[k]) + i;
      __builtin_memcpy(copies[k], from, rest * sizeof(example));
    });
    return copies[k];
  };
  auto at = [&](const Chain::Link& link) {
    return link.is_number ? operands[link.operand] : copy(link.operand, link.element);
  };
  count = read_links(chain, at, steps);
  run_block<1, T>(chain, steps, count, copy(0, chain.first), 0, last);
  with_example<T>(chain.result, [&](auto example) {
    __builtin_memcpy(static_cast<decltype(example)*>(result) + i, last, rest * sizeof(example));
  });
}

}  // namespace

extern const ChainLoops chain_loops;
constexpr ChainLoops chain_loops = {run_chain<float>, run_chain<double>};

}  // namespace rushlight::RUSHLIGHT_ISA_NAMESPACE
