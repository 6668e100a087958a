// Owns the conversions of a register full of halves, by instructions that the vectorizer does not
// know or does not choose. The baseline set has none.
#pragma once

#include <utility>

#include "core/base/half.h"

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

// The same of bfloat16, the upper halves of floats.
using FloatBits = int __attribute__((vector_size(sizeof(Floats))));
inline Floats upper_to_floats(Halves x) {
#if RUSHLIGHT_ISA == 3
  return Floats(__builtin_ia32_pmovzxwd256(x) << 16);
#else
  return Floats(__builtin_ia32_pmovzxwd512_mask(x, FloatBits{}, -1) << 16);
#endif
}
// As they are, of floats whose lower halves are zero.
inline Halves upper_halves(FloatBits x) {
  using Unsigned = unsigned __attribute__((vector_size(sizeof(Floats))));
  const FloatBits upper = FloatBits(Unsigned(x) >> 16);
#if RUSHLIGHT_ISA == 3
  using Quarter = int __attribute__((vector_size(sizeof(Halves))));
  Quarter parts[2];
  __builtin_memcpy(parts, &upper, sizeof(parts));
  return Halves(__builtin_ia32_packusdw128(parts[0], parts[1]));
#else
  return Halves(__builtin_ia32_pmovdw512_mask(upper, Halves{}, -1));
#endif
}
// Rounded as to_bfloat16() does.
inline FloatBits add_rounding(Floats x) {
  const FloatBits u = FloatBits(x);
  return u + 0x7fff + ((u >> 16) & 1);
}
inline Halves round_to_upper(Floats x) {
  return upper_halves(x != x ? FloatBits(x) | 0x400000 : add_rounding(x));
}

// The same of two registers at once: one comparison tells that none of them has a NaN, which
// spares each lane a choice.
using HalvesPair = short __attribute__((vector_size(sizeof(Floats))));
inline bool any_nan(Floats x, Floats y) {
  constexpr int kUnordered = 3;
#if RUSHLIGHT_ISA == 3
  return __builtin_ia32_movmskps256(__builtin_ia32_cmpps256(x, y, kUnordered)) != 0;
#else
  return __builtin_ia32_cmpps512_mask(x, y, kUnordered, -1, 4 /* current rounding */) != 0;
#endif
}
template <size_t... I>
[[gnu::always_inline]] inline HalvesPair upper_halves(FloatBits x, FloatBits y,
                                                      std::index_sequence<I...>) {
  return __builtin_shufflevector(HalvesPair(x), HalvesPair(y), (2 * int(I) + 1)...);
}
inline HalvesPair upper_halves(FloatBits x, FloatBits y) {
  return upper_halves(x, y, std::make_index_sequence<2 * kHalves>{});
}
inline HalvesPair round_to_upper(Floats x, Floats y) {
  HalvesPair rounded = upper_halves(add_rounding(x), add_rounding(y));
  if (__builtin_expect(any_nan(x, y), false)) {
    const Halves parts[2] = {round_to_upper(x), round_to_upper(y)};
    __builtin_memcpy(&rounded, parts, sizeof rounded);
  }
  return rounded;
}

}  // namespace rushlight::RUSHLIGHT_ISA_NAMESPACE

#endif
