// Owns dtypes, the types of their elements, and Scalar, one number.
#pragma once

#include <complex>
#include <cstring>
#include <type_traits>

#include <rushlight/array_ref.h>

namespace c10 {

struct Half {
  _Float16 value;
  Half() = default;
  Half(float x) : value(_Float16(x)) {}
  operator float() const { return float(value); }
};

struct BFloat16 {
  uint16_t bits;
  BFloat16() = default;
  BFloat16(float x) {  // to the nearest, ties to even
    uint32_t wide;
    std::memcpy(&wide, &x, sizeof x);
    if (x != x) bits = 0x7fc0;
    else bits = uint16_t((wide + 0x7fff + (wide >> 16 & 1)) >> 16);
  }
  operator float() const {
    uint32_t wide = uint32_t(bits) << 16;
    float x;
    std::memcpy(&x, &wide, sizeof x);
    return x;
  }
};

#define RUSHLIGHT_COMPOUND(type)                                      \
  inline type& operator+=(type& a, float b) { return a = float(a) + b; } \
  inline type& operator-=(type& a, float b) { return a = float(a) - b; } \
  inline type& operator*=(type& a, float b) { return a = float(a) * b; } \
  inline type& operator/=(type& a, float b) { return a = float(a) / b; }
RUSHLIGHT_COMPOUND(Half)
RUSHLIGHT_COMPOUND(BFloat16)
#undef RUSHLIGHT_COMPOUND

template <class T>
using complex = std::complex<T>;

// _(C++ type, name in C++, name in Python and in the table)
#define RUSHLIGHT_DTYPES(_) _(bool, Bool, bool_) RUSHLIGHT_OTHER_DTYPES(_)
#define RUSHLIGHT_OTHER_DTYPES(_)                   \
  _(uint8_t, Byte, uint8)                           \
  _(int8_t, Char, int8)                             \
  _(int16_t, Short, int16)                          \
  _(int32_t, Int, int32)                            \
  _(int64_t, Long, int64)                           \
  _(::c10::Half, Half, float16)                     \
  _(float, Float, float32)                          \
  _(double, Double, float64)                        \
  _(::c10::complex<float>, ComplexFloat, complex64) \
  _(::c10::complex<double>, ComplexDouble, complex128) \
  _(::c10::BFloat16, BFloat16, bfloat16)            \
  _(uint16_t, UInt16, uint16)                       \
  _(uint32_t, UInt32, uint32)                       \
  _(uint64_t, UInt64, uint64)

enum class ScalarType : int32_t {
#define RUSHLIGHT_CASE(type, name, dtype) name = int32_t(abi::DType::dtype),
  RUSHLIGHT_DTYPES(RUSHLIGHT_CASE)
#undef RUSHLIGHT_CASE
      Float8_e5m2 = int32_t(abi::DType::float8_e5m2),
  Float8_e4m3fn = int32_t(abi::DType::float8_e4m3fn),
  Undefined = -1,
};
#define RUSHLIGHT_CASE(type, name, dtype) inline constexpr ScalarType k##name = ScalarType::name;
RUSHLIGHT_DTYPES(RUSHLIGHT_CASE)
#undef RUSHLIGHT_CASE
inline constexpr ScalarType kU8 = kByte, kI8 = kChar, kI16 = kShort, kI32 = kInt, kI64 = kLong;
inline constexpr ScalarType kUInt8 = kByte, kInt8 = kChar, kInt16 = kShort, kInt32 = kInt;
inline constexpr ScalarType kInt64 = kLong, kFloat16 = kHalf, kFloat32 = kFloat, kF32 = kFloat;
inline constexpr ScalarType kFloat64 = kDouble, kF64 = kDouble, kF16 = kHalf;
inline constexpr ScalarType kComplex64 = kComplexFloat, kComplex128 = kComplexDouble;

using Dtype = ScalarType;

inline const char* toString(ScalarType type) {
  switch (type) {
#define RUSHLIGHT_CASE(type, name, dtype) \
  case ScalarType::name: return #name;
    RUSHLIGHT_DTYPES(RUSHLIGHT_CASE)
#undef RUSHLIGHT_CASE
    case ScalarType::Float8_e5m2: return "Float8_e5m2";
    case ScalarType::Float8_e4m3fn: return "Float8_e4m3fn";
    case ScalarType::Undefined: break;
  }
  return "Undefined";
}
// "float32", as a module of Python has it.
inline const char* python_name(ScalarType type) {
  switch (type) {
    case ScalarType::Bool: return "bool";
#define RUSHLIGHT_CASE(type, name, dtype) \
  case ScalarType::name: return #dtype;
      RUSHLIGHT_OTHER_DTYPES(RUSHLIGHT_CASE)
#undef RUSHLIGHT_CASE
    case ScalarType::Float8_e5m2: return "float8_e5m2";
    case ScalarType::Float8_e4m3fn: return "float8_e4m3fn";
    case ScalarType::Undefined: break;
  }
  throw Error("an undefined dtype");
}
inline std::ostream& operator<<(std::ostream& out, ScalarType type) {
  return out << toString(type);
}
inline size_t elementSize(ScalarType type) {
  switch (type) {
#define RUSHLIGHT_CASE(type, name, dtype) \
  case ScalarType::name: return sizeof(type);
    RUSHLIGHT_DTYPES(RUSHLIGHT_CASE)
#undef RUSHLIGHT_CASE
    default: return 1;
  }
}
inline bool isComplexType(ScalarType type) {
  return type == kComplexFloat || type == kComplexDouble;
}
inline bool isFloatingType(ScalarType type) {
  return type == kFloat || type == kDouble || type == kHalf || type == kBFloat16 ||
         type == ScalarType::Float8_e5m2 || type == ScalarType::Float8_e4m3fn;
}
inline bool isIntegralType(ScalarType type, bool includeBool = false) {
  return type == kBool ? includeBool : !isFloatingType(type) && !isComplexType(type);
}

// What the dtype of a tensor is called besides.
class TypeMeta {
 public:
  TypeMeta(ScalarType type) : type_(type) {}
  operator ScalarType() const { return type_; }
  ScalarType toScalarType() const { return type_; }
  size_t itemsize() const { return elementSize(type_); }
  string_view name() const { return toString(type_); }

