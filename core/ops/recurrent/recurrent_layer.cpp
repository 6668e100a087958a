// Owns the op that runs one direction of one recurrent layer over all steps, with its gradient.
// The ops that users see are in recurrent.cpp.
#include "core/autograd/call_watch.h"
#include "core/ops/matmul/matmul.h"
#include "core/ops/op.h"
#include "core/ops/recurrent/recurrent.h"

namespace rushlight {
namespace {

using Results = std::tuple<Tensor, Tensor, Tensor>;

void check_weight(const Tensor& t, ShapeRef shape, const char* name) {
  CHECK(!t.defined() || same_shape(t.sizes(), shape), name, " must have shape ", ShapeText{shape},
        ", but has ", t.sizes(), ".");
}

Cell cell_of(std::string_view name) {
  if (name == "lstm") return Cell::lstm;
  if (name == "gru") return Cell::gru;
  ASSERT(name == "tanh" || name == "relu");
  return name == "tanh" ? Cell::tanh : Cell::relu;
}

// The kernel of the CPU takes row-major tensors. `state` is of the dtype that it computes in.
// Modes are shown the ops of each step, which the kernel has none of.
bool has_kernel(const Tensor& state) {
  return state.device().is_cpu() && !(call_watch.watchers & kWatchedByModes) &&
         (state.dtype() == DType::float32 || state.dtype() == DType::float64);
}
Tensor prepared(const Tensor& t) { return t.defined() ? to_contiguous(t) : t; }

// What is added to input @ w_ih.T: both biases, without that of gru's candidate from hidden.
Tensor projection_bias(const RecurrentLayer& layer, const Tensor& b_ih, const Tensor& b_hh) {
  if (!b_ih.defined()) return b_ih;
  if (!layer.is_gru()) return b_ih + b_hh;
  int64_t outer = 2 * layer.hidden;
  return cat(std::array{narrow(b_ih, 0, 0, outer) + narrow(b_hh, 0, 0, outer),
                        narrow(b_ih, 0, outer, layer.hidden)},
             0);
}

RecurrentFlow flow_back(RecurrentLayer layer, RecurrentResult result, RecurrentResult grads) {
  bool by_ops = gradients_as_ops() || !has_kernel(result.output) || grads.gates.defined() ||
                (grads.inner.defined() && !layer.is_lstm());
  if (by_ops) return recurrent_backward_ops(layer, result, grads);
  for (Tensor* t : {&layer.hx, &layer.cx, &layer.w_hh, &layer.w_hr, &result.output, &result.inner,
                    &result.gates, &grads.output, &grads.inner})
    *t = prepared(*t);
  return recurrent_backward_cpu(layer, result, grads);
}

}  // namespace

void check_recurrent_layer(const RecurrentLayer& layer, const Tensor& input, const Tensor& w_ih,
                           const Tensor& b_ih, const Tensor& b_hh) {
  const Tensor &hx = layer.hx, &cx = layer.cx, &w_hh = layer.w_hh, &w_hr = layer.w_hr;
  const Step& first = layer.reverse ? layer.steps.back() : layer.steps.front();
  int64_t batch = first.count, outputs = w_hh.size(1), width = layer.gate_count() * layer.hidden;
  CHECK(width == w_hh.size(0) && (w_hr.defined() || outputs == layer.hidden),
        "w_hh must have shape (", layer.gate_count(), " * hidden, hidden), but has ", w_hh.sizes(),
        ".");
  CHECK(input.dim() == 2 && input.size(0) == layer.rows, "input has shape ", input.sizes(),
        ", but its steps have ", layer.rows, " rows.");
  CHECK(w_ih.dim() == 2 && w_ih.size(0) == width && w_ih.size(1) == input.size(1),
        "w_ih must have shape (", width, ", ", input.size(1), ") for an input of ", input.size(1),
        " features and w_hh ", w_hh.sizes(), ", but has ", w_ih.sizes(), ".");
  Shape per_gate{width}, states{batch, outputs}, cells{batch, layer.hidden};
  ASSERT(b_ih.defined() == b_hh.defined());
  check_weight(b_ih, per_gate, "b_ih");
  check_weight(b_hh, per_gate, "b_hh");
  check_weight(w_hr, Shape{outputs, layer.hidden}, "w_hr");
  check_weight(hx, states, "hx");
  check_weight(cx, cells, "cx");
  for (const Tensor* t : {&hx, &cx, &w_ih, &w_hh, &b_ih, &b_hh, &w_hr}) {
    if (!t->defined()) continue;
    CHECK(t->dtype() == input.dtype(),
          "Input and parameter tensors are not the same dtype, found input tensor with ",
          dtype_name(input.dtype()), " and parameter tensor with ", dtype_name(t->dtype()),
          ". Convert one with .to(dtype).");
    CHECK(t->device() == input.device(),
          "Input and parameter tensors are not at the same device, found input tensor at ",
          input.device(), " and parameter tensor at ", t->device(), ". Move one with .to().");
  }
}

RecurrentLayer recurrent_layer(std::string_view cell, const Tensor& hx, const Tensor& cx,
                               const Tensor& w_hh, const Tensor& w_hr, ShapeRef batch_sizes,
                               bool reverse) {
  CHECK(w_hh.dim() == 2, "w_hh must be a matrix, but has shape ", w_hh.sizes(), ".");
  CHECK(!batch_sizes.empty(), "takes at least one step, but got none.");
  RecurrentLayer layer{cell_of(cell), {}, reverse, 0, 0, hx, cx, w_hh, w_hr};
  for (int64_t count : batch_sizes) {
    layer.steps.push_back({layer.rows, count});
    layer.rows += count;
  }
  if (reverse) std::ranges::reverse(layer.steps);
  layer.hidden = w_hh.size(0) / layer.gate_count();
  return layer;
}

RecurrentResult run_recurrent(RecurrentLayer layer, const Tensor& input, const Tensor& w_ih,
                              const Tensor& b_ih, const Tensor& b_hh) {
  if (input.device().is_meta()) {
    bool keeps = layer.is_lstm() || layer.is_gru();
    auto made = [&](int64_t columns) {
      return empty(Shape{layer.rows, columns}, input.dtype(), input.device());
    };
    return {made(layer.hx.size(1)), made(keeps ? layer.hidden : 0), made(keeps ? w_ih.size(0) : 0)};
  }
  Tensor candidate_bias;
  if (layer.is_gru() && b_hh.defined())
    candidate_bias = narrow(b_hh, 0, 2 * layer.hidden, layer.hidden);
  Tensor bias = projection_bias(layer, b_ih, b_hh);
  Tensor projected = input.dtype() == layer.hx.dtype() ? call<"linear", Tensor>(input, w_ih, bias)
                                                       : wide_linear_kernel(input, w_ih, bias);
  if (!has_kernel(layer.hx)) return run_recurrent_ops(layer, projected, candidate_bias);
  for (Tensor* t : {&layer.hx, &layer.cx, &layer.w_hh, &layer.w_hr}) *t = prepared(*t);
  return run_recurrent_cpu(layer, prepared(projected), prepared(candidate_bias));
}

OP(_recurrent_layer,
   "(Tensor input, str cell, Tensor hx, Tensor? cx, Tensor w_ih, Tensor w_hh, Tensor? b_ih, "
   "Tensor? b_hh, Tensor? w_hr, int[] batch_sizes, bool reverse) -> "
   "(Tensor output, Tensor inner, Tensor gates)", {
  .home    = "core",
  .doc     = R"(One direction of one recurrent layer over packed rows, see recurrent.h.)",
  .dtypes  = floating,
  .seen    = Seen::never,
  .batch   = [](const Batch& batch, const Tensor& input, std::string_view cell, const Tensor& hx,
                const Tensor& cx, const Tensor& w_ih, const Tensor& w_hh, const Tensor& b_ih,
                const Tensor& b_hh, const Tensor& w_hr, ShapeRef batch_sizes, bool reverse) {
    for (const char* weight : {"w_ih", "w_hh", "b_ih", "b_hh", "w_hr"})
      if (batch.has(weight))  // products with different weights have nothing to share
        return detail::unbox_result<Results>(Batch(batch).by_samples());
    // The samples of a sequence are sequences of one length side by side.
    int64_t samples = batch.size();
    auto merged = [&](const Tensor& t, const char* name) {
      if (!t.defined()) return t;
      Tensor all = transpose(batch.full(name), 0, 1);
      return reshape(all, Shape{all.size(0) * samples, all.size(2)});
    };
    int64_t rows = batch.full("input").size(1);
    auto parted = [&](const Tensor& t) {
      return transpose(reshape(t, Shape{rows, samples, t.size(1)}), 0, 1);
    };
    Shape sizes(batch_sizes);
    for (int64_t& size : sizes) size *= samples;
    auto [output, inner, gates] = call<"_recurrent_layer", Results>(
        merged(input, "input"), cell, merged(hx, "hx"), merged(cx, "cx"), w_ih, w_hh, b_ih, b_hh,
        w_hr, ShapeRef(sizes), reverse);
    return Results(parted(output), parted(inner), parted(gates));
  },
  .forward = [](const Tensor& input, std::string_view cell, const Tensor& hx, const Tensor& cx,
                const Tensor& w_ih, const Tensor& w_hh, const Tensor& b_ih, const Tensor& b_hh,
                const Tensor& w_hr, ShapeRef batch_sizes, bool reverse) {
    RecurrentLayer layer = recurrent_layer(cell, hx, cx, w_hh, w_hr, batch_sizes, reverse);
    RecurrentResult result = run_recurrent(std::move(layer), input, w_ih, b_ih, b_hh);
    return Results(result.output, result.inner, result.gates);
  },
  .saves   = saves<"input", "hx", "cx", "w_ih", "w_hh", "w_hr", "output", "inner", "gates">,
  .grads   = grads(d<"input", "hx", "cx", "w_ih", "w_hh", "b_ih", "b_hh", "w_hr">(
      [](TensorList g, const Tensor& input, const Tensor& hx, const Tensor& cx, const Tensor& w_ih,
         const Tensor& w_hh, const Tensor& w_hr, const Tensor& output, const Tensor& inner,
         const Tensor& gates, std::string_view cell, ShapeRef batch_sizes, bool reverse,
         GradMask<8> wants) {
        RecurrentLayer layer = recurrent_layer(cell, hx, cx, w_hh, w_hr, batch_sizes, reverse);
        RecurrentFlow flow = flow_back(layer, {output, inner, gates}, {g[0], g[1], g[2]});
        auto turned = [](const Tensor& t) { return transpose(t, 0, 1); };
        Tensor g_input, g_ih, g_hh, g_hr, b_ih, b_hh;
        if (wants[0]) g_input = mm(flow.from_input, w_ih);
        if (wants[3]) g_ih = mm(turned(flow.from_input), input);
        if (wants[4]) g_hh = mm(turned(flow.from_hidden), rows_before(layer, output, hx));
        if (wants[5]) b_ih = sum(flow.from_input, Shape{0});
        if (wants[6])
          b_hh = wants[5] && !layer.is_gru() ? b_ih : sum(flow.from_hidden, Shape{0});
        if (wants[7]) {
          Tensor out = narrow(gates, 1, 3 * layer.hidden, layer.hidden);
          g_hr = mm(turned(flow.output), out * tanh(inner));
        }
        return std::tuple(g_input, flow.hx, flow.cx, g_ih, g_hh, b_ih, b_hh, g_hr);
      })),
})

}  // namespace rushlight
