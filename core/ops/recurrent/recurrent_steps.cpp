// Owns recurrent layers and their gradients as ops, step by step: for devices without a kernel, and
// for gradients of gradients.
#include <algorithm>

#include "core/autograd/needs.h"
#include "core/ops/ops.h"
#include "core/ops/recurrent/recurrent.h"

namespace rushlight {
namespace {

Tensor rows_of(const Tensor& t, Step step) { return narrow(t, 0, step.begin, step.count); }
Tensor head(const Tensor& t, int64_t count) { return rows_of(t, {0, count}); }

// One of the gates that lie side by side.
Tensor gate(const Tensor& gates, int64_t i, int64_t n) { return narrow(gates, 1, i * n, n); }

Tensor with_head(const Tensor& t, const Tensor& rows) {
  int64_t count = rows.size(0), rest = t.size(0) - count;
  return rest == 0 ? rows : cat(std::array{rows, narrow(t, 0, count, rest)}, 0);
}

// What the steps gave, in the order of memory.
Tensor joined(const RecurrentLayer& layer, std::vector<Tensor> by_step) {
  if (layer.reverse) std::ranges::reverse(by_step);
  return cat(by_step, 0);
}

Tensor plus(const Tensor& a, const Tensor& b) { return b.defined() ? a + b : a; }

Tensor numbers_on(const std::vector<int64_t>& numbers, Device device) {
  Tensor t = empty(Shape{int64_t(numbers.size())}, DType::int64);
  std::ranges::copy(numbers, t.data<int64_t>());
  return device.is_cpu() ? t : needs::to_device(t, device);
}

// The slope of sigmoid and of tanh at what they gave.
Tensor sigmoid_slope(const Tensor& s) { return s * (1 - s); }
Tensor tanh_slope(const Tensor& t) { return 1 - t * t; }

}  // namespace

Tensor rows_before(const RecurrentLayer& layer, const Tensor& values, const Tensor& first) {
  int64_t batch = layer.batch();
  if (layer.is_dense()) {
    int64_t rest = layer.rows - batch;
    if (layer.reverse) return cat(std::array{narrow(values, 0, batch, rest), first}, 0);
    return cat(std::array{first, narrow(values, 0, 0, rest)}, 0);
  }
  std::vector<int64_t> at(static_cast<size_t>(layer.rows));
  Step previous{0, 0};
  for (Step step : layer.steps) {
    for (int64_t r = 0; r < step.count; ++r)
      at[size_t(step.begin + r)] = r < previous.count ? batch + previous.begin + r : r;
    previous = step;
  }
  return index(cat(std::array{first, values}, 0), std::array{numbers_on(at, values.device())});
}

Tensor last_rows(const RecurrentLayer& layer, const Tensor& values) {
  if (layer.is_dense()) return rows_of(values, layer.steps.back());
  std::vector<int64_t> at(static_cast<size_t>(layer.batch()));
  for (Step step : layer.steps)
    for (int64_t r = 0; r < step.count; ++r) at[size_t(r)] = step.begin + r;
  return index(values, std::array{numbers_on(at, values.device())});
}

RecurrentResult run_recurrent_ops(const RecurrentLayer& layer, const Tensor& projected,
                                  const Tensor& candidate_bias) {
  int64_t n = layer.hidden;
  Tensor h = layer.hx, c = layer.cx, turned = transpose(layer.w_hh, 0, 1);
  std::vector<Tensor> outputs, inner, gates;
  for (Step step : layer.steps) {
    Tensor before = head(h, step.count), x = rows_of(projected, step), out;
    Tensor from_hidden = mm(before, turned);
    if (layer.is_lstm()) {
      Tensor sum = x + from_hidden;
      Tensor i = sigmoid(gate(sum, 0, n)), f = sigmoid(gate(sum, 1, n)), u = tanh(gate(sum, 2, n)),
             o = sigmoid(gate(sum, 3, n));
      Tensor cell = f * head(c, step.count) + i * u;
      out = o * tanh(cell);
      if (layer.w_hr.defined()) out = mm(out, transpose(layer.w_hr, 0, 1));
      c = with_head(c, cell);
      inner.push_back(cell);
      gates.push_back(cat(std::array{i, f, u, o}, 1));
    } else if (layer.is_gru()) {
      Tensor r = sigmoid(gate(x, 0, n) + gate(from_hidden, 0, n));
      Tensor z = sigmoid(gate(x, 1, n) + gate(from_hidden, 1, n));
      Tensor m = plus(gate(from_hidden, 2, n), candidate_bias);
      Tensor u = tanh(gate(x, 2, n) + r * m);
      out = u + z * (before - u);
      inner.push_back(m);
      gates.push_back(cat(std::array{r, z, u}, 1));
    } else {
      Tensor sum = x + from_hidden;
      out = layer.cell == Cell::tanh ? tanh(sum) : max(sum, 0.0);
    }
    h = with_head(h, out);
    outputs.push_back(out);
  }
  RecurrentResult result;
  result.output = joined(layer, std::move(outputs));
  bool keeps = layer.is_lstm() || layer.is_gru();
  Tensor none = narrow(result.output, 1, 0, 0);
  result.inner = keeps ? joined(layer, std::move(inner)) : clone(none);
  result.gates = keeps ? joined(layer, std::move(gates)) : clone(none);
  return result;
}

RecurrentFlow recurrent_backward_ops(const RecurrentLayer& layer, const RecurrentResult& result,
                                     const RecurrentResult& grads) {
  int64_t n = layer.hidden;
  Tensor before;  // of cells or of outputs
  if (layer.is_lstm()) before = rows_before(layer, result.inner, layer.cx);
  if (layer.is_gru()) before = rows_before(layer, result.output, layer.hx);
  Tensor g_h = zeros_like(layer.hx), g_c = layer.is_lstm() ? zeros_like(layer.cx) : Tensor();
  auto flowing = [](const Tensor& into, const Tensor& grad, Step step) {
    Tensor rows = head(into, step.count);
    return grad.defined() ? rows + rows_of(grad, step) : rows;
  };
  std::vector<Tensor> from_input, from_hidden, projected;
  for (size_t s = layer.steps.size(); s-- > 0;) {
    Step step = layer.steps[s];
    auto at = [&](const Tensor& t) { return t.defined() ? rows_of(t, step) : t; };
    Tensor g = flowing(g_h, grads.output, step), gates = at(result.gates),
           g_gates = at(grads.gates);
    auto extra = [&](int64_t i) { return g_gates.defined() ? gate(g_gates, i, n) : g_gates; };
    Tensor through, hidden, directly;
    if (layer.is_lstm()) {
      if (layer.w_hr.defined()) {
        projected.push_back(g);
        g = mm(g, layer.w_hr);
      }
      Tensor i = gate(gates, 0, n), f = gate(gates, 1, n), u = gate(gates, 2, n),
             o = gate(gates, 3, n), t = tanh(at(result.inner));
      Tensor cell = flowing(g_c, grads.inner, step) + g * o * tanh_slope(t);
      hidden = through = cat(std::array{plus(cell * u, extra(0)) * sigmoid_slope(i),
                                        plus(cell * at(before), extra(1)) * sigmoid_slope(f),
                                        plus(cell * i, extra(2)) * tanh_slope(u),
                                        plus(g * t, extra(3)) * sigmoid_slope(o)},
                             1);
      g_c = with_head(g_c, cell * f);
    } else if (layer.is_gru()) {
      Tensor r = gate(gates, 0, n), z = gate(gates, 1, n), u = gate(gates, 2, n);
      Tensor candidate = plus(g * (1 - z), extra(2)) * tanh_slope(u);
      Tensor reset = plus(candidate * at(result.inner), extra(0)) * sigmoid_slope(r);
      Tensor update = plus(g * (at(before) - u), extra(1)) * sigmoid_slope(z);
      through = cat(std::array{reset, update, candidate}, 1);
      hidden = cat(std::array{reset, update, plus(candidate * r, at(grads.inner))}, 1);
      directly = g * z;
    } else {
      Tensor out = at(result.output);
      hidden = through = layer.cell == Cell::tanh ? g * tanh_slope(out) : select(out <= 0, 0.0, g);
    }
    from_input.push_back(through);
    from_hidden.push_back(hidden);
    g_h = with_head(g_h, plus(mm(hidden, layer.w_hh), directly));
  }
  auto in_order = [&](std::vector<Tensor>& by_step) {  // which begin with the last step
    std::ranges::reverse(by_step);
    return joined(layer, std::move(by_step));
  };
  RecurrentFlow flow;
  flow.from_input = in_order(from_input);
  flow.from_hidden = layer.is_gru() ? in_order(from_hidden) : flow.from_input;
  if (layer.w_hr.defined()) flow.output = in_order(projected);
  flow.hx = g_h;
  flow.cx = g_c;
  return flow;
}

}  // namespace rushlight
