// Owns load_wide() and store_rounded(): registers of numbers from memory, where halves become
// floats, and back, for kernels that are compiled once per instruction set.
#pragma once

#include "core/tensor/vectors.h"

#include "core/tensor/half_vectors.h"

namespace rushlight::RUSHLIGHT_ISA_NAMESPACE {

// What an element is in a register.
template <class T>
using Wide = std::conditional_t<detail::kSame<T, Half> || detail::kSame<T, BFloat16>, float, T>;

#if RUSHLIGHT_ISA < 3
// The bits of a register of floats, and of as many BFloat16.
using FloatWords = uint32_t __attribute__((vector_size(kWidth<float> * sizeof(uint32_t))));
using UpperHalves = uint16_t __attribute__((vector_size(kWidth<float> * sizeof(uint16_t))));
#endif

// From a BFloat16 or a Half.
template <class Short>
[[gnu::always_inline]] inline Vector<float> load_half(const Short* from) {
#if RUSHLIGHT_ISA >= 3
  Halves x;
  __builtin_memcpy(&x, from, sizeof(x));
  return detail::kSame<Short, Half> ? to_floats(x) : upper_to_floats(x);
#else
  if constexpr (detail::kSame<Short, BFloat16>) {
    UpperHalves x;
    __builtin_memcpy(&x, from, sizeof(x));
    return (Vector<float>)(__builtin_convertvector(x, FloatWords) << 16);
  } else {
    Vector<float> v;
    for (int i = 0; i < kWidth<float>; ++i) v[i] = to_float(from[i]);
    return v;
  }
#endif
}
template <class T>
[[gnu::always_inline]] inline Vector<Wide<T>> load_wide(const T* from) {
  if constexpr (detail::kSame<T, Wide<T>>) return load_vector(from);
  else return load_half(from);
}

// Rounded to a BFloat16 or a Half each.
template <class Short>
[[gnu::always_inline]] inline void store_half(Short* to, Vector<float> v) {
#if RUSHLIGHT_ISA >= 3
  Halves x = detail::kSame<Short, Half> ? to_halves(v) : round_to_upper(v);
  __builtin_memcpy(to, &x, sizeof(x));
#else
  if constexpr (detail::kSame<Short, BFloat16>) {
    FloatWords bits = (FloatWords)v, nearest = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
    auto x = __builtin_convertvector(v == v ? nearest : (bits >> 16) | 0x40, UpperHalves);
    __builtin_memcpy(to, &x, sizeof(x));
  } else {
    for (int i = 0; i < kWidth<float>; ++i) to[i] = from_float<Short>(v[i]);
  }
#endif
}
template <class T>
[[gnu::always_inline]] inline void store_rounded(T* to, Vector<Wide<T>> v) {
  if constexpr (detail::kSame<T, Wide<T>>) store_vector(to, v);
  else store_half(to, v);
}
// Two registers, one after the other.
template <class T>
[[gnu::always_inline]] inline void store_rounded(T* to, Vector<Wide<T>> v, Vector<Wide<T>> w) {
#if RUSHLIGHT_ISA >= 3
  if constexpr (detail::kSame<T, BFloat16>) {
    const HalvesPair both = round_to_upper(v, w);
    __builtin_memcpy(to, &both, sizeof(both));
    return;
  }
#endif
  store_rounded(to, v);
  store_rounded(to + kWidth<Wide<T>>, w);
}

}  // namespace rushlight::RUSHLIGHT_ISA_NAMESPACE
