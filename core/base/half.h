// Owns the half-precision structs and their conversions to and from float.
//
// Also compiled once per instruction set, so it includes no library and every function inlines.
#pragma once

#include <stdint.h>

namespace rushlight {

// IEEE binary16, stored as bits. Arithmetic happens in float: loops convert, formulas never see it.
struct Half {
  uint16_t bits;
};

// The upper half of a float32. Arithmetic happens in float.
struct BFloat16 {
  uint16_t bits;
};

// Round to nearest even; NaN stays NaN.
[[gnu::always_inline]] inline float to_float(BFloat16 h) {
  return __builtin_bit_cast(float, uint32_t(h.bits) << 16);
}
[[gnu::always_inline]] inline BFloat16 to_bfloat16(float f) {
  uint32_t u = __builtin_bit_cast(uint32_t, f);
  uint32_t rounded = (u + 0x7fff + ((u >> 16) & 1)) >> 16;
  return {uint16_t((u & 0x7fffffff) > 0x7f800000 ? (u >> 16) | 0x40 : rounded)};
}
[[gnu::always_inline]] inline float to_float(Half h) {
  // Shift the exponent into float's place, then rescale: exact for all numbers, Inf and NaN.
  uint32_t shifted = uint32_t(h.bits & 0x7fff) << 13;
  float magnitude = __builtin_bit_cast(float, shifted) * 0x1p112f;
  uint32_t inf_or_nan = (h.bits & 0x7c00) == 0x7c00 ? 0x7f800000u : 0u;
  return __builtin_bit_cast(float, __builtin_bit_cast(uint32_t, magnitude) | inf_or_nan |
                                       uint32_t(h.bits & 0x8000) << 16);
}
[[gnu::always_inline]] inline Half to_half(float f) {
  uint32_t u = __builtin_bit_cast(uint32_t, f);
  uint32_t sign = (u >> 16) & 0x8000, magnitude = u & 0x7fffffff;
  if (magnitude > 0x7f800000) return {uint16_t(sign | 0x7e00)};
  if (magnitude >= 0x477ff000) return {uint16_t(sign | 0x7c00)};  // rounds past 65504
  if (magnitude < 0x38800000) {  // subnormal in half: let the float adder do the rounding
    float rounded = __builtin_bit_cast(float, magnitude) + 0.5f;
    return {uint16_t(sign | (__builtin_bit_cast(uint32_t, rounded) - 0x3f000000))};
  }
  uint32_t rounded = magnitude + 0xfff + ((magnitude >> 13) & 1);
  return {uint16_t(sign | ((rounded - 0x38000000) >> 13))};
}

}  // namespace rushlight
