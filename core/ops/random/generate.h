// Owns the declarations of the kernels that fill a tensor with a sequence.
#pragma once

#include "core/ops/random/generate_args.h"
#include "core/tensor/tensor.h"

namespace rushlight {

// Each fills a row-major tensor of a real dtype.
void generate_cpu(const Tensor& out, const Range& range);
void generate_cpu(const Tensor& out, const Spaced& spaced);
void generate_cuda(const Tensor& out, const Range& range);
void generate_cuda(const Tensor& out, const Spaced& spaced);

}  // namespace rushlight
