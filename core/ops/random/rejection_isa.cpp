// Owns the loops that draw by rejection, compiled once per instruction set.
#include <algorithm>

#include "core/ops/random/rejection.h"
#include "core/tensor/formula.h"
// In the vocabulary and the namespace of formula.h.
#include "core/ops/random/gamma_slope.h"
#include "core/ops/random/rejection_draws.h"

namespace rushlight::RUSHLIGHT_ISA_NAMESPACE {
namespace {

template <class Number>
[[gnu::always_inline]] inline void each(Generator::Draw draw, int64_t n, double* out,
                                        Number number) {
  for (int64_t i = 0; i < n; ++i) {
    Attempts attempts(draw.seed, draw.offset + uint64_t(i));
    out[i] = number(attempts, i);
  }
}

void poisson(Generator::Draw draw, int64_t n, const double* a, const double*, double* out) {
  each(draw, n, out, [=](Attempts& attempts, int64_t i) { return poisson_number(attempts, a[i]); });
}

void binomial(Generator::Draw draw, int64_t n, const double* a, const double* b, double* out) {
  each(draw, n, out,
       [=](Attempts& attempts, int64_t i) { return binomial_number(attempts, a[i], b[i]); });
}

template <bool as_logarithm>
void gamma(Generator::Draw draw, int64_t n, const double* a, const double*, double* out) {
  each(draw, n, out,
       [=](Attempts& attempts, int64_t i) { return gamma_number<as_logarithm>(attempts, a[i]); });
}

// Some numbers of one kind, side by side: the terms of their sums are computed for all at once.
struct Slopes {
  static constexpr int kMost = 256;
  int count = 0;
  int at[kMost];
  double alpha[kMost], x[kMost], c[kMost], side[kMost], fall[kMost], end[kMost], sum[kMost];

  void add(int i, double alpha_, double x_, double c_) {
    at[count] = i;
    alpha[count] = alpha_;
    x[count] = x_;
    c[count] = c_;
    sum[count++] = 0;
  }
  void add(int i, double alpha_, double x_, double c_, const SlopeFall& by) {
    side[count] = by.side;
    fall[count] = by.fall;
    end[count] = by.end;
    add(i, alpha_, x_, c_);
  }
};

void sum_series(Slopes& of, double* out) {
  double power[Slopes::kMost];
  std::fill(power, power + of.count, 1.0);
  for (int n = 0; n < kSeriesTerms; ++n) {
#pragma omp simd
    for (int i = 0; i < of.count; ++i) {
      of.sum[i] += slope_series_term(of.alpha[i], of.c[i], power[i], n);
      power[i] *= of.x[i] * (-1.0 / (n + 1));
    }
  }
  for (int i = 0; i < of.count; ++i) out[of.at[i]] = exp(of.x[i]) * of.sum[i];
}

template <bool near>
void sum_rule(Slopes& of, double* out) {
  for (int k = 0; k < kSlopeNodes; ++k) {
    double node = slope_node(k), weight = slope_weight(k);
#pragma omp simd
    for (int i = 0; i < of.count; ++i)
      of.sum[i] +=
          weight * slope_pair<near>(of.x[i], of.c[i], of.side[i], of.fall[i], of.end[i], node);
  }
  for (int i = 0; i < of.count; ++i) out[of.at[i]] = 0.5 * of.end[i] * of.sum[i];
}

// log_gamma_slope of each.
void slope(Generator::Draw, int64_t n, const double* a, const double* b, double* out) {
  for (int64_t begin = 0; begin < n; begin += Slopes::kMost) {
    int count = int(std::min<int64_t>(Slopes::kMost, n - begin));
    const double *alpha = a + begin, *log_x = b + begin;
    double x[Slopes::kMost], c[Slopes::kMost];
    SlopeFall by[Slopes::kMost];
#pragma omp simd
    for (int i = 0; i < count; ++i) {
      x[i] = exp(log_x[i]);
      c[i] = digamma(alpha[i]) - log_x[i];
      by[i] = slope_fall(alpha[i], x[i]);
    }
    Slopes small, near, far;
    for (int i = 0; i < count; ++i) {
      if (x[i] < kSeriesBelow) small.add(i, alpha[i], x[i], c[i]);
      else (by[i].end < kNearBelow ? near : far).add(i, alpha[i], x[i], c[i], by[i]);
    }
    sum_series(small, out + begin);
    sum_rule<true>(near, out + begin);
    sum_rule<false>(far, out + begin);
  }
}

}  // namespace

extern const RejectionLoops rejection_loops;
constexpr RejectionLoops rejection_loops = {{poisson, binomial, gamma<false>, gamma<true>, slope}};

}  // namespace rushlight::RUSHLIGHT_ISA_NAMESPACE
