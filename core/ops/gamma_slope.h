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
// Gauss rule covers where it is more than exp(-38).
inline double log_gamma_slope(double alpha, double log_x) {
  constexpr double kDepth = 38;
  constexpr int kHalf = 12;
  constexpr double kNodes[kHalf] = {0.06405689286260563, 0.1911188674736163, 0.3150426796961634,
                                    0.4337935076260451,  0.5454214713888396, 0.6480936519369755,
                                    0.7401241915785544,  0.820001985973903,  0.8864155270044011,
                                    0.9382745520027328,  0.9747285559713095, 0.9951872199970213};
  constexpr double kWeights[kHalf] = {
      0.12793819534675202, 0.12583745634682825, 0.1216704729278033,  0.11550566805372552,
      0.10744427011596556, 0.09761865210411393, 0.0861901615319532,  0.07334648141108016,
      0.05929858491543636, 0.04427743881741941, 0.02853138862893356, 0.01234122979998869};
  double x = exp(log_x), c = digamma(alpha) - log_x;
  if (x < 1.5) {
    double sum = 0, power = 1;
    for (int n = 0; n < 25; ++n) {
      double at = alpha + n;
      sum += power * (1 / at + c) / at;
      power *= -x / (n + 1);
    }
    return exp(x) * sum;
  }
  // The exponent is -fall s - x psi(t) with t = -s below and t = s above, where
  // psi(t) = exp(t) - 1 - t is about t^2 / 2. Newton's method finds where it is -kDepth.
  double side = x <= alpha ? -1 : 1, fall = abs(x - alpha);
  double end = 2 * kDepth / (fall + sqrt(fall * fall + 2 * kDepth * x));
  for (int i = 0; i < 3; ++i) {
    double t = side * end, growth = exp(t) - 1;
    end += (kDepth - fall * end - x * (growth - t)) / (fall + side * x * growth);
  }
  auto weighted = [=](double s, double psi) { return exp(-fall * s - x * psi) * (s - side * c); };
  double terms[kHalf], half = 0.5 * end;
  if (end < 0.5) {
    // Here x may be large, and all digits of psi count: they come from its series.
    auto psi_of = [](double t) {
      return t * t *
             polynomial(t, 1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880,
                        1.0 / 40320, 1.0 / 5040, 1.0 / 720, 1.0 / 120, 1.0 / 24, 1.0 / 6, 0.5);
    };
#pragma omp simd
    for (int i = 0; i < kHalf; ++i) {
      double near = half * (1 - kNodes[i]), far = half * (1 + kNodes[i]);
      terms[i] = weighted(near, psi_of(side * near)) + weighted(far, psi_of(side * far));
    }
  } else {
#pragma omp simd
    for (int i = 0; i < kHalf; ++i) {
      double near = half * (1 - kNodes[i]), far = half * (1 + kNodes[i]);
      terms[i] = weighted(near, exp(side * near) - 1 - side * near) +
                 weighted(far, exp(side * far) - 1 - side * far);
    }
  }
  double sum = 0;
  for (int i = 0; i < kHalf; ++i) sum += kWeights[i] * terms[i];
  return half * sum;
}

}  // namespace rushlight::RUSHLIGHT_ISA_NAMESPACE
