// Owns Complex on CUDA: what formulas need of std::complex, which NVRTC does not have.
//
// Functions follow the definitions of C99 annex G as far as finite numbers go; infinities and NaN
// may come out differently from the CPU in the corners.
#pragma once

#include "core/tensor/complex.h"

namespace rushlight::on_cuda {

template <class T>
using Complex = PlainComplex<T>;

template <class T>
inline T abs(Complex<T> z) {
  return hypot(z.real(), z.imag());
}
template <class T>
inline T arg(Complex<T> z) {
  return atan2(z.imag(), z.real());
}
template <class T>
inline Complex<T> polar(T magnitude, T angle) {
  return {magnitude * cos(angle), magnitude * sin(angle)};
}
template <class T>
inline Complex<T> times_i(Complex<T> z) {
  return {-z.imag(), z.real()};
}

template <class T>
inline Complex<T> exp(Complex<T> z) {
  return polar(exp(z.real()), z.imag());
}
template <class T>
inline Complex<T> log(Complex<T> z) {
  return {log(abs(z)), arg(z)};
}
template <class T>
inline Complex<T> log10(Complex<T> z) {
  return log(z) * Complex<T>(T(0.4342944819032518));
}
// The root with a real part of at least 0, from the half of the two where nothing cancels.
template <class T>
inline Complex<T> sqrt(Complex<T> z) {
  T magnitude = abs(z);
  if (magnitude == T(0)) return {T(0), z.imag()};
  T larger = sqrt((magnitude + abs(z.real())) * T(0.5)),
    smaller = abs(z.imag()) / (larger + larger);
  if (z.real() >= T(0)) return {larger, copysign(smaller, z.imag())};
  return {smaller, copysign(larger, z.imag())};
}
template <class T>
inline Complex<T> pow(Complex<T> z, Complex<T> exponent) {
  if (exponent == Complex<T>(0)) return T(1);
  if (z == Complex<T>(0)) return T(0);
  return exp(exponent * log(z));
}

template <class T>
inline Complex<T> sin(Complex<T> z) {
  return {sin(z.real()) * cosh(z.imag()), cos(z.real()) * sinh(z.imag())};
}
template <class T>
inline Complex<T> cos(Complex<T> z) {
  return {cos(z.real()) * cosh(z.imag()), -(sin(z.real()) * sinh(z.imag()))};
}
template <class T>
inline Complex<T> sinh(Complex<T> z) {
  return {sinh(z.real()) * cos(z.imag()), cosh(z.real()) * sin(z.imag())};
}
template <class T>
inline Complex<T> cosh(Complex<T> z) {
  return {cosh(z.real()) * cos(z.imag()), sinh(z.real()) * sin(z.imag())};
}
// Kahan, "Branch cuts for complex elementary functions", 1987; so are the inverses below.
template <class T>
inline Complex<T> tanh(Complex<T> z) {
  if (abs(z.real()) > T(20)) {
    T decay = exp(T(-2) * abs(z.real()));
    return {copysign(T(1), z.real()), T(4) * sin(z.imag()) * cos(z.imag()) * decay};
  }
  T t = tan(z.imag()), s = sinh(z.real()), beta = T(1) + t * t;
  T rho = sqrt(T(1) + s * s), divisor = T(1) + beta * s * s;
  return {beta * rho * s / divisor, t / divisor};
}
template <class T>
inline Complex<T> tan(Complex<T> z) {
  Complex<T> w = tanh(times_i(z));
  return {w.imag(), -w.real()};
}
template <class T>
inline Complex<T> asin(Complex<T> z) {
  Complex<T> minus = sqrt(Complex<T>(1) - z), plus = sqrt(Complex<T>(1) + z);
  return {atan2(z.real(), (minus * plus).real()), asinh((conj(minus) * plus).imag())};
}
template <class T>
inline Complex<T> acos(Complex<T> z) {
  Complex<T> minus = sqrt(Complex<T>(1) - z), plus = sqrt(Complex<T>(1) + z);
  return {T(2) * atan2(minus.real(), plus.real()), asinh((conj(plus) * minus).imag())};
}
template <class T>
inline Complex<T> atanh(Complex<T> z) {
  T x = z.real(), y = z.imag();
  T real = T(0.25) * log1p(T(4) * x / ((T(1) - x) * (T(1) - x) + y * y));
  return {real, T(0.5) * atan2(T(2) * y, (T(1) - x) * (T(1) + x) - y * y)};
}
template <class T>
inline Complex<T> asinh(Complex<T> z) {
  Complex<T> w = asin(times_i(z));
  return {w.imag(), -w.real()};
}
template <class T>
inline Complex<T> acosh(Complex<T> z) {
  Complex<T> minus = sqrt(z - Complex<T>(1)), plus = sqrt(z + Complex<T>(1));
  return {asinh((conj(minus) * plus).real()), T(2) * atan2(minus.imag(), plus.real())};
}
template <class T>
inline Complex<T> atan(Complex<T> z) {
  Complex<T> w = atanh(times_i(z));
  return {w.imag(), -w.real()};
}

}  // namespace rushlight::on_cuda
