// Owns the element types: their list, sizes, categories, the half-precision structs and promotion.
//
// One X-macro list names the dtypes of arithmetic, a second one those that are only stored: loops
// convert their elements to float32 and back.
#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>

#include "core/base/error.h"
#include "core/base/half.h"

namespace rushlight {

// _(C++ type, name): the order is the order of promotion within a category.
#define RUSHLIGHT_DTYPES(_)           \
  _(bool, bool_)                      \
  _(uint8_t, uint8)                   \
  _(int8_t, int8)                     \
  _(uint16_t, uint16)                 \
  _(int16_t, int16)                   \
  _(uint32_t, uint32)                 \
  _(int32_t, int32)                   \
  _(uint64_t, uint64)                 \
  _(int64_t, int64)                   \
  _(Half, float16)                    \
  _(BFloat16, bfloat16)               \
  _(float, float32)                   \
  _(double, float64)                  \
  _(std::complex<float>, complex64)   \
  _(std::complex<double>, complex128)
#define RUSHLIGHT_STORED_DTYPES(_) \
  _(Float8E4M3, float8_e4m3fn)     \
  _(Float8E5M2, float8_e5m2)

enum class DType : uint8_t {
#define RUSHLIGHT_ENUMERATOR(type, name) name,
  RUSHLIGHT_DTYPES(RUSHLIGHT_ENUMERATOR) RUSHLIGHT_STORED_DTYPES(RUSHLIGHT_ENUMERATOR)
#undef RUSHLIGHT_ENUMERATOR
};

inline constexpr int kDTypeCount = int(DType::float8_e5m2) + 1;

// "bool" where the enumerator must read bool_.
const char* dtype_name(DType dtype);
constexpr size_t dtype_size(DType dtype) {
  constexpr uint8_t sizes[] = {
#define RUSHLIGHT_SIZE(type, name) sizeof(type),
      RUSHLIGHT_DTYPES(RUSHLIGHT_SIZE) RUSHLIGHT_STORED_DTYPES(RUSHLIGHT_SIZE)
#undef RUSHLIGHT_SIZE
  };
  return sizes[int(dtype)];
}

constexpr bool is_bool(DType t) { return t == DType::bool_; }
constexpr bool is_integral(DType t) { return t > DType::bool_ && t <= DType::int64; }
constexpr bool is_unsigned(DType t) {
  return t == DType::uint8 || t == DType::uint16 || t == DType::uint32 || t == DType::uint64;
}
constexpr bool is_floating(DType t) { return t >= DType::float16 && t <= DType::float64; }
constexpr bool is_half(DType t) { return t == DType::float16 || t == DType::bfloat16; }
constexpr bool is_complex(DType t) { return t == DType::complex64 || t == DType::complex128; }
// What BLAS and LAPACK compute in.
constexpr bool is_full_precision(DType t) { return t >= DType::float32 && t <= DType::complex128; }
constexpr bool is_float8(DType t) { return t >= DType::float8_e4m3fn; }
// Only real and complex floating-point tensors carry gradients.
constexpr bool is_differentiable(DType t) { return t >= DType::float16; }

// The largest number of a floating-point dtype.
constexpr double largest_finite(DType t) {
  if (is_float8(t)) return t == DType::float8_e4m3fn ? 448 : 57344;
  if (t == DType::float16) return 65504;
  if (t == DType::bfloat16) return 0x1.fep127;
  return t == DType::float32 ? 0x1.fffffep127 : 0x1.fffffffffffffp1023;
}

// The dtype of the real and imaginary parts: float32 of complex64; real dtypes are their own.
DType real_dtype(DType dtype);
// complex64 of float32 and the half types, complex128 of float64.
DType complex_dtype(DType dtype);

// The common dtype of two tensors, as PyTorch's promotion table has it.
DType promote(DType a, DType b);
// Whether a value of dtype `from` may be written to `to` in place: never to a lower category.
bool can_cast(DType from, DType to);

template <class T>
struct DTypeOf;
#define RUSHLIGHT_TRAIT(type, name)               \
  template <>                                     \
  struct DTypeOf<type> {                          \
    static constexpr DType value = DType::name;   \
  };
RUSHLIGHT_DTYPES(RUSHLIGHT_TRAIT)
RUSHLIGHT_STORED_DTYPES(RUSHLIGHT_TRAIT)
#undef RUSHLIGHT_TRAIT
template <class T>
inline constexpr DType dtype_of = DTypeOf<T>::value;

// Calls f with a value-less tag of the C++ type: visit_dtype(t, [&]<class T>(Tag<T>) { ... }).
// visit_dtype refuses dtypes without arithmetic, visit_stored_dtype takes all.
template <class T>
struct Tag {
  using type = T;
};
[[noreturn]] void refuse_stored_dtype(DType dtype);
template <class F>
decltype(auto) visit_dtype(DType dtype, F&& f) {
  switch (dtype) {
#define RUSHLIGHT_CASE(type, name) \
  case DType::name:                \
    return f(Tag<type>{});
    RUSHLIGHT_DTYPES(RUSHLIGHT_CASE)
    default: refuse_stored_dtype(dtype);
  }
  __builtin_unreachable();
}
template <class F>
decltype(auto) visit_stored_dtype(DType dtype, F&& f) {
  switch (dtype) {
    RUSHLIGHT_DTYPES(RUSHLIGHT_CASE)
    RUSHLIGHT_STORED_DTYPES(RUSHLIGHT_CASE)
#undef RUSHLIGHT_CASE
  }
  __builtin_unreachable();
}

}  // namespace rushlight
