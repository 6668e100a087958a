// Owns the shape of the optimizers' loops that are compiled once per instruction set.
#pragma once

#include "core/ops/foreach_args.h"
#include "core/tensor/loops.h"

namespace rushlight {

// Each updates n elements in place. Arrays: parameter, gradient, then the state of the method; all
// but the gradient are written.
using SgdLoop = void (*)(const SgdStep& step, void* const* arrays, int64_t n);
using AdamLoop = void (*)(const AdamStep& step, void* const* arrays, int64_t n);

struct StepLoops {
  SgdLoop sgd[2];  // float, double
  AdamLoop adam[2];
};

}  // namespace rushlight
