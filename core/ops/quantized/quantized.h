// Owns what the ops on quantized integers share.
#pragma once

#include "core/ops/quantized/quantized_loops.h"

namespace rushlight {

// The loops for this processor.
const QuantizedLoops& quantized_loops();

}  // namespace rushlight
