// Owns the loops that draw by rejection, compiled once per instruction set.
#include "core/ops/rejection.h"
#include "core/tensor/formula.h"
// In the vocabulary and the namespace of formula.h.
#include "core/ops/gamma_slope.h"
#include "core/ops/rejection_draws.h"

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

void slope(Generator::Draw, int64_t n, const double* a, const double* b, double* out) {
  for (int64_t i = 0; i < n; ++i) out[i] = log_gamma_slope(a[i], b[i]);
}

}  // namespace

extern const RejectionLoops rejection_loops;
constexpr RejectionLoops rejection_loops = {{poisson, binomial, gamma<false>, gamma<true>, slope}};

}  // namespace rushlight::RUSHLIGHT_ISA_NAMESPACE
