// Owns the recurrent networks and cells as PyTorch has them: layers, directions and dropout between
// layers. One direction of one layer is _recurrent_layer; all else here is made of ops.
#include "core/ops/recurrent/recurrent.h"

#include <algorithm>
#include <array>

#include "core/autograd/needs.h"
#include "core/ops/op.h"

namespace rushlight {
namespace {

using Pair = std::tuple<Tensor, Tensor>;
using Triple = std::tuple<Tensor, Tensor, Tensor>;

struct Network {
  std::string_view cell;
  TensorList params;
  bool has_biases;
  int64_t layers;
  double dropout;
  bool train, bidirectional;

  int64_t directions() const { return bidirectional ? 2 : 1; }
};

struct Weights {
  Tensor w_ih, w_hh, b_ih, b_hh, w_hr;
};

// Output, and hidden state and cell after the last step.
struct Run {
  Tensor output, hy, cy;
};

// One direction of a layer over packed rows. Half types compute in float32 on the CPU, with weights
// of halves if nothing is recorded; complex ones are recorded op by op.
Run run_layer(std::string_view cell, const Tensor& input, const Tensor& hx, const Tensor& cx,
              const Weights& w, ShapeRef batch_sizes, bool reverse) {
  bool widened = is_half(input.dtype()) && input.device().is_cpu();
  auto wide = [&](const Tensor& t) {
    return widened && t.defined() && t.dtype() == input.dtype() ? cast(t, DType::float32) : t;
  };
  auto is_followed = [](const Tensor* t) {
    return is_lifted(*t) || (is_grad_enabled() && t->defined() && gradient_edge_exists(*t));
  };
  std::array<const Tensor*, 8> all{&input, &hx, &cx, &w.w_ih, &w.w_hh, &w.b_ih, &w.b_hh, &w.w_hr};
  bool is_recorded = std::ranges::any_of(all, is_followed);
  auto in = [&](const Tensor& t) { return is_recorded ? wide(t) : t; };
  auto out = [&](const Tensor& t) { return widened ? cast(t, input.dtype()) : t; };
  RecurrentLayer layer = recurrent_layer(cell, hx, cx, w.w_hh, w.w_hr, batch_sizes, reverse);
  check_recurrent_layer(layer, input, w.w_ih, w.b_ih, w.b_hh);
  RecurrentResult run;
  if (is_complex(input.dtype())) run = run_recurrent(layer, input, w.w_ih, w.b_ih, w.b_hh);
  else
    std::tie(run.output, run.inner, run.gates) = call<"_recurrent_layer", Triple>(
        in(input), cell, wide(hx), wide(cx), in(w.w_ih), in(w.w_hh), wide(w.b_ih), wide(w.b_hh),
        in(w.w_hr), batch_sizes, reverse);
  return {out(run.output), out(last_rows(layer, run.output)),
          cx.defined() ? out(last_rows(layer, run.inner)) : Tensor()};
}

// What a layer gave and reads again in backward, apart from it: programs may write to its result.
Tensor apart(const Tensor& t) {
  return is_grad_enabled() && gradient_edge_exists(t) ? clone(t) : t;
}

// The weights by layer and direction, from the flat list.
std::vector<Weights> weights_of(const Network& net, bool projects) {
  size_t each = 2 + 2 * net.has_biases + projects;
  size_t count = size_t(net.layers * net.directions());
  CHECK(net.params.size() == each * count, "takes ", each * count, " params, ", each,
        " for each of ", count, " layers and directions, but got ", net.params.size(), ".");
  std::vector<Weights> all;
  for (size_t i = 0; i < net.params.size(); i += each) {
    Weights w{net.params[i], net.params[i + 1], {}, {}, {}};
    if (net.has_biases) {
      w.b_ih = net.params[i + 2];
      w.b_hh = net.params[i + 3];
    }
    if (projects) w.w_hr = net.params[i + each - 1];
    all.push_back(std::move(w));
  }
  return all;
}

// All layers over packed rows.
Run run_network(const Network& net, const Tensor& input, const Tensor& hx, const Tensor& cx,
                ShapeRef batch_sizes) {
  CHECK(net.layers > 0 && net.layers <= int64_t(net.params.size()),
        "num_layers must be positive and at most the number of params, ", net.params.size(),
        ", but is ", net.layers, ".");
  CHECK(net.dropout >= 0 && net.dropout <= 1,
        "dropout probability has to be between 0 and 1, but got ", net.dropout);
  int64_t states = net.layers * net.directions();
  auto check_states = [&](const Tensor& t, const char* name) {
    CHECK(t.dim() == 3 && t.size(0) == states && t.size(1) == batch_sizes[0], name,
          " must have shape (", states, ", ", batch_sizes[0], ", size), but has ", t.sizes(), ".");
  };
  check_states(hx, "the hidden state");
  if (cx.defined()) check_states(cx, "the cell state");
  std::vector<Weights> weights = weights_of(net, cx.defined() && cx.size(2) != hx.size(2));
  Tensor rows = input;
  std::vector<Tensor> hy, cy;
  for (int64_t l = 0; l < net.layers; ++l) {
    std::vector<Tensor> outputs;
    for (int64_t d = 0; d < net.directions(); ++d) {
      int64_t i = l * net.directions() + d;
      Run run = run_layer(net.cell, rows, select(hx, 0, i), cx.defined() ? select(cx, 0, i) : cx,
                          weights[size_t(i)], batch_sizes, d == 1);
      outputs.push_back(run.output);
      hy.push_back(run.hy);
      cy.push_back(run.cy);
    }
    rows = outputs.size() == 1 ? outputs[0] : cat(outputs, 1);
    if (net.dropout > 0 && l + 1 < net.layers)
      rows = call<"dropout", Tensor>(rows, net.dropout, net.train, false);
  }
  return {net.bidirectional ? rows : apart(rows), stack(hy, 0),
          cx.defined() ? stack(cy, 0) : Tensor()};
}

// (time, batch, features), or with batch first.
Run run_dense(const Network& net, const Tensor& input, const Tensor& hx, const Tensor& cx,
              bool batch_first) {
  CHECK(input.dim() == 3, "input must have 3 dimensions, got ", input.dim(), ".");
  Tensor by_step = batch_first ? transpose(input, 0, 1) : input;
  int64_t steps = by_step.size(0), batch = by_step.size(1);
  CHECK(steps > 0, "Expected sequence length to be larger than 0 in RNN. The input's shape is ",
        input.sizes(), ".");
  Shape batch_sizes(size_t(steps), batch);
  Run run = run_network(net, reshape(by_step, Shape{steps * batch, by_step.size(2)}), hx, cx,
                        batch_sizes);
  run.output = reshape(run.output, Shape{steps, batch, run.output.size(1)});
  if (batch_first) run.output = transpose(run.output, 0, 1);
  return run;
}

// The numbers of sequences per step, from any device.
Shape sizes_from(const Tensor& batch_sizes, const Tensor& data) {
  CHECK(batch_sizes.dtype() == DType::int64 && batch_sizes.dim() == 1 && batch_sizes.numel() > 0,
        "batch_sizes must be one row of int64, at least one of them, but is ",
        dtype_name(batch_sizes.dtype()), " of shape ", batch_sizes.sizes(), ".");
  Tensor dense = to_contiguous(needs::to_device(batch_sizes, {}));
  Shape sizes(std::span<const int64_t>(dense.data<int64_t>(), size_t(dense.numel())));
  int64_t rows = 0, most = data.dim() == 2 ? data.size(0) : 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    CHECK(
        sizes[i] > 0 && sizes[i] <= (i > 0 ? sizes[i - 1] : most),
        "batch_sizes must be positive, must not grow, and add up to the rows of data, but number ",
        i, " is ", sizes[i], ".");
    rows += sizes[i];
  }
  CHECK(data.dim() == 2 && rows == data.size(0), "data must have shape (", rows,
        ", features), the sum of batch_sizes, but has ", data.sizes(), ".");
  return sizes;
}

void check_pair(TensorList hx) {
  CHECK(hx.size() == 2, "lstm expects two hidden states, (h_0, c_0), but got ", hx.size(), ".");
}

// One step of one layer: (batch, features), or one row of features.
Run run_cell(std::string_view cell, const Tensor& input, const Tensor& hx, const Tensor& cx,
             Weights w) {
  // A bias that is missing beside the other one is zero.
  if (w.b_ih.defined() && !w.b_hh.defined()) w.b_hh = zeros_like(w.b_ih);
  if (w.b_hh.defined() && !w.b_ih.defined()) w.b_ih = zeros_like(w.b_hh);
  CHECK(input.dim() == 1 || input.dim() == 2, "Expected input to be 1D or 2D, got ", input.dim(),
        "D instead.");
  bool many = input.dim() == 2;
  auto row = [](const Tensor& t) {
    CHECK(!t.defined() || t.dim() == 1, "Expected the states of a 1D input to be 1D, got ", t.dim(),
          "D instead.");
    return t.defined() ? unsqueeze(t, 0) : t;
  };
  Run run = many ? run_layer(cell, input, hx, cx, w, Shape{input.size(0)}, false)
                 : run_layer(cell, row(input), row(hx), row(cx), w, Shape{1}, false);
  auto as_given = [&](const Tensor& t) { return apart(many ? t : squeeze(t, 0)); };
  return {as_given(run.output), run.hy, cx.defined() ? as_given(run.cy) : cx};
}

// The forwards of the networks without cells, which differ in nothing else.
template <FixedString cell>
constexpr auto dense = [](const Tensor& input, const Tensor& hx, TensorList params, bool has_biases,
                          int64_t num_layers, double dropout, bool train, bool bidirectional,
                          bool batch_first) {
  Network net{cell.view(), params, has_biases, num_layers, dropout, train, bidirectional};
  Run run = run_dense(net, input, hx, {}, batch_first);
  return Pair(run.output, run.hy);
};
template <FixedString cell>
constexpr auto packed = [](const Tensor& data, const Tensor& batch_sizes, const Tensor& hx,
                           TensorList params, bool has_biases, int64_t num_layers, double dropout,
                           bool train, bool bidirectional) {
  Network net{cell.view(), params, has_biases, num_layers, dropout, train, bidirectional};
  Run run = run_network(net, data, hx, {}, sizes_from(batch_sizes, data));
  return Pair(run.output, run.hy);
};
template <FixedString cell>
constexpr auto one_step = [](const Tensor& input, const Tensor& hx, const Tensor& w_ih,
                             const Tensor& w_hh, const Tensor& b_ih, const Tensor& b_hh) {
  return run_cell(cell.view(), input, hx, {}, {w_ih, w_hh, b_ih, b_hh, {}}).output;
};

}  // namespace

