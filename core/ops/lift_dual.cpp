// Owns forward-mode differentiation: the tangent of an op's result from those of its arguments.
//
// An op declares how gradients flow back, v -> J^T v. That is linear in v, so its own gradient,
// taken in the direction t, is J t: no op needs a second set of rules. Where J is diagonal, as for
// every formula on real numbers, the declared gradient of t itself is J t.
#include <algorithm>

#include "core/autograd/engine.h"
#include "core/autograd/needs.h"
#include "core/ops/batch.h"
#include "core/ops/lift.h"
#include "core/ops/shape/shape.h"

namespace rushlight {
namespace {

// Stands where the result of an op came from, so that gradients end here.
class Source final : public Node {
 public:
  void backward(TensorList, std::span<Tensor>) override {}
  const char* op() const override { return "tangent"; }
};

// A tensor like the result `like`, but zero, made by `source` and with samples at batch levels,
// outermost first; its value is never looked at.
Tensor source_like(const Tensor& like, const NodePtr& source, uint32_t slot,
                   std::span<const Level> levels) {
  Shape sizes;
  for (const Level& level : levels) sizes.push_back(level.size);
  for (int64_t size : like.sizes()) sizes.push_back(size);
  Tensor zero = detach(expand(zeros({}, like.dtype(), like.device()), sizes));
  set_history(zero, source, slot);
  for (const Level& level : levels) zero = lift_samples(zero, level);
  return zero;
}

std::vector<Tensor> tensors_of(const Result& result) {
  if (auto* one = std::get_if<Tensor>(&result)) return {*one};
  if (auto* list = std::get_if<std::vector<Tensor>>(&result)) return *list;
  return {};
}

// A call whose arguments are split into values and tangents.
class DualCall {
 public:
  DualCall(const OpEntry& entry, std::span<const Value> args, const Level& level)
      : entry_(entry), level_(level), values_(args.begin(), args.end()), lists_(args.size()) {
    if (entry.is_view) viewed_ = std::get<const Tensor*>(args[0]);
    tensors_.resize(args.size());
    for (size_t i = 0; i < args.size(); ++i) {
      if (auto* one = std::get_if<const Tensor*>(&args[i])) {
        tensors_[i] = lowered(**one, level);
        values_[i] = &tensors_[i];
        add_tangent(&tensors_[i], **one);
      } else if (auto* list = std::get_if<TensorList>(&args[i])) {
        for (const Tensor& t : *list) lists_[i].push_back(lowered(t, level));
        for (size_t k = 0; k < list->size(); ++k) add_tangent(&lists_[i][k], (*list)[k]);
        values_[i] = TensorList(lists_[i]);
      }
    }
  }

  Result run() {
    bool is_open = std::ranges::any_of(open_levels(), [&](auto& l) { return l.id == level_.id; });
    Result result = call();
    if (!is_open || !entry_.differentiable || tangents_.empty()) return result;
    std::vector<Tensor> tangents =
        entry_.is_view ? tangents_of_view() : with_own_memory(tangents_of(result), result);
    Tensor base = viewed_ ? base_of_view(*viewed_, level_) : Tensor();
    return each_tensor(std::move(result), [&](const Tensor& t, size_t k) {
      return tangents[k].defined() ? lift_dual(t, tangents[k], level_, base) : t;
    });
  }

 private:
  struct Tangent {
    const Tensor* argument;
    Tensor tangent;
  };

  void add_tangent(const Tensor* argument, const Tensor& dual) {
    if (Tensor tangent = tangent_of(dual, level_); tangent.defined())
      tangents_.push_back({argument, tangent});
  }
  const Tensor* find_tangent(const Tensor* argument) const {
    for (const Tangent& t : tangents_)
      if (t.argument == argument) return &t.tangent;
    return nullptr;
  }

  Result call() {
    if (entry_.schema.args[0].type != ArgType::tensor_mutable) return entry_.call(values_.data());
    std::vector<Value> values = values_;  // the caller's stays as it is
    Tensor copy = clone(tensors_[0]);
    values[0] = &copy;
    return entry_.call(values.data());
  }

  // The same window on the tangent.
  std::vector<Tensor> tangents_of_view() {
    std::vector<Value> values = values_;
    Tensor tangent = *find_tangent(&tensors_[0]);
    values[0] = &tangent;
    if (entry_.schema.name == "_as_strided") {  // its window is placed in the memory of the value
      const Tensor& value = tensors_[0];
      if (!(tangent.strides() == value.strides()))
        tangent = needs::clone_strided(tangent, value.strides());
      values[3] = std::get<int64_t>(values[3]) - value.offset() + tangent.offset();
      values[5] = tangent.offset();
    }
    return rushlight::tensors_of(entry_.call(values.data()));
  }

