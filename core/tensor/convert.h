// Owns element_at<T>(memory, i), how an element is read, and convert<To>(x), what it becomes in
// another dtype. The same text serves every instruction set and CUDA; formula.h or formula.cuh
// comes before it.
#pragma once

#include "core/base/half.h"

namespace rushlight::RUSHLIGHT_ISA_NAMESPACE {

template <class T>
inline constexpr bool kShort = detail::kSame<T, Half> || detail::kSame<T, BFloat16> ||
                               detail::kSame<T, Float8E4M3> || detail::kSame<T, Float8E5M2>;
template <class T>
inline constexpr bool kSmallInteger = T(0.5f) == T(0) && sizeof(T) < 4;
template <>
inline constexpr bool kSmallInteger<bool> = false;
template <class T>
inline constexpr bool kWideFloat = detail::kSame<T, float> || detail::kSame<T, double>;

template <class T>
[[gnu::always_inline]] inline T element_at(const void* from, int64_t i) {
  // Views of bytes and foreign memory may hold bools that are neither 0 nor 1: those are true.
  if constexpr (detail::kSame<T, bool>) return static_cast<const uint8_t*>(from)[i] != 0;
  else return static_cast<const T*>(from)[i];
}

// The whole part of x, as int32_t or int64_t. What those cannot hold, and NaN, becomes the least of
// them: x86-64 has instructions for that, those of AArch64 give the nearest and 0.
template <class To, class From>
[[gnu::always_inline]] inline To whole_part(From x) {
#ifdef __aarch64__
  if constexpr (kWideFloat<From>) {
    constexpr From kEnd = From(uint64_t(1) << (8 * sizeof(To) - 1));
    constexpr To kLeast = To(uint64_t(1) << (8 * sizeof(To) - 1));
    return (x >= -kEnd) & (x < kEnd) ? To(x) : kLeast;
  }
#endif
  return To(x);
}

template <class To, class From>
[[gnu::always_inline]] inline To convert(From x) {
  if constexpr (detail::kSame<To, From>) {
    return x;
  } else if constexpr (kShort<From>) {
    return convert<To>(to_float(x));
  } else if constexpr (kShort<To>) {
    return from_float<To>(convert<float>(x));
#if RUSHLIGHT_ISA == 0
  } else if constexpr (detail::kSame<To, bool> && detail::IsComplex<From>::value) {
    return x != From(0);
  } else if constexpr (detail::IsComplex<From>::value && detail::IsComplex<To>::value) {
    return To(x);
  } else if constexpr (detail::IsComplex<From>::value) {
    return convert<To>(x.real());
  } else if constexpr (detail::IsComplex<To>::value) {
    return To(convert<typename To::value_type>(x));
#endif
  } else if constexpr (detail::kSame<To, bool>) {
    return x != From(0);
  } else if constexpr (kSmallInteger<To> && !kSmallInteger<From>) {
    return To(whole_part<int32_t>(x));  // wraps around, as C does from integers
  } else if constexpr (detail::kSame<To, uint32_t>) {
    return To(whole_part<int64_t>(x));
  } else if constexpr (detail::kSame<To, uint64_t> && kWideFloat<From>) {
    constexpr From kHalf = 0x1p63f;
    constexpr uint64_t kBit = uint64_t(1) << 63;
    return x >= kHalf ? uint64_t(whole_part<int64_t>(x - kHalf)) ^ kBit
                      : uint64_t(whole_part<int64_t>(x));
  } else if constexpr (detail::kSame<To, int32_t> || detail::kSame<To, int64_t>) {
    return whole_part<To>(x);
  } else {
    return To(x);
  }
}

}  // namespace rushlight::RUSHLIGHT_ISA_NAMESPACE
