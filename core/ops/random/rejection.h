// Owns the shape of the loops that draw by rejection and of their kin, the slopes of gamma numbers.
//
// All compute in float64, whatever the tensors hold: a number takes many operations anyway.
#pragma once

#include "core/tensor/generator.h"

namespace rushlight {

enum class Rejection : uint8_t { poisson, binomial, gamma, log_gamma, log_gamma_slope };

// out[i] from a[i], which is the rate, count or alpha, and b[i], which is the probability, or the
// logarithm of the gamma number whose slope is asked for. Element i has counter draw.offset + i.
using RejectionLoop = void (*)(Generator::Draw draw, int64_t n, const double* a, const double* b,
                               double* out);
struct RejectionLoops {
  RejectionLoop of[5];
};

// Contiguous float64 tensors of equal sizes, b undefined where none is needed.
void reject_cpu(const Tensor& out, Rejection what, const Tensor& a, const Tensor& b,
                Generator::Draw draw);
void reject_cuda(const Tensor& out, Rejection what, const Tensor& a, const Tensor& b,
                 Generator::Draw draw);

}  // namespace rushlight
