// Owns the arithmetic of the FFT kernels: complex numbers in the lanes of vectors, and the discrete
// Fourier transforms of a few of them that passes are made of.
//
// The same text serves the CPU, where tensor/vectors.h comes before it, and CUDA, where fft.cu says
// that a vector is one number.
#pragma once

namespace rushlight::RUSHLIGHT_ISA_NAMESPACE {

// As many complex numbers as a vector has lanes.
template <class T>
struct Lanes {
  Vector<T> re, im;
};

template <class T>
[[gnu::always_inline]] inline Lanes<T> operator+(Lanes<T> a, Lanes<T> b) {
  return {a.re + b.re, a.im + b.im};
}
template <class T>
[[gnu::always_inline]] inline Lanes<T> operator-(Lanes<T> a, Lanes<T> b) {
  return {a.re - b.re, a.im - b.im};
}
template <class T>
[[gnu::always_inline]] inline Lanes<T> operator*(Lanes<T> a, Lanes<T> b) {
  return {multiply_add(-a.im, b.im, a.re * b.re), multiply_add(a.im, b.re, a.re * b.im)};
}
template <class T>
[[gnu::always_inline]] inline Lanes<T> operator*(Lanes<T> a, T factor) {
  return {a.re * factor, a.im * factor};
}
// -i times.
template <class T>
[[gnu::always_inline]] inline Lanes<T> quarter_turn(Lanes<T> a) {
  return {a.im, -a.re};
}
template <class T>
[[gnu::always_inline]] inline Lanes<T> conj(Lanes<T> a) {
  return {a.re, -a.im};
}
// The same number in all lanes.
template <class T>
[[gnu::always_inline]] inline Lanes<T> all_lanes(T re, T im) {
  return {broadcast(re), broadcast(im)};
}

// ---- transforms of r numbers, in place ----------------------------------------------------------

// For odd r, from sums and differences of x[j] and x[r - j]; `turns` has cos(2 pi k / r) for all k,
// then the sines.
template <int kRoom, class T>
[[gnu::always_inline]] inline void odd_dft(int r, Lanes<T>* x, const T* turns) {
  Lanes<T> sum[kRoom / 2 + 1], difference[kRoom / 2 + 1];
  int half = r / 2;
  Lanes<T> first = x[0], total = x[0];
#pragma GCC unroll 3
  for (int j = 1; j <= half; ++j) {
    sum[j] = x[j] + x[r - j];
    difference[j] = x[j] - x[r - j];
    total = total + sum[j];
  }
  x[0] = total;
#pragma GCC unroll 3
  for (int k = 1; k <= half; ++k) {
    Lanes<T> even = first, odd = all_lanes<T>(0, 0);
    int at = 0;
#pragma GCC unroll 3
    for (int j = 1; j <= half; ++j) {
      at = at + k < r ? at + k : at + k - r;
      Vector<T> c = broadcast(turns[at]), s = broadcast(turns[r + at]);
      even = {multiply_add(sum[j].re, c, even.re), multiply_add(sum[j].im, c, even.im)};
      odd = {multiply_add(difference[j].re, s, odd.re), multiply_add(difference[j].im, s, odd.im)};
    }
    x[k] = even + quarter_turn(odd);
    x[r - k] = even - quarter_turn(odd);
  }
}

template <int R>
struct Dft {
  template <class T>
  static constexpr T kTurns3[] = {T(1),
                                  T(-0.5),
                                  T(-0.5),
                                  T(0),
                                  T(0.866025403784438646763723170752936183),
                                  T(-0.866025403784438646763723170752936183)};
  template <class T>
  static constexpr T kTurns5[] = {T(1),
                                  T(0.309016994374947424102293417182819059),
                                  T(-0.809016994374947424102293417182819059),
                                  T(-0.809016994374947424102293417182819059),
                                  T(0.309016994374947424102293417182819059),
                                  T(0),
                                  T(0.951056516295153572116439333379382143),
                                  T(0.587785252292473129168705954639072769),
                                  T(-0.587785252292473129168705954639072769),
                                  T(-0.951056516295153572116439333379382143)};
  template <class T>
  static constexpr T kTurns7[] = {T(1),
                                  T(0.623489801858733530525004884004239810),
                                  T(-0.222520933956314404288902564496794759),
                                  T(-0.900968867902419126236102319507445051),
                                  T(-0.900968867902419126236102319507445051),
                                  T(-0.222520933956314404288902564496794759),
                                  T(0.623489801858733530525004884004239810),
                                  T(0),
                                  T(0.781831482468029808708444526674057750),
                                  T(0.974927912181823607018131682993931217),
                                  T(0.433883739117558120475768332848358754),
                                  T(-0.433883739117558120475768332848358754),
                                  T(-0.974927912181823607018131682993931217),
                                  T(-0.781831482468029808708444526674057750)};
  template <class T>
  [[gnu::always_inline]] static void run(Lanes<T>* x) {
    odd_dft<R>(R, x, R == 3 ? kTurns3<T> : R == 5 ? kTurns5<T> : kTurns7<T>);
  }
};

template <>
struct Dft<2> {
  template <class T>
  [[gnu::always_inline]] static void run(Lanes<T>* x) {
    Lanes<T> a = x[0], b = x[1];
    x[0] = a + b;
    x[1] = a - b;
  }
};

template <>
struct Dft<4> {
  template <class T>
  [[gnu::always_inline]] static void run(Lanes<T>* x) {
    Lanes<T> a = x[0] + x[2], b = x[0] - x[2], c = x[1] + x[3], d = quarter_turn(x[1] - x[3]);
    x[0] = a + c;
    x[1] = b + d;
    x[2] = a - c;
    x[3] = b - d;
  }
};

template <>
struct Dft<8> {
  template <class T>
  [[gnu::always_inline]] static void run(Lanes<T>* x) {
    constexpr T kHalf = T(0.707106781186547524400844362104849039);  // sqrt(1 / 2)
    Lanes<T> even[4] = {x[0], x[2], x[4], x[6]}, odd[4] = {x[1], x[3], x[5], x[7]};
    Dft<4>::run(even);
    Dft<4>::run(odd);
    odd[1] = Lanes<T>{odd[1].re + odd[1].im, odd[1].im - odd[1].re} * kHalf;
    odd[2] = quarter_turn(odd[2]);
    odd[3] = Lanes<T>{odd[3].im - odd[3].re, -odd[3].re - odd[3].im} * kHalf;
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) {
      x[k] = even[k] + odd[k];
      x[k + 4] = even[k] - odd[k];
    }
  }
};

}  // namespace rushlight::RUSHLIGHT_ISA_NAMESPACE
