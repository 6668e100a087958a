// Owns backward where tensors are lifted, see Note [Lifted tensors] in tensor/lift.h.
//
// The tape is that of the tensors behind, so roots, gradients and inputs are brought down by a
// level, and what comes out is lifted again. What flows along the tape of plain tensors may be
// lifted too.
#include <algorithm>

#include "core/autograd/call_watch.h"
#include "core/autograd/engine.h"
#include "core/autograd/needs.h"
#include "core/ops/batch.h"
#include "core/ops/dispatch.h"
#include "core/ops/lift.h"

namespace rushlight::needs {
namespace {

const Level* innermost(TensorList tensors, const Level* found = nullptr) {
  for (const Tensor& t : tensors)
    if (is_lifted(t) && (!found || level_of(t).id > found->id)) found = &level_of(t);
  return found;
}

template <class F>
std::vector<Tensor> mapped(TensorList tensors, const F& f) {
  std::vector<Tensor> results;
  for (const Tensor& t : tensors) results.push_back(t.defined() ? f(t) : Tensor());
  return results;
}

// Each sample on its own.
void run_by_samples(Node& node, TensorList grads, std::span<Tensor> input_grads,
                    const Level& level) {
  std::vector<std::vector<Tensor>> samples(input_grads.size());
  for (int64_t n = 0; n < level.size; ++n) {
    std::vector<Tensor> one(input_grads.size());
    run_node(node, mapped(grads, [&](auto& g) { return select(samples_of(g, level), 0, n); }), one);
    for (size_t i = 0; i < one.size(); ++i)
      if (one[i].defined()) samples[i].push_back(one[i]);
  }
  for (size_t i = 0; i < samples.size(); ++i)
    if (!samples[i].empty()) input_grads[i] = from_samples(stack(samples[i], 0), level);
}

// A gradient is linear in what flows in.
void run_by_parts(Node& node, TensorList grads, std::span<Tensor> input_grads, const Level& level) {
  std::vector<Tensor> tangents(input_grads.size());
  run_node(node, mapped(grads, [&](auto& g) { return lowered(g, level); }), input_grads);
  run_node(node, mapped(grads, [&](auto& g) { return tangent_of(g, level); }), tangents);
  for (size_t i = 0; i < tangents.size(); ++i)
    if (tangents[i].defined() && input_grads[i].defined())
      input_grads[i] = lift_dual(input_grads[i], tangents[i], level);
}

std::vector<Tensor> backward_of_samples(TensorList roots, TensorList grads, TensorList inputs,
                                        const BackwardOptions& options, const Level& level) {
  auto down = [&](const Tensor& t) { return lowered(t, level); };
  std::vector<Tensor> root_grads;
  for (size_t i = 0; i < roots.size(); ++i) {
    Tensor grad = root_gradient(roots, grads, i);
    root_grads.push_back(is_lifted_at(roots[i], level) ? samples_of(grad, level) : grad);
  }
  CHECK(!options.accumulate,
        "backward() cannot be called inside vmap, as .grad has one value for all samples. Use "
        "torch.func.grad or torch.autograd.grad.");
  auto found = run_backward(mapped(roots, down), root_grads, mapped(inputs, down), options);
  bool samples = std::ranges::any_of(roots, [&](auto& t) { return is_lifted_at(t, level); });
  for (size_t i = 0; i < found.size(); ++i) {
    if (!found[i].defined()) continue;
    if (is_lifted_at(inputs[i], level)) found[i] = from_samples(found[i], level);
    else
      CHECK(!samples, "grad: input ", i,
            " is the same for all samples of vmap, so that it has no gradient for each. Pass it as "
            "an argument of a function given to torch.func.grad.");
  }
  return found;
}

// A gradient of y + t e, where e is the direction of the level, has the gradient of t as tangent.
std::vector<Tensor> backward_of_duals(TensorList roots, TensorList grads, TensorList inputs,
                                      const BackwardOptions& options, const Level& level) {
  auto value = [&](const Tensor& t) { return lowered(t, level); };
  std::vector<Tensor> values = mapped(roots, value), plain_inputs = mapped(inputs, value);
  std::vector<Tensor> value_grads, tangents, tangent_grads;
  auto add_tangent = [&](const Tensor& root, const Tensor& grad) {
    if (!root.defined() || !grad.defined() || !gradient_edge_exists(root)) return;
    tangents.push_back(root);
    tangent_grads.push_back(grad);
  };
  for (size_t i = 0; i < roots.size(); ++i) {
    Tensor grad = root_gradient(roots, grads, i);
    value_grads.push_back(value_at(grad, level));
    add_tangent(tangent_of(roots[i], level), value_grads[i]);
    add_tangent(values[i], tangent_at(grad, level));
  }
  BackwardOptions first = options;
  first.retain_graph |= !tangents.empty() && !options.accumulate;
  std::vector<Tensor> found = run_backward(values, value_grads, plain_inputs, first);
  if (tangents.empty() || options.accumulate) return found;
  std::vector<Tensor> along = run_backward(tangents, tangent_grads, plain_inputs, options);
  for (size_t i = 0; i < found.size(); ++i) {
    if (!along[i].defined()) continue;
    Tensor value = found[i].defined() ? found[i] : rushlight::zeros_like(along[i]);
    found[i] = from_value(value, along[i], level);
  }
  return found;
}

// As ops where a mode is to see them, or the class of a tensor, which may be one that was saved.
void run_unlifted(Node& node, TensorList grads, std::span<Tensor> input_grads) {
  bool seen = call_watch.watchers & kWatchedByModes;
  if (!seen && !std::ranges::any_of(grads, is_dispatched)) try {
      return node.backward(grads, input_grads);
    } catch (const NeedsElements&) {
      if (gradients_as_ops()) throw;
      std::ranges::fill(input_grads, Tensor());
    }
  GradientsAsOpsGuard as_ops(true);
  node.backward(grads, input_grads);
}

}  // namespace

void run_node(Node& node, TensorList grads, std::span<Tensor> input_grads) {
  const Level* level = innermost(grads);
  if (!level) return run_unlifted(node, grads, input_grads);
  try {
    GradientsAsOpsGuard as_ops(true);
    node.backward(grads, input_grads);
  } catch (const NeedsElements&) {  // it is not made of ops alone
    std::ranges::fill(input_grads, Tensor());
    if (level->kind == LevelKind::batch) run_by_samples(node, grads, input_grads, *level);
    else run_by_parts(node, grads, input_grads, *level);
  }
}

std::vector<Tensor> run_lifted_backward(TensorList roots, TensorList grads, TensorList inputs,
                                        const BackwardOptions& options) {
  Level level = *innermost(inputs, innermost(roots));
  return level.kind == LevelKind::batch ? backward_of_samples(roots, grads, inputs, options, level)
                                        : backward_of_duals(roots, grads, inputs, options, level);
}

}  // namespace rushlight::needs