OP(lstm_input,
   "lstm.input(Tensor input, Tensor[] hx, Tensor[] params, bool has_biases, int num_layers, "
   "float dropout, bool train, bool bidirectional, bool batch_first) -> "
   "(Tensor output, Tensor hy, Tensor cy)", {
  .doc     = R"(Long short-term memory (Hochreiter and Schmidhuber 1997); nn.LSTM has the formulas.

Args:
    input: (time, batch, features), or (batch, time, features) with batch_first. The other form
        takes the data and batch_sizes of a PackedSequence.
    hx: the state and the cells before the first step, each (layers * directions, batch, size).
    params: for each layer and direction w_ih, w_hh, then b_ih and b_hh if has_biases, then w_hr if
        outputs are projected.
    has_biases: whether params hold biases.
    num_layers: how many layers, each on the outputs of the one before.
    dropout: the probability of dropping an output between layers.
    train: whether to drop at all.
    bidirectional: whether each layer runs in both directions.)",
  .dtypes  = floating_or_complex,
  .variants = function,
  .autocast = autocast::lower,
  .forward = [](const Tensor& input, TensorList hx, TensorList params, bool has_biases,
                int64_t num_layers, double dropout, bool train, bool bidirectional,
                bool batch_first) {
    check_pair(hx);
    Network net{"lstm", params, has_biases, num_layers, dropout, train, bidirectional};
    Run run = run_dense(net, input, hx[0], hx[1], batch_first);
    return Triple(run.output, run.hy, run.cy);
  },
})

