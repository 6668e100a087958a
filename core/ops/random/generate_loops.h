// Owns the shape of the loops of sequences, which are compiled once per instruction set.
#pragma once

#include "core/ops/random/generate_args.h"
#include "core/tensor/loops.h"

namespace rushlight {

// Writes elements [begin, end) of a sequence to `out`, where the first of all goes.
template <class Sequence>
using GenerateLoop = void (*)(const Sequence& sequence, int64_t begin, int64_t end, void* out);

// By real dtype, in the order of DType.
struct GenerateLoops {
  GenerateLoop<Range> range[kRealTypes];
  GenerateLoop<Spaced> spaced[kRealTypes];
};

}  // namespace rushlight
