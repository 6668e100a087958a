// Owns the loops of pairs of operations. Both round: no product is contracted into a sum.
#include "core/tensor/formula.h"
#include "core/tensor/pair_loops.h"

namespace rushlight::RUSHLIGHT_ISA_NAMESPACE {
namespace {

template <Arithmetic how, class T>
[[gnu::always_inline]] inline T compute(T x, T y) {
  if constexpr (how == Arithmetic::add) return x + y;
  else if constexpr (how == Arithmetic::subtract) return x - y;
  else return x * y;
}

template <class T, Arithmetic first, Arithmetic second, bool swapped>
void run_pair(const void* const* operands, const void*, void* result, int64_t n) {
  const T* a = static_cast<const T*>(operands[0]);
  const T* b = static_cast<const T*>(operands[1]);
  const T* c = static_cast<const T*>(operands[2]);
  T* out = static_cast<T*>(result);
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    T inner = compute<first>(a[i], b[i]);
    out[i] = swapped ? compute<second>(c[i], inner) : compute<second>(inner, c[i]);
  }
}

template <class T, int first, int second>
constexpr void set_pair(PairLoops& loops) {
  auto& both = loops.run[sizeof(T) == sizeof(double)][first][second];
  both[0] = &run_pair<T, Arithmetic(first), Arithmetic(second), false>;
  both[1] = &run_pair<T, Arithmetic(first), Arithmetic(second), true>;
  if constexpr (second + 1 < kArithmeticCount) set_pair<T, first, second + 1>(loops);
  else if constexpr (first + 1 < kArithmeticCount) set_pair<T, first + 1, 0>(loops);
}

constexpr PairLoops make_loops() {
  PairLoops loops{};
  set_pair<float, 0, 0>(loops);
  set_pair<double, 0, 0>(loops);
  return loops;
}

}  // namespace

extern const PairLoops pair_loops;
constexpr PairLoops pair_loops = make_loops();

}  // namespace rushlight::RUSHLIGHT_ISA_NAMESPACE