OP(lstm_data,
   "lstm.data(Tensor data, Tensor batch_sizes, Tensor[] hx, Tensor[] params, bool has_biases, "
   "int num_layers, float dropout, bool train, bool bidirectional) -> "
   "(Tensor output, Tensor hy, Tensor cy)", {
  .doc     = R"(lstm over the data and batch_sizes of a PackedSequence.)",
  .dtypes  = floating_or_complex,
  .variants = function,
  .autocast = autocast::lower,
  .forward = [](const Tensor& data, const Tensor& batch_sizes, TensorList hx, TensorList params,
                bool has_biases, int64_t num_layers, double dropout, bool train,
                bool bidirectional) {
    check_pair(hx);
    Network net{"lstm", params, has_biases, num_layers, dropout, train, bidirectional};
    Run run = run_network(net, data, hx[0], hx[1], sizes_from(batch_sizes, data));
    return Triple(run.output, run.hy, run.cy);
  },
})

OP(lstm_cell,
   "(Tensor input, Tensor[] hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, "
   "Tensor? b_hh=None) -> (Tensor hy, Tensor cy)", {
  .doc     = R"(State and cell after one step of lstm: hx are two (batch, size).)",
  .dtypes  = floating_or_complex,
  .variants = function,
  .autocast = autocast::lower,
  .forward = [](const Tensor& input, TensorList hx, const Tensor& w_ih, const Tensor& w_hh,
                const Tensor& b_ih, const Tensor& b_hh) {
    check_pair(hx);
    Run run = run_cell("lstm", input, hx[0], hx[1], {w_ih, w_hh, b_ih, b_hh, {}});
    return Pair(run.output, run.cy);
  },
})

