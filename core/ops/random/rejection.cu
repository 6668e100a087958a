// Owns the draws by rejection on CUDA: a thread for each number. They are those of
// rejection_isa.cpp, bit for bit; slopes differ by the rounding of exp. See Note [Random numbers].
#include "core/tensor/formula.cuh"

// NVRTC has no such builtins; all round correctly.
#define __builtin_sqrtf sqrtf
#define __builtin_sqrt sqrt
#define __builtin_floor floor
#define __builtin_ceil ceil
#include "core/ops/random/gamma_slope.h"
#include "core/ops/random/rejection_draws.h"

namespace rushlight::on_cuda {

#define RUSHLIGHT_ENTRY(name, number)                                                    \
  extern "C" __global__ void name(PhiloxDraw draw, int64_t numel, const double* a,       \
                                  const double* b, double* out) {                        \
    int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;                          \
    if (i >= numel) return;                                                              \
    PhiloxDraw own = draw.from(uint64_t(i)).settled();                                   \
    Attempts attempts(own.seed, own.offset);                                             \
    out[i] = number;                                                                     \
  }
RUSHLIGHT_ENTRY(poisson, poisson_number(attempts, a[i]))
RUSHLIGHT_ENTRY(binomial, binomial_number(attempts, a[i], b[i]))
RUSHLIGHT_ENTRY(gamma, gamma_number<false>(attempts, a[i]))
RUSHLIGHT_ENTRY(log_gamma, gamma_number<true>(attempts, a[i]))
RUSHLIGHT_ENTRY(log_gamma_slope_of, log_gamma_slope(a[i], b[i]))
#undef RUSHLIGHT_ENTRY

}  // namespace rushlight::on_cuda
