// Owns load_wide(): a register of numbers from memory, where halves become floats, for kernels that
// are compiled once per instruction set.
#pragma once

#include "core/tensor/vectors.h"

#include "core/tensor/half_vectors.h"

namespace rushlight::RUSHLIGHT_ISA_NAMESPACE {

template <class T>
[[gnu::always_inline]] inline Vector<T> load_wide(const T* from) {
  return load_vector(from);
}

[[gnu::always_inline]] inline Vector<float> load_wide(const BFloat16* from) {
  using Bits = uint16_t __attribute__((vector_size(kWidth<float> * sizeof(uint16_t))));
  Bits bits;
  __builtin_memcpy(&bits, from, sizeof(bits));
#if RUSHLIGHT_ISA == 4  // whose 512 bits __builtin_convertvector puts together from halves
  auto wide = Vector<uint32_t>(_mm512_maskz_cvtepu16_epi32(-1, __m256i(bits)));
#elif RUSHLIGHT_ISA == 3
  auto wide = Vector<uint32_t>(_mm256_cvtepu16_epi32(__m128i(bits)));
#else
  auto wide = __builtin_convertvector(bits, Vector<uint32_t>);
#endif
  return Vector<float>(wide << 16);
}

[[gnu::always_inline]] inline Vector<float> load_wide(const Half* from) {
#if RUSHLIGHT_ISA >= 3
  Halves x;
  __builtin_memcpy(&x, from, sizeof(x));
  return to_floats(x);
#else
  Vector<float> v;
  for (int i = 0; i < kWidth<float>; ++i) v[i] = to_float(from[i]);
  return v;
#endif
}

}  // namespace rushlight::RUSHLIGHT_ISA_NAMESPACE
