// Owns the formulas' functions beyond lgamma and digamma: the regularized incomplete gamma
// functions, Hurwitz's zeta and polygamma.
//
// Plain C++ like formula_math.h, which it follows. See formula_bessel.h on the polynomials. These
// loop until they converge, so they are not vectorized, and the long ones not inlined either;
// everything computes in double.
#pragma once

namespace rushlight::RUSHLIGHT_ISA_NAMESPACE {

namespace detail {

inline constexpr double kEpsilon = 0x1p-53, kFloatEpsilon = 0x1p-28;

// log(gamma(1 + a)) for 0 <= a <= 1/2, where lgamma loses digits because 1 + a does.
inline double lgamma1p(double a) {
  return a * polynomial(4 * a - 1, -4.47959694738113e-13, 2.3541246923689135e-12,
                        -1.062731161647417e-11, 5.6977512228137665e-11, -3.099004401245868e-10,
                        1.6768644963703622e-09, -9.135289597299692e-09, 5.021291374072116e-08,
                        -2.789623711684023e-07, 1.5712804665547746e-06, -9.016006916841804e-06,
                        5.3115626701035375e-05, -0.00032575197560731227, 0.0021370436482565265,
                        -0.015967667997598377, 0.16563381231098723, -0.3930873456872526);
}

// log(1 + u) - u for |u| <= 1/2: with s = u / (2 + u), log(1 + u) = 2 atanh(s) and 2 s - u = -s u.
inline double log1p_minus(double u) {
  double s = u / (2 + u), square = s * s;
  return s * square *
             polynomial(9 * square, 4.4861143035745416e-11, 1.9322013509051603e-10,
                        2.519747593829631e-09, 2.4533050862072578e-08, 2.509252043766307e-07,
                        2.6053859011438936e-06, 2.7711964518276035e-05, 0.00030483158021747144,
                        0.0035273368606917794, 0.044444444444443905, 0.6666666666666666) -
         s * u;
}

// What Stirling's formula for lgamma leaves out (Abramowitz and Stegun 6.1.41), for a >= 10.
inline double stirling_rest(double a) {
  double y = 1 / (a * a);
  return polynomial(y, 1.0 / 156, -691.0 / 360360, 1.0 / 1188, -1.0 / 1680, 1.0 / 1260, -1.0 / 360,
                    1.0 / 12) /
         a;
}

// x^a exp(-x) / gamma(a + 1).
__attribute__((noinline)) inline double poisson(double a, double x) {
  if (a < 10) return exp(a * log(x) - x - lgamma(a + 1));
  double u = (x - a) / a;
  double exponent = abs(u) <= 0.5 ? a * log1p_minus(u) : a * log(x / a) - (x - a);
  return exp(exponent - stirling_rest(a)) / sqrt(6.283185307179586 * a);
}

// Temme's uniform expansion for large a and x close to it (DLMF 8.12.3, 8.12.4 and 8.12.7): with
// eta^2 / 2 = u - log(1 + u) and u = x / a - 1, the upper function is half of erfc(eta sqrt(a / 2))
// plus, and the lower one minus, a series in 1 / a, whose coefficients are Taylor series in eta
// (8.12.11).
__attribute__((noinline)) inline double temme(double a, double x, bool upper) {
  double u = (x - a) / a, half_square = -log1p_minus(u), eta = copysign(sqrt(2 * half_square), u);
  double c0 = polynomial(
      eta, 2.4361948020667415e-11, -5.830772132550426e-11, -2.5514193994946248e-11,
      9.14769958223679e-10, -4.382036018453353e-09, 1.0261809784240309e-08, 6.707853543401498e-09,
      -1.7665952736826078e-07, 8.296711340953087e-07, -1.85406221071516e-06, -2.185448510679992e-06,
      3.919263178522438e-05, -0.0001787551440329218, 0.0003527336860670194, 0.0011574074074074073,
      -0.014814814814814815, 0.08333333333333333, -0.3333333333333333);
  double c1 = polynomial(eta, 4.162792991842583e-10, -1.0091543710600413e-09,
                         -1.7543241719747647e-11, 1.1951628599778148e-08, -5.752545603517705e-08,
                         1.378633446915721e-07, 4.647127802807434e-09, -1.6120900894563446e-06,
                         7.64916091608111e-06, -1.8098550334489977e-05, -4.018775720164609e-07,
                         0.00020576131687242798, -0.0009902263374485596, 0.0026455026455026454,
                         -0.003472222222222222, -0.001851851851851852);
  double c2 =
      polynomial(eta, -1.3670488396617114e-09, 6.228974084922022e-09, -1.409252991086752e-08,
                 -2.0477098421990866e-10, 1.4280614206064242e-07, -6.298992138380055e-07,
                 1.3721957309062934e-06, 3.423578734096138e-08, -1.2760635188618728e-05,
                 5.2923448829120125e-05, -0.0001073665322636516, 2.0093878600823047e-06,
                 0.0007716049382716049, -0.0026813271604938273, 0.004133597883597883);
  double c3 = polynomial(eta, -1.9111168485973655e-08, 8.099464905388083e-08,
                         -1.6958404091930278e-07, -2.7861080291528143e-11, 1.4230900732435883e-06,
                         -5.6749528269915965e-06, 1.1082654115347302e-05, -2.396505113867297e-07,
                         -7.561801671883977e-05, 0.00026772063206283885, -0.0004691894943952557,
                         0.00022947209362139917, 0.0006494341563786008);
  double c4 = polynomial(eta, -2.292934834000805e-07, 8.907507532205309e-07,
                         -1.6954149536558305e-06, 2.507497226237533e-10, 1.1375726970678419e-05,
                         -3.968365047179435e-05, 6.641498215465122e-05, -1.4638452578843418e-06,
                         -0.0002990724803031902, 0.0007840392217200666, -0.0008618882909167117);
  double c5 = polynomial(eta, 3.4652846491085265e-07, -3.252473551298454e-10,
                         -2.291481176508095e-06, 8.018470256334202e-06, -1.3594048189768693e-05,
                         1.419062920643967e-07, 6.797780477937208e-05, -0.00019932570516188847,
                         0.0002772753244959392, -6.972813758365857e-05, -0.00033679855336635813);
  double c6 = polynomial(eta, -2.0291327396058603e-06, 3.465155368803609e-06,
                         -3.0796134506033047e-09, -1.8329116582843375e-05, 5.61168275310625e-05,
                         -8.153969367561969e-05, 7.902353232660328e-07, 0.0002708782096718045,
                         -0.0005921664373536939, 0.0005313079364639922);
  double c7 = polynomial(eta, -1.8263488805711332e-05, 2.7744451511563645e-05,
                         -1.2741009095484485e-07, -0.00010976582244684731, 0.0002812695154763237,
                         -0.00033493161081142234, 5.171790908260592e-05, 0.00034436760689237765);
  double c8 =
      polynomial(eta, -0.00012783517679769218, 0.00016644846642067547, -6.969091458420552e-07,
                 -0.000438297098541721, 0.0008394987206720873, -0.0006526239185953094);
  double c9 = polynomial(eta, -0.0006401475260262758, 0.0006782308837667328, -7.204895416020011e-05,
                         -0.0005967612901927463);
  double c10 = polynomial(eta, -0.0019144384985654776, 0.0013324454494800656);
  double series = polynomial(1 / a, c10, c9, c8, c7, c6, c5, c4, c3, c2, c1, c0);
  double rest = series * exp(-a * half_square) / sqrt(6.283185307179586 * a);
  double side = upper ? eta : -eta;
  return erfc(side * sqrt(a * 0.5)) * 0.5 + (upper ? rest : -rest);
}

// The lower function by its series (8.7.1).
inline double lower_by_series(double a, double x, double epsilon) {
  double term = 1, sum = 1;
  for (int n = 1; n < 2000 && term > sum * epsilon; ++n) {
    term *= x / (a + n);
    sum += term;
  }
  return poisson(a, x) * sum;
}
// The upper function for small a and x (8.7.3), without the difference from 1.
inline double upper_by_series(double a, double x, double epsilon) {
  double factor = 1, sum = 0;
  for (int n = 1; n < 100; ++n) {
    factor *= -x / n;
    double term = factor / (a + n);
    sum += term;
    if (abs(term) <= abs(sum) * epsilon) break;
  }
  double exponent = a * log(x) - (a <= 0.5 ? lgamma1p(a) : lgamma(1 + a));
  return -expm1(exponent) - a * exp(exponent) * sum;
}
// The upper function by its continued fraction (8.9.2): numerators p and denominators q of its
// convergents, two after each other, compared without a division.
inline double upper_by_fraction(double a, double x, double epsilon) {
  constexpr double kLarge = 0x1p400;
  double scale = a * poisson(a, x);
  if (scale == 0) return 0;  // so x is not so large that something overflows
  double b = x + 1 - a, p_before = 0, q_before = 1, p = 1, q = b;
  for (double n = 1; n < 2000; n += 2) {
    double first = -n * (n - a), second = -(n + 1) * (n + 1 - a);
    p_before = multiply_add(b + 2, p, first * p_before);
    q_before = multiply_add(b + 2, q, first * q_before);
    b += 4;
    p = multiply_add(b, p_before, second * p);
    q = multiply_add(b, q_before, second * q);
    double cross = p * q_before;
    if (abs(cross - p_before * q) <= 2 * epsilon * abs(cross)) break;
    if (abs(q) > kLarge) {
      p_before /= kLarge;
      q_before /= kLarge;
      p /= kLarge;
      q /= kLarge;
    }
  }
  return scale * (p / q);
}

// The regularized incomplete gamma function: the smaller one of lower and upper is computed, the
// other is its difference from 1. Terms are summed until they are below epsilon.
__attribute__((noinline)) inline double incomplete_gamma(double a, double x, bool upper,
                                                         double epsilon) {
  if (isnan(a) || isnan(x) || a < 0 || x < 0) return kNaN;
  if (a == 0) return x > 0 ? (upper ? 0 : 1) : kNaN;
  if (x == 0) return upper ? 1 : 0;
  if (a == kInfinity) return x == kInfinity ? kNaN : (upper ? 1 : 0);
  if (x == kInfinity) return upper ? 0 : 1;
  if (a >= 20 && abs(x - a) < 0.4 * a) return temme(a, x, upper);
  bool small = x <= 0.5 ? a > -0.4 / log(x) : x <= 1.1 ? a > 1.1 * x : a > x;  // the lower one is
  if (small) {
    double lower = lower_by_series(a, x, epsilon);
    return upper ? 1 - lower : lower;
  }
  double rest = x <= 1.1 ? upper_by_series(a, x, epsilon) : upper_by_fraction(a, x, epsilon);
  if (!upper && x <= 1.1) return lower_by_series(a, x, epsilon);
  return upper ? rest : 1 - rest;
}

// q^s zeta(s, q) for q > 0, s > 1, as exact as T is: terms until the rest can be had by Euler and
// Maclaurin's formula (DLMF 25.11.5), or no longer counts, which is after about 40 at most.
template <class T>
__attribute__((noinline)) inline double zeta_scaled(double s, double q) {
  constexpr bool kSingle = kSame<T, float>;
  constexpr double kUnit = kSingle ? kFloatEpsilon : kEpsilon, kReach = kSingle ? 3 : 7;
  double sum = 0, k = 0, term = 1;
  for (; q + k < s + kReach; term = exp(-s * log1p(k / q))) {
    sum += term;
    if (term <= sum * kUnit) return sum;
    k += 1;
  }
  double at = q + k, inverse = 1 / at, factor = s * inverse, rest = 0;
  constexpr double kBernoulli[] = {
      0.08333333333333333,    -0.001388888888888889,   3.306878306878307e-05,
      -8.267195767195768e-07, 2.08767569878681e-08,    -5.284190138687493e-10,
      1.3382536530684679e-11, -3.3896802963225827e-13, 8.586062056277845e-15,
      -2.174868698558062e-16, 5.5090028283602295e-18,  -1.3954464685812522e-19};  // B(2k) / (2k)!
#pragma GCC unroll 1
  for (int i = 0; i < 12; ++i) {
    double part = factor * kBernoulli[i];
    rest += part;
    if (abs(part) <= kUnit * abs(rest)) break;
    factor *= (s + 2 * i + 1) * inverse * (s + 2 * i + 2) * inverse;
  }
  return sum + term * (at / (s - 1) + 0.5 + rest);
}

}  // namespace detail

inline double igamma(double a, double x) {
  return detail::incomplete_gamma(a, x, false, detail::kEpsilon);
}
inline double igammac(double a, double x) {
  return detail::incomplete_gamma(a, x, true, detail::kEpsilon);
}
inline float igamma(float a, float x) {
  return float(detail::incomplete_gamma(a, x, false, detail::kFloatEpsilon));
}
inline float igammac(float a, float x) {
  return float(detail::incomplete_gamma(a, x, true, detail::kFloatEpsilon));
}

namespace detail {

// Hurwitz's zeta: the sum of (q + k)^-s. Below zero, where s must be an integer, the terms of both
// signs are sums that begin in (0, 1).
template <class T>
__attribute__((noinline)) inline double hurwitz(double s, double q) {
  if (s == 1) return kInfinity;
  if (!(s > 1) || isnan(q)) return kNaN;
  if (q <= 0) {
    if (q == floor(q)) return kInfinity;
    if (s != floor(s)) return kNaN;
    double sign = fmod(s, 2.0) == 0 ? 1 : -1;
    // In this order, nothing is lost where the first two cancel.
    double between = hurwitz<T>(s, q - floor(q)) + sign * hurwitz<T>(s, ceil(q) - q);
    return between - sign * hurwitz<T>(s, 1 - q);
  }
  if (q == kInfinity) return 0;
  return pow(q, -s) * zeta_scaled<T>(s, q);
}

}  // namespace detail

inline double zeta(double s, double q) { return detail::hurwitz<double>(s, q); }
inline float zeta(float s, float q) { return float(detail::hurwitz<float>(s, q)); }

// The nth derivative of digamma (Abramowitz and Stegun 6.4.10).
inline double polygamma(double n, double x) {
  if (n == 0) return digamma(x);
  if (n == 1) return trigamma(x);
  double factorial = exp(lgamma(n + 1));
  if (n <= 170) {
    factorial = 1;
    for (int k = 2; k <= int(n); ++k) factorial *= k;
  }
  double sign = fmod(n, 2.0) == 0 ? -1 : 1;
  if (!(x > 0) || x == kInfinity || n <= 170) return sign * factorial * zeta(n + 1, x);
  return sign * exp(lgamma(n + 1) - (n + 1) * log(x)) * detail::zeta_scaled<double>(n + 1, x);
}

inline float polygamma(float n, float x) { return float(polygamma(double(n), double(x))); }

}  // namespace rushlight::RUSHLIGHT_ISA_NAMESPACE
