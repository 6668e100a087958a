// Owns the formulas' functions around the normal distribution: erfcx, log_ndtr, ndtri,
// erfinv, and entropy.
//
// Plain C++ like formula_math.h, which it follows. See formula_bessel.h on the polynomials.
#pragma once

namespace rushlight::RUSHLIGHT_ISA_NAMESPACE {

namespace detail {

// exp(x^2): the square in two parts, because the rounding of x * x alone would cost many digits.
inline double exp_square(double x) {
  double high = __builtin_bit_cast(double, __builtin_bit_cast(uint64_t, x) & 0xfffffffff8000000);
  return exp(high * high) * exp((x - high) * (x + high));
}

// exp(x^2) erfc(x) for x >= 0: (1 + 2 x) times it is a polynomial in (x - 3.75) / (x + 3.75)
// (Shepherd and Laframboise 1981).
inline double erfcx_positive(double x) {
  double t = x > 1e16 ? 1 : (x - 3.75) / (x + 3.75);
  return polynomial(t, 4.2514714447963895e-10, 3.1114333809799254e-10, -5.1739902140113095e-09,
                    -3.744210080962018e-09, 3.8675334242222354e-08, 2.3263508708859124e-08,
                    -2.5866850716155884e-07, -5.7218230603224086e-08, 1.751637648849062e-06,
                    -9.73559896736775e-07, -1.1444146237700524e-05, 2.238423915508223e-05,
                    5.164909889268241e-05, -0.0002901540805408417, 0.0002937136655913448,
                    0.0017556258528952954, -0.009746579558029276, 0.028362277418956406,
                    -0.05869339858963677, 0.09230432116037748, -0.10880393014174886,
                    0.0822767384901452, 0.0035854154854644293, -0.14024059858554697,
                    1.2375126308378275) /
         (1 + 2 * x);
}

}  // namespace detail

inline double erfcx(double x) {
  double z = abs(x), positive = detail::erfcx_positive(z);
  double negative = 2 * detail::exp_square(z) - positive;
  negative = z > 27 ? kInfinity : negative;
  return x < 0 ? negative : positive;
}

// normal_cdf with all digits in float, too.
inline double ndtr(double x) { return erfc(x * -0.7071067811865476) * 0.5; }

// The logarithm of ndtr.
inline double log_ndtr(double x) {
  double z = x * 0.7071067811865476;
  double left = log(detail::erfcx_positive(abs(z)) * 0.5) - x * x * 0.5;
  double right = log1p(erfc(z) * -0.5);
  return x < -1 ? left : right;
}

namespace detail {

// The inverse of ndtr at 1/2 + q for |q| <= 0.3: q times a polynomial in its square.
inline double ndtri_center(double q) {
  return q * polynomial(q * q / 0.045 - 1, 1.4910055526710938e-12, 7.19168751990811e-12,
                        2.8888944105440882e-11, 1.428577031133014e-10, 7.20424147828072e-10,
                        3.6017267703036125e-09, 1.8156336241412333e-08, 9.254562421624981e-08,
                        4.778320395067718e-07, 2.5073358659160146e-06, 1.343501554935243e-05,
                        7.404250220952965e-05, 0.0004246321334565066, 0.0025874528846428968,
                        0.017484795058402523, 0.14672381961923803, 2.638092834323769);
}
// The same at p <= 0.2: H / r - r with r = sqrt(-2 log p) and a polynomial H in log r.
inline double ndtri_tail(double p) {
  double r = sqrt(-2 * log(p));
  double h =
      polynomial((log(r) - 2.120177843989632) * 0.651185064720709, 5.081125987901786e-09,
                 -5.5143569658184745e-09, -4.3715034296682656e-08, 6.227991310686933e-08,
                 1.5800232893433342e-07, -3.3286375210777534e-07, -2.2402679194747404e-07,
                 1.066376860251385e-06, -4.906110537246575e-07, -1.9215200136171264e-06,
                 3.4809254113756027e-06, -9.905543258316641e-08, -8.363261492628977e-06,
                 1.2526463281331795e-05, 2.5819601653646975e-06, -3.6810691433432565e-05,
                 5.1516094482652794e-05, 1.5860329349446323e-05, -0.00016493260436927515,
                 0.0002252183474398725, 5.956800320492565e-05, -0.0005600747049437068,
                 0.0004778329482066883, -0.00018510556025599483, 0.005627203113681403,
                 -0.027150286966712078, 0.06093281358650328, 1.462921585606207, 3.07716474462557);
  return h / r - r;
}

}  // namespace detail

// Inlined by force, else the loop is scalar.
__attribute__((always_inline)) inline double ndtri(double p) {
  constexpr double kSmallest = 0x1p-1074;
  double q = p - 0.5, tail = q > 0 ? 1 - p : p;
  double outer = detail::ndtri_tail(tail < kSmallest ? kSmallest : tail);
  outer = tail == 0 ? -kInfinity : outer;
  outer = q > 0 ? -outer : outer;
  double result = abs(q) <= 0.3 ? detail::ndtri_center(q) : outer;
  return (p < 0) | (p > 1) ? kNaN : result;
}

// In the other scale; the distance to 1 keeps its digits. Within 9 ulp.
__attribute__((always_inline)) inline double erfinv(double x) {
  constexpr double kSqrtHalf = 0.7071067811865476;
  double z = abs(x), outer = -detail::ndtri_tail(z < 1 ? (1 - z) * 0.5 : 0.5);
  outer = z == 1 ? kInfinity : outer;
  double result = z <= 0.6 ? detail::ndtri_center(x * 0.5) : copysign(outer, x);
  return z <= 1 ? result * kSqrtHalf : kNaN;
}
// x times a minimax polynomial in w = -log(1 - x^2), from 5 on in its root (after Giles 2012,
// "Approximating the erfinv function"), within 3.3 ulp.
inline float erfinv(float x) {
  float z = abs(x), w = -log((1 - z) * (1 + z));
  float center = polynomial(w * 0.4f - 1, -3.3535219699842855e-05f, 3.5450200812192634e-05f,
                            0.0002845279814209789f, -0.0008453868795186281f,
                            -0.00048470194451510906f, 0.00852908007800579f, -0.01957409270107746f,
                            -0.026108667254447937f, 0.6166006922721863f, 1.5014094114303589f);
  float outer = polynomial((sqrt(w) - 3.143034f) * 1.1025771f, 5.038167000748217e-05f,
                           -7.225585432024673e-05f, -0.00016914334264583886f, 0.000709761749021709f,
                           -0.0014648785581812263f, 0.0024074206594377756f, -0.0037566747050732374f,
                           0.005568788852542639f, 0.9105647206306458f, 2.976423501968384f);
  float result = x * (w < 5 ? center : outer);
  return z == 1 ? copysign(float(kInfinity), x) : result;
}

inline double entr(double x) {
  double inside = x == 0 ? 0 : -x * log(x);
  return x < 0 ? -kInfinity : inside;
}

template <class T>
inline T xlog1py(T x, T y) {
  return (x == T(0)) & !isnan(y) ? T(0) : x * log1p(y);
}

inline float erfcx(float x) { return float(erfcx(double(x))); }
inline float ndtr(float x) { return float(ndtr(double(x))); }
inline float log_ndtr(float x) { return float(log_ndtr(double(x))); }
inline float ndtri(float x) { return float(ndtri(double(x))); }
inline float entr(float x) { return float(entr(double(x))); }

}  // namespace rushlight::RUSHLIGHT_ISA_NAMESPACE
