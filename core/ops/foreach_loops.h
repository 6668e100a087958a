// Owns the shape of the optimizers' loops that are compiled once per instruction set.
#pragma once

#include "core/tensor/loops.h"

namespace rushlight {

struct SgdStep {
  double lr, momentum, dampening, weight_decay;
  bool nesterov, maximize;
  bool first;  // the buffers hold nothing yet
};

struct AdamStep {
  double lr, beta1, beta2, eps, weight_decay;
  double correction1, correction2;  // 1 - beta1^t and 1 - beta2^t
  bool decoupled;                   // weight decay shrinks the parameter, not the gradient
  bool amsgrad, maximize;
};

// Each updates n elements in place. Arrays: parameter, gradient, then the state of the method; all
// but the gradient are written.
inline constexpr int kMaxStepArrays = 5;
using SgdLoop = void (*)(const SgdStep& step, void* const* arrays, int64_t n);
using AdamLoop = void (*)(const AdamStep& step, void* const* arrays, int64_t n);

struct StepLoops {
  SgdLoop sgd[2];  // float, double
  AdamLoop adam[2];
};

}  // namespace rushlight
