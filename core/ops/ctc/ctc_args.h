// Owns the arguments of the kernels of ctc_loss on CUDA, as host and device both see them.
#pragma once

#include <stdint.h>

namespace rushlight {

// See CtcBatch in ctc.h. What belongs to states lies in rows of `width`, which has room
// for those of the longest target.
struct CtcArgs {
  const void* log_probs;  // (times, samples, classes)
  const int64_t* targets;
  const int64_t *input_lengths, *target_lengths, *starts;  // of each sample
  int64_t times, samples, classes, blank, width;

  int64_t longest() const { return (width - 1) / 2; }
};

}  // namespace rushlight