OP(gru_input,
   "gru.input(Tensor input, Tensor hx, Tensor[] params, bool has_biases, int num_layers, "
   "float dropout, bool train, bool bidirectional, bool batch_first) -> "
   "(Tensor output, Tensor hy)", {
  .doc     = R"(Gated recurrent units (Cho et al. 2014), see nn.GRU, with the arguments of lstm.)",
  .dtypes  = floating_or_complex,
  .variants = function,
  .autocast = autocast::lower,
  .forward = dense<"gru">,
})

OP(gru_data,
   "gru.data(Tensor data, Tensor batch_sizes, Tensor hx, Tensor[] params, bool has_biases, "
   "int num_layers, float dropout, bool train, bool bidirectional) -> (Tensor output, Tensor hy)", {
  .doc     = R"(gru over the data and batch_sizes of a PackedSequence.)",
  .dtypes  = floating_or_complex,
  .variants = function,
  .autocast = autocast::lower,
  .forward = packed<"gru">,
})

OP(gru_cell, "(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, "
            "Tensor? b_hh=None) -> Tensor", {
  .doc     = R"(The state after one step of gru: input (batch, features), hx (batch, size).)",
  .dtypes  = floating_or_complex,
  .variants = function,
  .autocast = autocast::lower,
  .forward = one_step<"gru">,
})

OP(rnn_tanh_input,
   "rnn_tanh.input(Tensor input, Tensor hx, Tensor[] params, bool has_biases, int num_layers, "
   "float dropout, bool train, bool bidirectional, bool batch_first) -> "
   "(Tensor output, Tensor hy)", {
  .doc     = R"(Elman's recurrent network with tanh, see nn.RNN, with the arguments of lstm.)",
  .dtypes  = floating_or_complex,
  .variants = function,
  .autocast = autocast::lower,
  .forward = dense<"tanh">,
})

OP(rnn_tanh_data,
   "rnn_tanh.data(Tensor data, Tensor batch_sizes, Tensor hx, Tensor[] params, bool has_biases, "
   "int num_layers, float dropout, bool train, bool bidirectional) -> (Tensor output, Tensor hy)", {
  .doc     = R"(rnn_tanh over the data and batch_sizes of a PackedSequence.)",
  .dtypes  = floating_or_complex,
  .variants = function,
  .autocast = autocast::lower,
  .forward = packed<"tanh">,
})

OP(rnn_tanh_cell, "(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, "
                 "Tensor? b_hh=None) -> Tensor", {
  .doc     = R"(The state after one step of rnn_tanh: input (batch, features), hx (batch, size).)",
  .dtypes  = floating_or_complex,
  .variants = function,
  .autocast = autocast::lower,
  .forward = one_step<"tanh">,
})

OP(rnn_relu_input,
   "rnn_relu.input(Tensor input, Tensor hx, Tensor[] params, bool has_biases, int num_layers, "
   "float dropout, bool train, bool bidirectional, bool batch_first) -> "
   "(Tensor output, Tensor hy)", {
  .doc     = R"(Elman's recurrent network with relu, see nn.RNN, with the arguments of lstm.)",
  .dtypes  = floating,
  .variants = function,
  .autocast = autocast::lower,
  .forward = dense<"relu">,
})

OP(rnn_relu_data,
   "rnn_relu.data(Tensor data, Tensor batch_sizes, Tensor hx, Tensor[] params, bool has_biases, "
   "int num_layers, float dropout, bool train, bool bidirectional) -> (Tensor output, Tensor hy)", {
  .doc     = R"(rnn_relu over the data and batch_sizes of a PackedSequence.)",
  .dtypes  = floating,
  .variants = function,
  .autocast = autocast::lower,
  .forward = packed<"relu">,
})

OP(rnn_relu_cell, "(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, "
                 "Tensor? b_hh=None) -> Tensor", {
  .doc     = R"(The state after one step of rnn_relu: input (batch, features), hx (batch, size).)",
  .dtypes  = floating,
  .variants = function,
  .autocast = autocast::lower,
  .forward = one_step<"relu">,
})

}  // namespace rushlight
