// Owns the loops of sequences, compiled once per instruction set.
#include "core/tensor/formula.h"

#include "core/ops/random/generate_loops.h"
#include "core/tensor/convert.h"

namespace rushlight::RUSHLIGHT_ISA_NAMESPACE {
namespace {

template <class T, class Sequence>
[[gnu::always_inline]] inline T element(const Sequence& sequence, int64_t i) {
  if constexpr (kShort<T> || kWideFloat<T>) return convert<T>(sequence.real(i));
  else return T(sequence.integer(i));
}
// The power in vectors is rounded otherwise, and an element must not depend on its place among
// those of a thread.
template <class T, class Sequence>
[[gnu::noinline]] T element_alone(const Sequence& sequence, int64_t i) {
  return element<T>(sequence, i);
}

inline bool has_powers(const Range&) { return false; }
inline bool has_powers(const Spaced& spaced) { return spaced.is_power; }

template <class Sequence, class T>
void generate(const Sequence& sequence, int64_t begin, int64_t end, void* out) {
  const Sequence own = sequence;  // which no write can reach
  T* to = static_cast<T*>(out);
  if (has_powers(own)) {
    for (int64_t i = begin; i < end; ++i) to[i] = element_alone<T>(own, i);
    return;
  }
#pragma omp simd
  for (int64_t i = begin; i < end; ++i) to[i] = element<T>(own, i);
}

template <class Sequence>
constexpr void set_loops(GenerateLoop<Sequence> (&loops)[kRealTypes]) {
  constexpr GenerateLoop<Sequence> by_dtype[] = {
      generate<Sequence, bool>,     generate<Sequence, uint8_t>,  generate<Sequence, int8_t>,
      generate<Sequence, uint16_t>, generate<Sequence, int16_t>,  generate<Sequence, uint32_t>,
      generate<Sequence, int32_t>,  generate<Sequence, uint64_t>, generate<Sequence, int64_t>,
      generate<Sequence, Half>,     generate<Sequence, BFloat16>, generate<Sequence, float>,
      generate<Sequence, double>};
  for (int i = 0; i < kRealTypes; ++i) loops[i] = by_dtype[i];
}

constexpr GenerateLoops make_loops() {
  GenerateLoops loops{};
  set_loops(loops.range);
  set_loops(loops.spaced);
  return loops;
}

}  // namespace

extern const GenerateLoops generate_loops;
constexpr GenerateLoops generate_loops = make_loops();

}  // namespace rushlight::RUSHLIGHT_ISA_NAMESPACE
