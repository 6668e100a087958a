// Owns PlainComplex: complex numbers whose products and quotients are no more than their formulas,
// which vectorize; std::complex looks for NaN. The same text serves every instruction set and CUDA.
//
// Before it stand kComplexAlignment<T>, of numbers with parts of T, and rounded(x), which keeps a
// product from being added without rounding: z * conj(z) is to be real.
#pragma once

namespace rushlight::RUSHLIGHT_ISA_NAMESPACE {

template <class T>
struct alignas(kComplexAlignment<T>) PlainComplex {
  using value_type = T;

  PlainComplex() = default;
  constexpr PlainComplex(T real, T imag = T(0)) : real_(real), imag_(imag) {}
  template <class U>
  explicit constexpr PlainComplex(PlainComplex<U> z) : real_(T(z.real())), imag_(T(z.imag())) {}

  constexpr T real() const { return real_; }
  constexpr T imag() const { return imag_; }

  friend constexpr PlainComplex operator+(PlainComplex a) { return a; }
  friend constexpr PlainComplex operator-(PlainComplex a) { return {-a.real_, -a.imag_}; }
  friend constexpr PlainComplex operator+(PlainComplex a, PlainComplex b) {
    return {a.real_ + b.real_, a.imag_ + b.imag_};
  }
  friend constexpr PlainComplex operator-(PlainComplex a, PlainComplex b) {
    return {a.real_ - b.real_, a.imag_ - b.imag_};
  }
  friend PlainComplex operator*(PlainComplex a, PlainComplex b) {
    return {rounded(a.real_ * b.real_) - rounded(a.imag_ * b.imag_),
            rounded(a.real_ * b.imag_) + rounded(a.imag_ * b.real_)};
  }
  // Divided by the larger part of the divisor first, so that squares do not overflow (Smith 1962).
  // The parts are swapped where that is the imaginary one; over 0 each part is infinite or NaN.
  friend PlainComplex operator/(PlainComplex a, PlainComplex b) {
    bool swaps = abs(b.real_) < abs(b.imag_);
    T larger = swaps ? b.imag_ : b.real_, smaller = swaps ? b.real_ : b.imag_;
    T x = swaps ? a.imag_ : a.real_, y = swaps ? a.real_ : a.imag_;
    T ratio = larger == T(0) ? T(0) : smaller / larger;
    T divisor = larger == T(0) ? T(0) : larger + rounded(smaller * ratio);
    T product = rounded(x * ratio), difference = swaps ? product - y : y - product;
    return {(x + rounded(y * ratio)) / divisor, difference / divisor};
  }
  friend constexpr bool operator==(PlainComplex a, PlainComplex b) {
    return (a.real_ == b.real_) & (a.imag_ == b.imag_);
  }

 private:
  T real_, imag_;
};

template <class T>
inline T real(PlainComplex<T> z) {
  return z.real();
}
template <class T>
inline T imag(PlainComplex<T> z) {
  return z.imag();
}
template <class T>
inline PlainComplex<T> conj(PlainComplex<T> z) {
  return {z.real(), -z.imag()};
}
// z / |z|, or 0, by way of parts of which the larger is 1, so that no square overflows or vanishes.
template <class T>
inline PlainComplex<T> sgn(PlainComplex<T> z) {
  T a = abs(z.real()), b = abs(z.imag()), larger = a < b ? b : a;
  bool has_unit = (larger > T(0)) & (larger - larger == T(0));
  T unit = has_unit ? larger : T(1);
  T x = z.real() / unit, y = z.imag() / unit;
  T length = sqrt(rounded(x * x) + rounded(y * y));
  bool is_zero = length == T(0);  // whose parts may be -0
  return {is_zero ? T(0) : x / length, is_zero ? T(0) : y / length};
}

}  // namespace rushlight::RUSHLIGHT_ISA_NAMESPACE
