// Owns load_wide() and store_half(): a register of numbers from memory, where halves become floats,
// and of floats to halves, for kernels that are compiled once per instruction set.
#pragma once

#include "core/tensor/vectors.h"

#include "core/tensor/half_vectors.h"

namespace rushlight::RUSHLIGHT_ISA_NAMESPACE {

template <class T>
[[gnu::always_inline]] inline Vector<T> load_wide(const T* from) {
  return load_vector(from);
}

// From a BFloat16 or a Half.
template <class Short>
[[gnu::always_inline]] inline Vector<float> load_half(const Short* from) {
#if RUSHLIGHT_ISA >= 3
  Halves x;
  __builtin_memcpy(&x, from, sizeof(x));
  return detail::kSame<Short, Half> ? to_floats(x) : upper_to_floats(x);
#else
  Vector<float> v;
  for (int i = 0; i < kWidth<float>; ++i) v[i] = to_float(from[i]);
  return v;
#endif
}
[[gnu::always_inline]] inline Vector<float> load_wide(const BFloat16* from) {
  return load_half(from);
}
[[gnu::always_inline]] inline Vector<float> load_wide(const Half* from) { return load_half(from); }

// Rounded to a BFloat16 or a Half each.
template <class Short>
[[gnu::always_inline]] inline void store_half(Short* to, Vector<float> v) {
#if RUSHLIGHT_ISA >= 3
  Halves x = detail::kSame<Short, Half> ? to_halves(v) : round_to_upper(v);
  __builtin_memcpy(to, &x, sizeof(x));
#else
  for (int i = 0; i < kWidth<float>; ++i) to[i] = from_float<Short>(v[i]);
#endif
}

}  // namespace rushlight::RUSHLIGHT_ISA_NAMESPACE
