// Owns the arguments of kernels over many tensors, as host and device both see them.
#pragma once

#include <stdint.h>

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

inline constexpr int kMaxStepArrays = 5;

// The tensors of one launch: as many as fit into the 4 KB that a kernel's arguments may have. Each
// is split into chunks, one for each block.
inline constexpr int kManyTensors = 64, kChunk = 4096;
struct ManyTensors {
  void* arrays[kMaxStepArrays][kManyTensors];  // those without are null
  int64_t numel[kManyTensors];
  uint32_t first_block[kManyTensors];
  uint64_t is_aligned;  // bit t: all arrays of tensor t begin at multiples of 16 bytes
  int32_t count;
};

// Norms of order 2, 1 and infinity.
enum class NormKind : int32_t { euclidean, sum, largest };

}  // namespace rushlight
