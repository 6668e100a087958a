// Gathers the rarer functions of formulas, which follow formula_math.h in the ops that need them
// and in every kernel on CUDA.
#pragma once

#include "core/tensor/formula_bessel.h"
#include "core/tensor/formula_gamma.h"
#include "core/tensor/formula_normal.h"
#include "core/tensor/formula_number.h"
#include "core/tensor/formula_orthogonal.h"
