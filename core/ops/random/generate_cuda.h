// Owns the declarations of the sequences that CUDA makes itself.
#pragma once

#include "core/ops/random/generate_args.h"
#include "core/tensor/tensor.h"

namespace rushlight {

// Fills a row-major tensor of a real dtype.
void generate_cuda(const Tensor& out, const Range& range);
void generate_cuda(const Tensor& out, const Spaced& spaced);

}  // namespace rushlight
