// Owns the structs of 16-bit and 8-bit floats and their conversions to and from float.
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

// Four bits of exponent and three of fraction, of which two numbers are NaN and none is infinite;
// five and two, as the upper half of a Half ("OCP 8-bit Floating Point Specification", 2023).
struct Float8E4M3 {
  uint8_t bits;
};
struct Float8E5M2 {
  uint8_t bits;
};

// Round to nearest even; NaN stays NaN.
[[gnu::always_inline]] inline float to_float(BFloat16 h) {
  return __builtin_bit_cast(float, uint32_t(h.bits) << 16);
}
// The bits of a float without its sign, rounded to a short format that can hold it.
template <int kFraction, int kBias>
[[gnu::always_inline]] inline uint32_t shorten(uint32_t magnitude) {
  constexpr int kDropped = 23 - kFraction;
  constexpr uint32_t kRebias = uint32_t(127 - kBias) << 23;
  if (magnitude < kRebias + (1u << 23)) {  // subnormal there: let the float adder do the rounding
    constexpr uint32_t kUnit = uint32_t(127 + 1 - kBias + kDropped) << 23;
    float rounded = __builtin_bit_cast(float, magnitude) + __builtin_bit_cast(float, kUnit);
    return __builtin_bit_cast(uint32_t, rounded) - kUnit;
  }
  uint32_t half_down = (1u << (kDropped - 1)) - 1;
  return (magnitude + half_down + ((magnitude >> kDropped) & 1) - kRebias) >> kDropped;
}
#if defined(__CUDACC_RTC__) && !defined(RUSHLIGHT_SHIM)
// A GPU has instructions for these.
[[gnu::always_inline]] inline BFloat16 to_bfloat16(float f) {
  BFloat16 h;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(h.bits) : "f"(f));
  return h;
}
[[gnu::always_inline]] inline float to_float(Half h) {
  float f;
  asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(h.bits));
  return f;
}
[[gnu::always_inline]] inline Half to_half(float f) {
  Half h;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h.bits) : "f"(f));
  return h;
}
#else
[[gnu::always_inline]] inline BFloat16 to_bfloat16(float f) {
  uint32_t u = __builtin_bit_cast(uint32_t, f);
  uint32_t rounded = u + 0x7fff + ((u >> 16) & 1), quiet = u | 0x400000;
  return {uint16_t((f != f ? quiet : rounded) >> 16)};
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
  return {uint16_t(sign | shorten<10, 15>(magnitude))};
}
#endif
[[gnu::always_inline]] inline float to_float(Float8E5M2 x) {
  return to_float(Half{uint16_t(x.bits << 8)});
}
[[gnu::always_inline]] inline float to_float(Float8E4M3 x) {
  float magnitude = __builtin_bit_cast(float, uint32_t(x.bits & 0x7f) << 20) * 0x1p120f;
  uint32_t nan = (x.bits & 0x7f) == 0x7f ? 0x7fc00000u : 0u;
  return __builtin_bit_cast(
      float, __builtin_bit_cast(uint32_t, magnitude) | nan | uint32_t(x.bits & 0x80) << 24);
}

[[gnu::always_inline]] inline Float8E5M2 to_float8_e5m2(float f) {
  uint32_t u = __builtin_bit_cast(uint32_t, f);
  uint32_t sign = (u >> 24) & 0x80, magnitude = u & 0x7fffffff;
  if (magnitude > 0x7f800000) return {uint8_t(sign | 0x7f)};
  if (magnitude >= 0x47700000) return {uint8_t(sign | 0x7c)};  // rounds past 57344
  return {uint8_t(sign | shorten<2, 15>(magnitude))};
}
[[gnu::always_inline]] inline Float8E4M3 to_float8_e4m3(float f) {
  uint32_t u = __builtin_bit_cast(uint32_t, f);
  uint32_t sign = (u >> 24) & 0x80, magnitude = u & 0x7fffffff;
  if (magnitude > 0x7f800000) return {uint8_t(sign | 0x7f)};
  if (magnitude >= 0x43e00000) return {uint8_t(sign | 0x7e)};  // 448, which is the largest
  return {uint8_t(sign | shorten<3, 7>(magnitude))};
}

// The same by the name of the type.
template <class Short>
Short from_float(float f);
template <>
[[gnu::always_inline]] inline Half from_float<Half>(float f) {
  return to_half(f);
}
template <>
[[gnu::always_inline]] inline BFloat16 from_float<BFloat16>(float f) {
  return to_bfloat16(f);
}
template <>
[[gnu::always_inline]] inline Float8E4M3 from_float<Float8E4M3>(float f) {
  return to_float8_e4m3(f);
}
template <>
[[gnu::always_inline]] inline Float8E5M2 from_float<Float8E5M2>(float f) {
  return to_float8_e5m2(f);
}

}  // namespace rushlight
