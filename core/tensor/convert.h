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
[[gnu::always_inline]] inline T element_at(const void* from, int64_t i) {
  // Views of bytes and foreign memory may hold bools that are neither 0 nor 1: those are true.
  if constexpr (detail::kSame<T, bool>) return static_cast<const uint8_t*>(from)[i] != 0;
  else return static_cast<const T*>(from)[i];
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
    return To(int32_t(x));  // wraps around, as C does from integers
  } else if constexpr (detail::kSame<To, uint32_t>) {
    return To(int64_t(x));
  } else {
    return To(x);
  }
}

}  // namespace rushlight::RUSHLIGHT_ISA_NAMESPACE
