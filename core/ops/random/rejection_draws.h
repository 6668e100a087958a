// Owns the draws that try until a test accepts: how many random words a number takes depends on
// what they are. See Note [Random numbers].
//
// Each attempt has a counter of its own, so that a number is a function of seed, offset and element
// alone. Plain C++ without library calls, as normal.h. All loops end: what is not a number comes
// back as NaN, and the tests accept about every other attempt whatever the parameters.
#pragma once

#include "core/device/normal.h"

namespace rushlight::RUSHLIGHT_ISA_NAMESPACE {

// The attempts of one element.
class Attempts {
 public:
  Attempts(uint64_t seed, uint64_t counter) : seed_(seed), counter_(counter) {}

  Philox4 next() { return words(number_++, 0); }
  // Words apart from those of the attempts.
  Philox4 aside() const { return words(0, 1); }

 private:
  Philox4 words(uint32_t z, uint32_t w) const {
    return philox4x32({uint32_t(counter_), uint32_t(counter_ >> 32), z, w},
                      {uint32_t(seed_), uint32_t(seed_ >> 32)});
  }

  uint64_t seed_, counter_;
  uint32_t number_ = 0;
};

namespace detail {

inline uint64_t low_half(Philox4 w) { return uint64_t(w.y) << 32 | w.x; }
inline uint64_t high_half(Philox4 w) { return uint64_t(w.w) << 32 | w.z; }

constexpr double kInfinite = __builtin_bit_cast(double, uint64_t(0x7ff0000000000000));
constexpr double kNotANumber = __builtin_bit_cast(double, uint64_t(0x7ff8000000000000));
constexpr double kTwoPi = 6.283185307179586;

// log(k!) - log(sqrt(2 pi k) (k / e)^k) for whole k > 0: Stirling's series, and its sums where it
// converges too slowly.
inline double factorial_rest(double k) {
  constexpr double kRests[] = {0.08106146679532726,  0.0413406959554093,  0.02767792568499834,
                               0.02079067210376509,  0.01664469118982119, 0.01387612882307075,
                               0.011896709945891769, 0.01041126526197210, 0.009255462182712733};
  if (k < 10) return kRests[int(k) - 1];
  double y = 1 / (k * k);
  return (1.0 / 12 - y * (1.0 / 360 - y * (1.0 / 1260 - y * (1.0 / 1680)))) / k;
}

// k log(k / mean) + mean - k, which is how much less likely than the mean k is. Near the mean,
// where all digits would cancel, by the series of the logarithm in v = (k - mean) / (k + mean).
// Loader, "Fast and accurate computation of binomial probabilities", 2000.
inline double deviance(double k, double mean) {
  double apart = k - mean, v = apart / (k + mean);
  if (v > 0.1 || v < -0.1) return k * log_of(k / mean) - apart;
  double z = v * v;
  constexpr double kSeries[] = {1.0 / 3,  1.0 / 5,  1.0 / 7,  1.0 / 9,
                                1.0 / 11, 1.0 / 13, 1.0 / 15, 1.0 / 17};
  return apart * v + 2 * k * v * z * rushlight::detail::polynomial(kSeries, z);
}

inline double log_poisson_chance(double k, double rate) {
  if (k == 0) return -rate;
  return -factorial_rest(k) - deviance(k, rate) - 0.5 * log_of(kTwoPi * k);
}

// log(1 - p) for p <= 1/2.
inline double log_of_rest(double p) { return p < 0.25 ? log_near_one(-p) : log_of(1 - p); }

inline double log_binomial_chance(double k, double n, double p) {
  if (k == 0) return n * log_of_rest(p);
  if (k == n) return n * log_of(p);
  return factorial_rest(n) - factorial_rest(k) - factorial_rest(n - k) - deviance(k, n * p) -
         deviance(n - k, n * (1 - p)) + 0.5 * log_of(n / (n - k) / (kTwoPi * k));
}

// The k at which the chances of 0, 1, ... sum up to a uniform number, where that of k is ratio(k)
// times the one before. What is left when chances vanish is a rounding error.
// Devroye, "Non-Uniform Random Variate Generation", 1986, section III.2: sequential search.
template <class Ratio>
inline double searched(Attempts& attempts, double chance, Ratio ratio) {
  Philox4 w = attempts.next();
  double left = uniform_double(w.x, w.y), k = 0;
  while (left >= chance) {
    left -= chance;
    double next = chance * ratio(k + 1);
    if (!(next > 0x1p-60)) break;
    chance = next;
    k += 1;
  }
  return k;
}

// What both transformed rejections propose: floor((2 a / us + b) u + center), with u in (-1/2, 1/2)
// and us = 1/2 - |u|. A second uniform number, `height`, decides.
struct Proposal {
  double k, us, height;
  Proposal(Attempts& attempts, double a, double b, double center) {
    Philox4 w = attempts.next();
    double u = positive_unit(low_half(w)) - 0.5;
    us = 0.5 - (u < 0 ? -u : u);
    height = positive_unit(high_half(w));
    k = __builtin_floor((2 * a / us + b) * u + center);
  }
  // The logarithm of the height under the hat, but for its factor.
  double log_height(double a, double b, double factor) const {
    return log_of(height * factor / (a / (us * us) + b));
  }
};

// For 0 < p <= 1/2 and whole n > 0.
// Hoermann, "The generation of binomial random variates", 1993: BTRS, with the chances of Loader.
inline double binomial_below_half(Attempts& attempts, double n, double p) {
  double q = 1 - p, mean = n * p;
  if (mean < 10) {
    double odds = p / q;
    return searched(attempts, exp_of(n * log_of_rest(p)),
                    [=](double k) { return (n - k + 1) / k * odds; });
  }
  double spread = __builtin_sqrt(mean * q);
  double b = 1.15 + 2.53 * spread, a = -0.0873 + 0.0248 * b + 0.01 * p;
  double factor = (2.83 + 5.1 / b) * spread, safe = 0.92 - 4.2 / b;
  double log_at_mode = kNotANumber;  // until it is needed, which is seldom
  for (;;) {
    Proposal proposal(attempts, a, b, mean + 0.5);
    double k = proposal.k;
    if (proposal.us >= 0.07 && proposal.height <= safe) return k;
    if (k < 0 || k > n) continue;
    if (log_at_mode != log_at_mode)
      log_at_mode = log_binomial_chance(__builtin_floor((n + 1) * p), n, p);
    if (proposal.log_height(a, b, factor) <= log_binomial_chance(k, n, p) - log_at_mode) return k;
  }
}

}  // namespace detail

// NaN for a rate that is negative or NaN.
// Hoermann, "The transformed rejection method for generating Poisson random variables", 1993: PTRS,
// with the chances of Loader.
inline double poisson_number(Attempts& attempts, double rate) {
  if (!(rate >= 0)) return detail::kNotANumber;
  if (rate == detail::kInfinite) return rate;
  if (rate < 10)
    return detail::searched(attempts, exp_of(-rate), [=](double k) { return rate / k; });
  double b = 0.931 + 2.53 * __builtin_sqrt(rate), a = -0.059 + 0.02483 * b;
  double factor = 1.1239 + 1.1328 / (b - 3.4), safe = 0.9277 - 3.6224 / (b - 2);
  for (;;) {
    detail::Proposal proposal(attempts, a, b, rate + 0.43);
    double k = proposal.k;
    if (proposal.us >= 0.07 && proposal.height <= safe) return k;
    if (k < 0 || (proposal.us < 0.013 && proposal.height > proposal.us)) continue;
    if (proposal.log_height(a, b, factor) <= detail::log_poisson_chance(k, rate)) return k;
  }
}

// How many of `count` tries succeed. Chances out of [0, 1] count as its ends, a negative count as
// none; NaN gives NaN.
inline double binomial_number(Attempts& attempts, double count, double p) {
  if (count != count || p != p) return detail::kNotANumber;
  if (count <= 0 || p <= 0) return 0;
  if (p >= 1 || count == detail::kInfinite) return count;
  double n = __builtin_floor(count);
  if (n == 0) return 0;
  return p <= 0.5 ? detail::binomial_below_half(attempts, n, p)
                  : n - detail::binomial_below_half(attempts, n, 1 - p);
}

// Of density x^(alpha - 1) exp(-x) / Gamma(alpha), or the logarithm of such a number, which does
// not underflow. NaN for an alpha that is negative or NaN.
// Marsaglia and Tsang, "A simple method for generating gamma variables", 2000; for alpha < 1 a
// number of alpha + 1 times u^(1 / alpha).
template <bool as_logarithm>
inline double gamma_number(Attempts& attempts, double alpha) {
  if (!(alpha >= 0)) return detail::kNotANumber;
  if (alpha == 0) return as_logarithm ? -detail::kInfinite : 0;
  double d = (alpha < 1 ? alpha + 1 : alpha) - 1.0 / 3, c = 1 / __builtin_sqrt(9 * d);
  double log_factor = 0;
  if (alpha < 1) log_factor = log_of(positive_unit(detail::low_half(attempts.aside()))) / alpha;
  for (;;) {
    Philox4 w = attempts.next();
    double x = normal_pair(detail::low_half(w), uint64_t(w.z) << 32).first, t = c * x;
    double v = (1 + t) * (1 + t) * (1 + t);
    if (v <= 0) continue;
    double u = (double(int64_t(w.w)) + 0.5) * 0x1p-32, z = x * x;
    bool accepted = u < 1 - 0.0331 * z * z;
    if (accepted && !as_logarithm) return d * v * exp_of(log_factor);
    double log_v = t < 0.25 && t > -0.25 ? 3 * log_near_one(t) : log_of(v);
    // v - 1 written out, because d times the small difference counts.
    if (accepted || log_of(u) < 0.5 * z + d * (log_v - t * (3 + t * (3 + t))))
      return as_logarithm ? log_of(d) + log_v + log_factor : d * v * exp_of(log_factor);
  }
}

}  // namespace rushlight::RUSHLIGHT_ISA_NAMESPACE