  // What is no view may be written in place, and so may its tangent.
  std::vector<Tensor> with_own_memory(std::vector<Tensor> tangents, const Result& result) const {
    std::vector<Tensor> results = rushlight::tensors_of(result);
    for (size_t k = 0; k < tangents.size(); ++k) {
      Tensor& tangent = tangents[k];
      if (!tangent.defined()) continue;
      bool shares = may_self_overlap(tangent.sizes(), tangent.strides());
      for (const Tangent& t : tangents_)
        shares |=
            bottom(t.tangent).storage() == bottom(tangent).storage() && !results[k].is(*t.argument);
      if (shares) tangent = clone(tangent);
    }
    return tangents;
  }

  std::vector<Tensor> tangents_of(const Result& result) {
    OwnTapeGuard own_tape;
    std::vector<Tensor> results = rushlight::tensors_of(result);
    NodePtr source = NodePtr::adopt(new Source());
    // The slot of an edge is the number of its tangent.
    NodePtr node = entry_.make_node(values_.data(), false, [&](const Tensor& argument) {
      for (size_t i = 0; i < tangents_.size(); ++i)
        if (tangents_[i].argument == &argument) return Edge{source, uint32_t(i)};
      return Edge{};
    });
    entry_.keep_results(*node, result, false);
    bool diagonal = entry_.formula && !is_complex(results[0].dtype());
    for (const Tangent& t : tangents_) diagonal &= !is_complex(t.tangent.dtype());
    return diagonal ? std::vector{along_diagonal(*node, results[0])}
                    : twice(*node, source, results);
  }

  // The sum over the arguments of what the node gives for the tangent of each.
  Tensor along_diagonal(Node& node, const Tensor& result) {
    if (!is_differentiable(result.dtype())) return {};
    Tensor sum;
    std::vector<Edge> edges = node.edges;
    for (size_t e = 0; e < edges.size(); ++e) {
      if (!edges[e].node) continue;
      node.edges.assign(edges.size(), Edge{});
      node.edges[e] = edges[e];
      Tensor tangent = cast(tangents_[edges[e].slot].tangent, result.dtype());
      tangent = expand(tangent, result.sizes());
      std::vector<Tensor> parts(edges.size());
      needs::run_node(node, {&tangent, 1}, parts);
      if (!parts[e].defined()) continue;
      sum = sum.defined() ? sum + parts[e] : parts[e];
    }
    return sum;
  }

  // The batch levels that a gradient of the result can have samples at.
  std::vector<Level> levels_of_values() const {
    std::vector<Level> levels;
    for (const Level& level : open_levels()) {
      auto has = [&](const Tensor& t) { return involves(t, level); };
      bool found = std::ranges::any_of(tensors_, has);
      for (const std::vector<Tensor>& list : lists_) found |= std::ranges::any_of(list, has);
      if (level.kind == LevelKind::batch && found) levels.push_back(level);
    }
    return levels;
  }

  // The gradient of the gradient; zero where no gradient depends on the one of the result.
  std::vector<Tensor> twice(Node& node, const NodePtr& source, const std::vector<Tensor>& results) {
    std::vector<Tensor> directions, inputs, roots, grads, tangents(results.size());
    std::vector<Level> levels = levels_of_values();
    for (size_t k = 0; k < results.size(); ++k) {
      bool carries = results[k].defined() && is_differentiable(results[k].dtype());
      directions.push_back(carries ? source_like(results[k], source, uint32_t(k), levels)
                                   : Tensor());
      if (carries) inputs.push_back(directions[k]);
    }
    {
      GradModeGuard recorded(true);
      std::vector<Tensor> parts(node.edges.size());
      needs::run_node(node, directions, parts);
      for (size_t e = 0; e < parts.size(); ++e) {
        if (!node.edges[e].node || !parts[e].defined() || !parts[e].requires_grad()) continue;
        const Tensor& tangent = tangents_[node.edges[e].slot].tangent;
        roots.push_back(cast(sum_to(parts[e], tangent.sizes()), tangent.dtype()));
        grads.push_back(tangent);
      }
    }
    if (!std::ranges::any_of(node.edges, [](const Edge& edge) { return bool(edge.node); }))
      return tangents;
    std::vector<Tensor> found(inputs.size());
    BackwardOptions options{
        .create_graph = is_grad_enabled(), .accumulate = false, .newer_than = source->sequence};
    if (!roots.empty()) found = run_backward(roots, grads, inputs, options);
    for (size_t k = 0, i = 0; k < results.size(); ++k) {
      if (!directions[k].defined()) continue;
      tangents[k] = found[i].defined() ? found[i] : zeros_like(results[k]);
      ++i;
    }
    return tangents;
  }

  const OpEntry& entry_;
  const Level& level_;
  const Tensor* viewed_ = nullptr;  // by an op that returns a view
  std::vector<Value> values_;
  std::vector<Tensor> tensors_;
  std::vector<std::vector<Tensor>> lists_;
  std::vector<Tangent> tangents_;
};

}  // namespace

Result call_dual(const OpEntry& entry, std::span<const Value> args, const Level& level) {
  return DualCall(entry, args, level).run();
}

}  // namespace rushlight
