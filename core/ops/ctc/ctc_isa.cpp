// Owns the inner loops of ctc_loss.
#include "core/ops/ctc/ctc_loops.h"
#include "core/tensor/formula.h"

namespace rushlight::RUSHLIGHT_ISA_NAMESPACE {
namespace {

template <class T>
constexpr T kNothing = -T(__builtin_inff());  // the logarithm of the probability 0

template <class T>
T larger(T a, T b) {
  return a > b ? a : b;
}

// log(exp(a) + exp(b) + exp(c))
template <class T>
T log_sum(T a, T b, T c) {
  const T most = larger(larger(a, b), c);
  const T shift = most == kNothing<T> ? T(0) : most;
  return shift +
         log(exp_nonpositive(a - shift) + exp_nonpositive(b - shift) + exp_nonpositive(c - shift));
}

template <class T>
void step(const T* last, const T* skip, const T* emit, T* next, int64_t n) {
  next[0] = emit[0] + last[0];
  if (n > 1) next[1] = emit[1] + log_sum(last[1], last[0], kNothing<T>);
#pragma omp simd
  for (int64_t s = 2; s < n; ++s)
    next[s] = emit[s] + log_sum(last[s], last[s - 1], last[s - 2] + skip[s]);
}

template <class T>
void posterior(const T* ahead, const T* behind, const T* emit, T loss, T* out, int64_t n) {
#pragma omp simd
  for (int64_t s = 0; s < n; ++s) {
    const T both = ahead[s] + behind[n - 1 - s];  // both count the emission
    out[s] = both == kNothing<T> ? T(0) : exp_nonpositive(both - emit[s] + loss);
  }
}

template <class T>
void scaled_exp(const T* x, T scale, T* out, int64_t n) {
#pragma omp simd
  for (int64_t c = 0; c < n; ++c) out[c] = scale * exp(x[c]);
}

template <class T>
constexpr CtcLoopsOf<T> make_loops() {
  return {&step<T>, &posterior<T>, &scaled_exp<T>};
}

}  // namespace

extern const CtcLoops ctc_loops;
constexpr CtcLoops ctc_loops = {make_loops<float>(), make_loops<double>()};

}  // namespace rushlight::RUSHLIGHT_ISA_NAMESPACE
