// Owns Scalar: one Python number (bool, int, float or complex) that remembers which it was. An int
// is one of int64 or, above its range, of uint64.
#pragma once

#include <cmath>
#include <complex>
#include <cstdint>
#include <ostream>

#include "core/base/dtype.h"
#include "core/base/error.h"

namespace rushlight {

class Scalar {
 public:
  enum class Kind : uint8_t { kBool, kInt, kFloat, kComplex };

  Scalar() : Scalar(0) {}
  Scalar(bool v) : kind_(Kind::kBool), int_(v) {}
  Scalar(int v) : kind_(Kind::kInt), int_(v) {}
  Scalar(int64_t v) : kind_(Kind::kInt), int_(v) {}
  Scalar(uint64_t v) : kind_(Kind::kInt), exceeds_int64_(int64_t(v) < 0), int_(int64_t(v)) {}
  Scalar(double v) : kind_(Kind::kFloat), real_(v) {}
  Scalar(float v) : Scalar(double(v)) {}
  Scalar(std::complex<double> v) : kind_(Kind::kComplex), real_(v.real()), imag_(v.imag()) {}

  Kind kind() const { return kind_; }
  bool is_integral() const { return kind_ <= Kind::kInt; }
  bool is_complex() const { return kind_ == Kind::kComplex; }
  bool exceeds_int64() const { return exceeds_int64_; }
  // An int, or a real number without a fraction that fits into int64.
  bool is_whole() const {
    bool fits = real_ >= -0x1p63 && real_ < 0x1p63;
    return is_integral() || (!is_complex() && fits && std::trunc(real_) == real_);
  }
  // The dtype that the number has by itself; floats take `default_dtype` in tensors.
  DType dtype() const;

  // Conversions to elements of every dtype; a complex number with an imaginary part does not become
  // real, nor a fraction an integer, without the caller having checked kind().
  template <class T>
  T to() const {
    if constexpr (std::is_same_v<T, bool>) {
      return is_integral() ? int_ != 0 : real_ != 0 || imag_ != 0;
    } else if constexpr (std::is_same_v<T, std::complex<float>> ||
                         std::is_same_v<T, std::complex<double>>) {
      using R = typename T::value_type;
      return is_integral() ? T(integer<R>()) : T(R(real_), R(imag_));
    } else if constexpr (requires(T element) { to_float(element); }) {
      return from_float<T>(to<float>());
    } else {
      return is_integral() ? integer<T>() : T(real_);
    }
  }

 private:
  template <class T>
  T integer() const {
    return exceeds_int64_ ? T(uint64_t(int_)) : T(int_);
  }

  Kind kind_;
  bool exceeds_int64_ = false;
  int64_t int_ = 0;
  double real_ = 0, imag_ = 0;
};

inline DType Scalar::dtype() const {
  switch (kind_) {
    case Kind::kBool: return DType::bool_;
    case Kind::kInt: return exceeds_int64_ ? DType::uint64 : DType::int64;
    case Kind::kFloat: return DType::float64;
    case Kind::kComplex: return DType::complex128;
  }
  __builtin_unreachable();
}

inline std::ostream& operator<<(std::ostream& out, const Scalar& s) {
  switch (s.kind()) {
    case Scalar::Kind::kBool: return out << (s.to<bool>() ? "True" : "False");
    case Scalar::Kind::kInt:
      return s.exceeds_int64() ? out << s.to<uint64_t>() : out << s.to<int64_t>();
    case Scalar::Kind::kFloat: return out << s.to<double>();
    case Scalar::Kind::kComplex: return out << s.to<std::complex<double>>();
  }
  return out;
}

}  // namespace rushlight
