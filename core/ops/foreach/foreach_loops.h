// Owns the shape of the loops over many tensors that are compiled once per instruction set.
#pragma once

#include "core/ops/foreach/foreach_args.h"
#include "core/tensor/loops.h"

namespace rushlight {

// Updates n elements in place; `step` is the struct of the method. Arrays: parameter, gradient,
// then the state of the method; all but the gradient are written.
using StepLoop = void (*)(const void* step, void* const* arrays, int64_t n);

// Multiplies n elements in place; returns whether one of them was infinite or NaN.
using UnscaleLoop = bool (*)(void* array, double factor, int64_t n);

struct StepLoops {
  StepLoop step[kMethods][2];  // float, double
  UnscaleLoop unscale[2];
};

}  // namespace rushlight
