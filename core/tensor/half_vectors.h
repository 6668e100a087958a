// Owns the conversions of a register full of float16 numbers, by the instructions for it, which the
// vectorizer does not know. The baseline set has none.
#pragma once

#if RUSHLIGHT_ISA >= 3

namespace rushlight::RUSHLIGHT_ISA_NAMESPACE {

#if RUSHLIGHT_ISA == 3
constexpr int kHalves = 8;
#else
constexpr int kHalves = 16;
#endif
using Floats = float __attribute__((vector_size(kHalves * sizeof(float))));
using Halves = short __attribute__((vector_size(kHalves * sizeof(short))));
constexpr int kNearest = 0;

inline Floats to_floats(Halves x) {
#if RUSHLIGHT_ISA == 3
  return __builtin_ia32_vcvtph2ps256(x);
#else
  return __builtin_ia32_vcvtph2ps512_mask(x, Floats{}, -1, 4 /* current rounding */);
#endif
}
inline Halves to_halves(Floats x) {
#if RUSHLIGHT_ISA == 3
  return __builtin_ia32_vcvtps2ph256(x, kNearest);
#else
  return __builtin_ia32_vcvtps2ph512_mask(x, kNearest, Halves{}, -1);
#endif
}

}  // namespace rushlight::RUSHLIGHT_ISA_NAMESPACE

#endif
