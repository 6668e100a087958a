// Declares the kernels of ctc_loss. log_probs is (T, N, C), row-major float32 or float64; targets
// are int64 without gaps, (N, S) or those of all samples one after the other; lengths have been
// checked, and classes if they are on the CPU.
//
// The states of a sample are its target with a blank before, between and after the labels, so that
// there are 2 * S + 1 of them.
#pragma once

#include <vector>

#include "core/tensor/tensor.h"

namespace rushlight {

struct CtcBatch {
  Tensor log_probs, targets;
  std::vector<int64_t> input_lengths, target_lengths;
  int64_t blank;

  int64_t times() const { return log_probs.size(0); }
  int64_t samples() const { return log_probs.size(1); }
  int64_t classes() const { return log_probs.size(2); }
  int64_t longest() const;  // of the targets
  // Where the target of each sample begins.
  std::vector<int64_t> starts() const;
};

// -log(p(target)) of each sample (N), and the logarithms of the probabilities of all ways to each
// state at each time (N, T, states), with room for the longest target.
void ctc_loss_cpu(const CtcBatch& batch, const Tensor& losses, const Tensor& log_alpha);
// The gradient of log_probs from those of the losses (N). As in PyTorch it is that of the logits
// behind log_softmax, which gives the same once log_softmax passes it on.
void ctc_loss_backward_cpu(const CtcBatch& batch, const Tensor& grad, const Tensor& losses,
                           const Tensor& log_alpha, bool zero_infinity, const Tensor& grad_input);
// The same on CUDA, where a label outside the classes gives NaN.
void ctc_loss_cuda(const CtcBatch& batch, const Tensor& losses, const Tensor& log_alpha);
void ctc_loss_backward_cuda(const CtcBatch& batch, const Tensor& grad, const Tensor& losses,
                            const Tensor& log_alpha, bool zero_infinity, const Tensor& grad_input);

}  // namespace rushlight