 private:
  ScalarType type_;
};
inline std::ostream& operator<<(std::ostream& out, TypeMeta type) {
  return out << type.toScalarType();
}
inline ScalarType typeMetaToScalarType(TypeMeta type) { return type; }

template <class T>
struct CppTypeToScalarType;
template <ScalarType type>
struct ScalarTypeToCPPType;
#define RUSHLIGHT_CASE(type_, name, dtype)                 \
  template <>                                             \
  struct CppTypeToScalarType<type_> {                      \
    static constexpr ScalarType value = ScalarType::name; \
  };                                                      \
  template <>                                             \
  struct ScalarTypeToCPPType<ScalarType::name> {          \
    using type = type_;                                    \
  };
RUSHLIGHT_DTYPES(RUSHLIGHT_CASE)
#undef RUSHLIGHT_CASE

// What elements are computed in.
template <class T>
struct OpMathType {
  using type = std::conditional_t<std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>, float, T>;
};
template <class T>
using opmath_type = typename OpMathType<T>::type;

// One number, which remembers what it was.
class Scalar {
 public:
  Scalar() : Scalar(int64_t(0)) {}
  template <class T, class = std::enable_if_t<std::is_arithmetic_v<T>>>
  Scalar(T number) {
    if constexpr (std::is_same_v<T, bool>) {
      kind_ = abi::Kind::boolean;
      integer_ = number;
    } else if constexpr (std::is_integral_v<T>) {
      kind_ = abi::Kind::integer;
      integer_ = int64_t(number);
    } else {
      kind_ = abi::Kind::real;
      real_ = double(number);
    }
  }
  Scalar(Half number) : Scalar(float(number)) {}
  Scalar(BFloat16 number) : Scalar(float(number)) {}
  Scalar(complex<double> z) : kind_(abi::Kind::complex_), real_(z.real()), imag_(z.imag()) {}
  Scalar(complex<float> z) : Scalar(complex<double>(z)) {}

  template <class T>
  T to() const {
    if constexpr (std::is_same_v<T, complex<float>> || std::is_same_v<T, complex<double>>) {
      using R = typename T::value_type;
      return is_whole() ? T(R(integer_)) : T(R(real_), R(imag_));
    } else if constexpr (std::is_same_v<T, bool>) {
      return is_whole() ? integer_ != 0 : real_ != 0 || imag_ != 0;
    } else {
      TORCH_CHECK(!isComplex() || imag_ == 0,
                  "a complex number with an imaginary part is not real");
      return is_whole() ? T(integer_) : T(real_);
    }
  }
  bool toBool() const { return to<bool>(); }
  int toInt() const { return to<int>(); }
  int64_t toLong() const { return to<int64_t>(); }
  float toFloat() const { return to<float>(); }
  double toDouble() const { return to<double>(); }
  complex<double> toComplexDouble() const { return to<complex<double>>(); }
  bool isBoolean() const { return kind_ == abi::Kind::boolean; }
  bool isIntegral(bool includeBool = false) const {
    return kind_ == abi::Kind::integer || (includeBool && isBoolean());
  }
  bool isFloatingPoint() const { return kind_ == abi::Kind::real; }
  bool isComplex() const { return kind_ == abi::Kind::complex_; }
  ScalarType type() const {
    return isComplex() ? kComplexDouble : isFloatingPoint() ? kDouble : isBoolean() ? kBool : kLong;
  }

  abi::Value value() const {
    abi::Value out{};
    out.kind = kind_;
    if (is_whole()) {
      out.integer = integer_;
    } else {
      out.real[0] = real_;
      out.real[1] = imag_;
    }
    return out;
  }
  explicit Scalar(const abi::Value& value) : kind_(value.kind) {
    if (is_whole()) {
      integer_ = value.integer;
    } else {
      real_ = value.real[0];
      if (isComplex()) imag_ = value.real[1];
    }
  }

 private:
  bool is_whole() const { return kind_ == abi::Kind::integer || kind_ == abi::Kind::boolean; }

  abi::Kind kind_ = abi::Kind::integer;
  int64_t integer_ = 0;
  double real_ = 0, imag_ = 0;
};

}  // namespace c10
