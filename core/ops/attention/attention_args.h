// Owns the arguments of the kernels of attention on CUDA, as host and device both see them.
#pragma once

#include <stdint.h>

#include "core/device/philox.h"

namespace rushlight {

// Dims of a batch, after those that all tensors walk as one are joined.
inline constexpr int kAttentionDims = 16;

// A matrix for each item of the batch. Strides are in elements.
struct AttentionOperand {
  void* data;  // null if there is none
  int64_t row, column;
  int64_t steps[kAttentionDims];
  bool vectors;  // whether rows may be read by as many elements as a tile's vector has
};

// See Attention in core/ops/attention/attention.h.
struct AttentionArgs {
  AttentionOperand query, key, value, mask, output;
  AttentionOperand grad, grad_query, grad_key, grad_value;
  void *logsumexp, *dots;  // of each query, see below
  void* grad_mask;         // (items, queries, keys), or null
  int32_t dims;
  int64_t sizes[kAttentionDims];  // of the batch
  int64_t items, queries, keys;
  int64_t features, value_features;
  int64_t counters_per_row;
  PhiloxDraw draw;
  double scale, kept_scale;
  uint32_t threshold;
  bool mask_is_bool, is_causal;
};

// What a tile takes of each row in shared memory: a vector more than it has, so that rows begin in
// different banks.
inline constexpr int kAttentionVector = 16;  // bytes
constexpr int attention_line(int columns, int item) { return columns + kAttentionVector / item; }

}  // namespace rushlight
