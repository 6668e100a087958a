// Declares the recurrent layers: one direction of one layer over all time steps.
//
// Sequences are packed: the rows of `input` are those of step 0, then of step 1, ...; a step holds
// the sequences that are long enough for it, and as they are sorted by length, these are its
// first ones. Sequences of one length are the case of equal steps. Nothing here is recorded unless
// it is made of ops.
#pragma once

#include <string_view>
#include <vector>

#include "core/tensor/tensor.h"

namespace rushlight {

enum class Cell : uint8_t { lstm, gru, tanh, relu };

// Rows [begin, begin + count) of packed sequences.
struct Step {
  int64_t begin, count;
};

// In what follows N is the number of rows, B of sequences, H of hidden units, P of outputs (H
// unless they are projected) and G of gates: 4 H (input, forget, candidate, output) for lstm,
// 3 H (reset, update, candidate) for gru, else H.
struct RecurrentLayer {
  Cell cell;
  std::vector<Step> steps;  // in the order in which they run
  bool reverse;             // from the last step to the first
  int64_t rows, hidden;     // N, H
  Tensor hx, cx;            // (B, P), (B, H) for lstm
  Tensor w_hh, w_hr;        // (G, P), (P, H) when outputs are projected

  int64_t batch() const { return hx.size(0); }
  bool is_lstm() const { return cell == Cell::lstm; }
  bool is_gru() const { return cell == Cell::gru; }
  int64_t gate_count() const { return is_lstm() ? 4 : is_gru() ? 3 : 1; }
  // Whether every step holds all sequences.
  bool is_dense() const { return rows == batch() * int64_t(steps.size()); }
};

// What a layer computes and its gradient needs.
struct RecurrentResult {
  Tensor output;  // (N, P)
  Tensor inner;  // (N, H): the cells of lstm; of gru w_hh @ h + b_hh for the candidate; else (N, 0)
  Tensor gates;  // (N, G) after their activations; (N, 0) for those whose output is the gate
};

// What flows back through the steps; gradients of weights are products of these.
struct RecurrentFlow {
  Tensor from_input;   // (N, G), into input @ w_ih.T + b_ih
  Tensor from_hidden;  // (N, G), into h @ w_hh.T + b_hh: the same but for gru
  Tensor output;       // (N, P), when outputs are projected
  Tensor hx, cx;       // (B, P), (B, H)
};

// `cell` is lstm, gru, tanh or relu; `batch_sizes` are the counts of the steps.
RecurrentLayer recurrent_layer(std::string_view cell, const Tensor& hx, const Tensor& cx,
                               const Tensor& w_hh, const Tensor& w_hr, ShapeRef batch_sizes,
                               bool reverse);

// Raises unless tensors fit the steps and each other.
void check_recurrent_layer(const RecurrentLayer& layer, const Tensor& input, const Tensor& w_ih,
                           const Tensor& b_ih, const Tensor& b_hh);

// By the kernel of the CPU, which does not record, or as ops. Biases may be undefined. On the CPU
// input and weights may be halves beside states and biases of float32, which is what comes back.
RecurrentResult run_recurrent(RecurrentLayer layer, const Tensor& input, const Tensor& w_ih,
                              const Tensor& b_ih, const Tensor& b_hh);

// `projected` is input @ w_ih.T and the biases, (N, G), without that of gru's candidate from
// hidden, `candidate_bias` (H), which may be undefined. On the CPU it is overwritten, and tensors
// are row-major, float32 or float64; beside float32, weights may be halves.
RecurrentResult run_recurrent_cpu(const RecurrentLayer& layer, const Tensor& projected,
                                  const Tensor& candidate_bias);
RecurrentResult run_recurrent_ops(const RecurrentLayer& layer, const Tensor& projected,
                                  const Tensor& candidate_bias);

// `grads` are those of the result, undefined where nothing flows. The CPU's kernel takes none of
// the gates, nor of gru's inner values: these come with gradients of gradients.
RecurrentFlow recurrent_backward_cpu(const RecurrentLayer& layer, const RecurrentResult& result,
                                     const RecurrentResult& grads);
RecurrentFlow recurrent_backward_ops(const RecurrentLayer& layer, const RecurrentResult& result,
                                     const RecurrentResult& grads);

// Made of ops. The rows of `values` one step before each, where `first` is before the first step.
Tensor rows_before(const RecurrentLayer& layer, const Tensor& values, const Tensor& first);
// The last row of each sequence.
Tensor last_rows(const RecurrentLayer& layer, const Tensor& values);

}  // namespace rushlight
