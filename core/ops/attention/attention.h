// Declares the fused kernel of scaled_dot_product_attention, which never holds all scores.
#pragma once

#include "core/tensor/generator.h"

namespace rushlight {

// query (*, L, E), key (*, S, E), value (*, S, Ev) of one floating dtype; leading dims broadcast to
// `batch`, which is not empty of elements and neither is L.
struct Attention {
  Tensor query, key, value;
  Tensor mask;  // undefined, bool, or of the dtype that the kernel computes in: (*, L, S)
  Shape batch;
  bool is_causal;
  double scale;
  // Of element (i, j) of a batch item by word j of the counters that belong to row i, so that rows
  // take whole counters; see Note [Random numbers].
  double dropout_p;
  Generator::Draw draw;

  int64_t items() const { return checked_numel(batch); }
  int64_t queries() const { return query.size(-2); }
  int64_t keys() const { return key.size(-2); }
  int64_t counters_per_row() const { return (keys() + 3) / 4; }
};

// output: (*batch, L, Ev), rows without gaps; logsumexp: (*batch, L) row-major, -inf where a query
// sees nothing.
void attention_cpu(const Attention& attention, const Tensor& output, const Tensor& logsumexp);
void attention_cuda(const Attention& attention, const Tensor& output, const Tensor& logsumexp);
// Whether tiles of so many features fit in the memory of a block.
bool attention_fits_cuda(DType dtype, int64_t features);

// The gradients, each of the broadcast shape, or undefined if not wanted. That of the mask comes as
// zeros: on the CPU of (shares, the mask's sizes with all keys), to be added up over dim 0, since
// batch items that share the mask are split into so many parts, each with a sum of its own.
struct AttentionGrads {
  Tensor query, key, value, mask;
};
void attention_backward_cpu(const Attention& attention, const Tensor& grad, const Tensor& output,
                            const Tensor& logsumexp, const AttentionGrads& grads);
void attention_backward_cuda(const Attention& attention, const Tensor& grad, const Tensor& output,
                             const Tensor& logsumexp, const AttentionGrads& grads);

}  // namespace rushlight
