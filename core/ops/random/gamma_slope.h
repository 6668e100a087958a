// Owns the derivative of gamma numbers in their shape: a text for host loops and device alike, in
// the vocabulary of formulas.
#pragma once

namespace rushlight::RUSHLIGHT_ISA_NAMESPACE {

// The derivative of log x in alpha, where x keeps its place in the distribution: with its density f
// and F(x) the part below, -(dF/dalpha) / (x f(x)).
// Figurnov, Mohamed and Mnih, "Implicit reparameterization gradients", 2018, equation 5.
//
// As df/dalpha = f (log t - digamma(alpha)) and t = x exp(-s), what is wanted is the integral over
// s > 0 of exp(-alpha s + x (1 - exp(-s))) (s + c), with c = digamma(alpha) - log x; from the other
// side, because the whole integral is zero, that of exp(alpha s - x (exp(s) - 1)) (s - c). For
// small x it is a series in x; else the side is taken where the first factor falls from 1, and a
// Gauss rule covers where it is more than exp(-38). The parts below are what loops over many
// numbers share with log_gamma_slope, which is of one.

inline constexpr double kSeriesBelow = 1.5;  // of x
inline constexpr int kSeriesTerms = 25;

// Term n of the series, whose sum is times exp(x); `power` is (-x)^n / n!.
inline double slope_series_term(double alpha, double c, double power, int n) {
  double at = alpha + n;
  return power * (1 + c * at) / (at * at);
}

// How the integrand falls: the exponent is -fall s - x psi(side s), where psi(t) = exp(t) - 1 - t
// is about t^2 / 2; and the s at which it is -38.
struct SlopeFall {
  double side, fall, end;
};
inline SlopeFall slope_fall(double alpha, double x) {
  constexpr double kDepth = 38;
  double side = x <= alpha ? -1.0 : 1.0, fall = abs(x - alpha);
  double end = 2 * kDepth / (fall + sqrt(fall * fall + 2 * kDepth * x));
  for (int i = 0; i < 3; ++i) {  // Newton's method
    double t = side * end, growth = exp(t) - 1;
    end += (kDepth - fall * end - x * (growth - t)) / (fall + side * x * growth);
  }
  return {side, fall, end};
}

// Where x may be large, all digits of psi count, and t is small: then they come from its series.
inline constexpr double kNearBelow = 0.5;  // of end
template <bool near>
inline double slope_integrand(double x, double c, double side, double fall, double s) {
  double t = side * s, psi;
  if constexpr (near)
    psi = t * t *
          polynomial(t, 1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880, 1.0 / 40320,
                     1.0 / 5040, 1.0 / 720, 1.0 / 120, 1.0 / 24, 1.0 / 6, 0.5);
  else psi = exp(t) - 1 - t;
  return exp(-fall * s - x * psi) * (s - side * c);
}

// The Gauss rule on (-1, 1): each node stands for its negative too.
inline constexpr int kSlopeNodes = 12;
inline double slope_node(int i) {
  constexpr double kNodes[kSlopeNodes] = {
      0.06405689286260563, 0.1911188674736163, 0.3150426796961634, 0.4337935076260451,
      0.5454214713888396,  0.6480936519369755, 0.7401241915785544, 0.820001985973903,
      0.8864155270044011,  0.9382745520027328, 0.9747285559713095, 0.9951872199970213};
  return kNodes[i];
}
inline double slope_weight(int i) {
  constexpr double kWeights[kSlopeNodes] = {
      0.12793819534675202, 0.12583745634682825, 0.1216704729278033,  0.11550566805372552,
      0.10744427011596556, 0.09761865210411393, 0.0861901615319532,  0.07334648141108016,
      0.05929858491543636, 0.04427743881741941, 0.02853138862893356, 0.01234122979998869};
  return kWeights[i];
}
template <bool near>
inline double slope_pair(double x, double c, double side, double fall, double end, double node) {
  double low = 0.5 * end * (1 - node), high = 0.5 * end * (1 + node);
  return slope_integrand<near>(x, c, side, fall, low) +
         slope_integrand<near>(x, c, side, fall, high);
}

inline double log_gamma_slope(double alpha, double log_x) {
  double x = exp(log_x), c = digamma(alpha) - log_x, sum = 0;
  if (x < kSeriesBelow) {
    double power = 1;
    for (int n = 0; n < kSeriesTerms; ++n) {
      sum += slope_series_term(alpha, c, power, n);
      power *= -x / (n + 1);
    }
    return exp(x) * sum;
  }
  SlopeFall by = slope_fall(alpha, x);
  for (int i = 0; i < kSlopeNodes; ++i) {
    double pair = by.end < kNearBelow
                      ? slope_pair<true>(x, c, by.side, by.fall, by.end, slope_node(i))
                      : slope_pair<false>(x, c, by.side, by.fall, by.end, slope_node(i));
    sum += slope_weight(i) * pair;
  }
  return 0.5 * by.end * sum;
}

}  // namespace rushlight::RUSHLIGHT_ISA_NAMESPACE
