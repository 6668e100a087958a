// Declares the kernel of histograms.
#pragma once

#include "core/tensor/tensor.h"

namespace rushlight {

// How the bin of a value is found: among any edges, or among even ones by a division, whose
// rounding is mended by a look at the edges or left as it is.
enum class Binning : uint8_t { search, even, even_unmended };

// How many rows of input (N, D) fall into each bin, or the sum of their weights: as many bins as
// fit between the edges of each dim, in one dim. Values outside and NaN count nowhere. Input and
// edges are row-major float32 or float64, and so is the result, but int64 without weights.
Tensor histogram_cpu(const Tensor& input, TensorList edges, const Tensor& weight, Binning binning);

}  // namespace rushlight
