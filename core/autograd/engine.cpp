// Defines the walk. First a pass over the graph counts, for every node, the edges that will bring
// it gradients; then nodes run when their count reaches zero, newest first.
#include "core/autograd/engine.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <unordered_set>

#include "core/autograd/anomaly.h"
#include "core/autograd/call_watch.h"
#include "core/autograd/needs.h"
#include "core/autograd/node_stream.h"
#include "core/autograd/profiler.h"
#include "core/autograd/unpacked.h"
#include "core/tensor/fusion.h"
#include "core/tensor/lift.h"

namespace rushlight {
namespace {

// The state of one node in one walk.
struct Task {
  NodePtr node;
  int64_t missing = 0;        // edges that have not delivered yet
  bool needed = true;         // leads to an input that was asked for
  bool captured = false;      // makes an input that was asked for
  std::vector<Tensor> grads;  // by result of the node

  bool is_asked() const { return needed || captured; }
};

// Finds the task of a node: open addressing over the nodes' addresses.
class TaskTable {
 public:
  TaskTable() : slots_(64, -1) { tasks_.reserve(32); }

  // The task of `node`, made when it is new; `added` says which.
  Task& get(const NodePtr& node, bool& added) {
    size_t i = find(node.get());
    added = slots_[i] < 0;
    if (added) {
      slots_[i] = int64_t(tasks_.size());
      tasks_.emplace_back().node = node;
      if (tasks_.size() * 2 > slots_.size()) grow();
      return tasks_.back();
    }
    return tasks_[size_t(slots_[i])];
  }
  // The task of a node, or null when the walk does not reach it.
  Task* find_task(const Node* node) {
    int64_t at = slots_[find(node)];
    return at < 0 ? nullptr : &tasks_[size_t(at)];
  }
  std::vector<Task>& all() { return tasks_; }

 private:
  size_t find(const Node* node) const {
    size_t i = (reinterpret_cast<size_t>(node) >> 4) * 0x9E3779B97F4A7C15u >> 20;
    for (;; ++i) {
      i &= slots_.size() - 1;
      if (slots_[i] < 0 || tasks_[size_t(slots_[i])].node.get() == node) return i;
    }
  }
  void grow() {
    slots_.assign(slots_.size() * 4, -1);
    for (size_t t = 0; t < tasks_.size(); ++t) slots_[find(tasks_[t].node.get())] = int64_t(t);
  }

  std::vector<int64_t> slots_;
  std::vector<Task> tasks_;
};

// An input whose gradient is asked for: result `edge.slot` of `edge.node`.
struct Capture {
  Edge edge;
  Tensor grad;
};

std::atomic<int64_t> walk_count{0};

// Whether a gradient has samples of a vmap, which a tensor from outside has no place for.
bool is_batched(const Tensor& grad) {
  return is_lifted(grad) && level_of(grad).kind == LevelKind::batch;
}

// A gradient becomes, or is added to, the .grad of the tensor that keeps it.
void keep_grads(NodeHooks& hooks, const std::vector<Tensor>& grads) {
  static std::mutex sum_mutex;  // backward may run in several threads
  std::vector<RetainedGrad> retained;
  {
    std::lock_guard lock(hook_mutex);
    retained = hooks.retained;
  }
  for (const RetainedGrad& keeper : retained) {
    Tensor tensor = keeper.tensor->lock();
    const Tensor& grad = grads[keeper.slot];
    if (!tensor.defined() || !grad.defined()) continue;
    if (is_batched(grad) && !is_lifted(tensor)) continue;
    AutogradMeta& meta = get_meta(tensor);
    Tensor before;  // freed after the lock: a gradient may have a Python object
    std::lock_guard lock(sum_mutex);
    before = meta.grad();
    meta.set_grad(before.defined() ? needs::add(before, grad) : grad);
  }
}

void refuse_nan(const Node& node, const std::vector<Tensor>& input_grads) {
  if (!anomaly_mode.checks_nan) return;
  for (size_t i = 0; i < input_grads.size(); ++i) {
    if (!input_grads[i].defined() || input_grads[i].is_hollow()) continue;
    if (!needs::has_nan(input_grads[i])) continue;
    std::string line = describe_call_site(node.site);
    CHECK(false, "Function '", node.name(), "' returned nan values in its ", i, "th output.",
          line.empty() ? "" : " It is the backward of " + std::string(node.op()) + " at " + line);
  }
}

Tensor in_dtype(const Tensor& grad, const ResultInfo& info) {
  return grad.dtype() == info.dtype || info.any_dtype ? grad : needs::to_dtype(grad, info.dtype);
}

// Gradients of broadcast inputs are summed back to the input's shape, casts and moves undone.
Tensor conform(Tensor grad, const ResultInfo& info) {
  if (!(grad.sizes() == info.sizes)) grad = needs::sum_to(grad, info.sizes);
  grad = in_dtype(grad, info);
  if (grad.device() != info.device) grad = needs::to_device(grad, info.device);
  return grad;
}

class Walk {
 public:
  Walk(TensorList inputs, const BackwardOptions& options) : options_(options) {
    for (const Tensor& input : inputs) {
      Edge edge = gradient_edge(input);
      // A part of a leaf that was taken in no_grad mode requires grad, and has no history.
      CHECK(edge.node || gradient_edge_exists(input),
            "One of the differentiated Tensors does not require grad");
      captures_.push_back({edge, {}});
    }
    if (!captures_.empty()) ++Node::selective_walks;
  }
  ~Walk() {
    if (!captures_.empty()) --Node::selective_walks;
  }
  Walk(const Walk&) = delete;

  // The one that runs in this thread, the innermost if hooks run others.
  inline static thread_local Walk* current = nullptr;
  int64_t number() const { return number_; }
  void visit_running(const std::function<void(const Node&)>& visit) {
    for (const Task& task : table_.all())
      if (task.is_asked()) visit(*task.node);
  }

  bool will_run(const Node& node) {
    Task* task = table_.find_task(&node);
    CHECK(!task || !task->captured || options_.accumulate || !node.edges.empty(),
          "the node of a leaf does not run in autograd.grad(), which returns its gradient. Ask for "
          "another node, or call backward().");
    return task && task->is_asked();
  }

  bool asks(const Node& next) {
    Task* task = captures_.empty() ? nullptr : table_.find_task(&next);
    return !task || task->is_asked();
  }

  // The outermost one of this thread.
  Walk& first() { return outer_ ? outer_->first() : *this; }
  void call_when_done(std::function<void()> callback) { when_done_.push_back(std::move(callback)); }

  void add_root(const Tensor& root, Tensor grad) {
    Edge edge = gradient_edge(root);
    const Shape& sizes = edge.node->results[edge.slot].sizes;
    CHECK(grad.sizes() == sizes, "a tensor of shape ", root.sizes(), " had shape ", sizes,
          " when it was recorded. Its gradient needs that shape. Do not replace its .data.");
    bool added;
    roots_.push_back(edge.node);
    deliver(table_.get(edge.node, added), edge.slot, std::move(grad));
  }

  void run() {
    outer_ = std::exchange(current, this);
    struct Scope {
      Walk* outer;
      ~Scope() { current = outer; }
    } scope{outer_};
    NoAutocastGuard values_have_their_dtypes;
    count_edges();
    if (!captures_.empty()) mark_needed();
    std::vector<Task*> ready;
    for (Task& task : table_.all())
      if (task.missing == 0) ready.push_back(&task);
    auto older = [](const Task* a, const Task* b) { return a->node->sequence < b->node->sequence; };
    std::make_heap(ready.begin(), ready.end(), older);

    GradModeGuard mode(options_.create_graph);
    std::vector<Tensor> input_grads;
    while (!ready.empty()) {
      std::pop_heap(ready.begin(), ready.end(), older);
      Task& task = *ready.back();
      ready.pop_back();
      run_task(task, input_grads);
      for (size_t i = 0; i < task.node->edges.size(); ++i) {
        const Edge& edge = task.node->edges[i];
        Task* next = edge.node ? table_.find_task(edge.node.get()) : nullptr;
        if (!next) continue;
        if (i < input_grads.size() && input_grads[i].defined() && next->is_asked())
          deliver(*next, edge.slot,
                  conform(std::move(input_grads[i]), edge.node->results[edge.slot]));
        if (--next->missing == 0) {
          ready.push_back(next);
          std::push_heap(ready.begin(), ready.end(), older);
        }
      }
      task.grads.clear();
      input_grads.clear();
    }
    for (size_t i = 0; i < when_done_.size(); ++i) std::exchange(when_done_[i], nullptr)();
  }

  std::vector<Tensor> captured() {
    std::vector<Tensor> grads;
    for (Capture& capture : captures_) grads.push_back(std::move(capture.grad));
    return grads;
  }

 private:
  void count_edges() {
    std::vector<NodePtr> stack(roots_.begin(), roots_.end());
    std::sort(stack.begin(), stack.end(), [](auto& a, auto& b) { return a.get() < b.get(); });
    stack.erase(std::unique(stack.begin(), stack.end()), stack.end());
    while (!stack.empty()) {
      NodePtr node = std::move(stack.back());
      stack.pop_back();
      for (const Edge& edge : node->edges) {
        if (!edge.node || edge.node->sequence < options_.newer_than) continue;
        bool added;
        Task& task = table_.get(edge.node, added);
        ++task.missing;
        if (added) stack.push_back(edge.node);
      }
    }
  }

  // Post-order without recursion: every node after all nodes it leads to.
  void mark_needed() {
    std::vector<Task>& tasks = table_.all();
    for (Task& task : tasks) task.needed = false;
    for (const Capture& capture : captures_)
      if (Task* task = table_.find_task(capture.edge.node.get())) task->captured = true;
    std::vector<bool> seen(tasks.size());
    std::vector<std::pair<Task*, size_t>> path;
    for (Task& start : tasks) {
      if (seen[size_t(&start - tasks.data())]) continue;
      seen[size_t(&start - tasks.data())] = true;
      path.push_back({&start, 0});
      while (!path.empty()) {
        auto& [task, next_edge] = path.back();
        if (next_edge == task->node->edges.size()) {
          bool leads = task->is_asked();
          path.pop_back();
          if (!path.empty()) path.back().first->needed |= leads;
          continue;
        }
        const Edge& edge = task->node->edges[next_edge++];
        Task* next = edge.node ? table_.find_task(edge.node.get()) : nullptr;
        if (!next) continue;
        if (seen[size_t(next - tasks.data())]) {
          task->needed |= next->is_asked();
        } else {
          seen[size_t(next - tasks.data())] = true;
          path.push_back({next, 0});
        }
      }
    }
  }

  void deliver(Task& task, uint32_t slot, Tensor grad) {
    if (!grad.defined()) return;
    if (task.grads.size() <= slot)
      task.grads.resize(std::max<size_t>(slot + 1, task.node->results.size()));
    Tensor& sum = task.grads[slot];
    sum = sum.defined() ? needs::add(sum, grad) : std::move(grad);
  }

  void run_task(Task& task, std::vector<Tensor>& input_grads) {
    Node& node = *task.node;
    task.grads.resize(node.results.size());
    NodeHooks* hooks = node.hooks();
    if (hooks) {
      for (const auto& hook : hooks->tensor.all()) (*hook)(task.grads);
      keep_grads(*hooks, task.grads);
    }
    if (task.captured)
      for (Capture& capture : captures_)
        if (capture.edge.node.get() == &node) capture.grad = task.grads[capture.edge.slot];
    bool accumulates = task.captured && options_.accumulate && node.edges.empty();
    if (!task.needed && !accumulates) return;
    if (hooks)
      for (const auto& hook : hooks->pre.all()) (*hook)(task.grads);
    bool any =
        std::any_of(task.grads.begin(), task.grads.end(), [](auto& g) { return g.defined(); });
    if (!any && !node.runs_without_grads()) return;
    input_grads.resize(node.edges.size());
    if (node.fused && !fusion_) [[unlikely]]
      fusion_.emplace();
    try {
      std::optional<ProfiledScope> range;
      if (current_profile) [[unlikely]]
        range.emplace(node.name(), RangeKind::backward);
      NodeStream stream(node, task.grads);
      UnpackedScope unpacked;
      needs::run_node(node, task.grads, input_grads);
      stream.finish(input_grads);
      if (anomaly_mode.enabled) [[unlikely]]
        refuse_nan(node, input_grads);
    } catch (...) {
      if (!backward_failure)
        backward_failure = {node.name(), node.site, hooks ? hooks->metadata : nullptr};
      throw;
    }
    if (hooks)
      for (const auto& hook : hooks->post.all()) (*hook)(input_grads, task.grads);
    if (!options_.retain_graph) node.release_saved();
  }

  BackwardOptions options_;
  const int64_t number_ = walk_count++;
  TaskTable table_;
  std::vector<NodePtr> roots_;
  std::vector<Capture> captures_;
  std::optional<FusionScope> fusion_;             // from the first node on that was made in one
  Walk* outer_ = nullptr;                         // whose hooks or nodes began this one
  std::vector<std::function<void()>> when_done_;  // may grow while they are called
};

}  // namespace

bool Node::is_asked(size_t edge) const {
  return !Walk::current || Walk::current->asks(*edges[edge].node);
}
std::vector<Tensor> run_alone(Node& node, std::vector<Tensor> grads) {
  CHECK(grads.size() == node.results.size(), ErrorKind::kType, node.name(), " expected ",
        node.results.size(), " arguments, got ", grads.size(),
        " instead. Pass the gradient of each of its results, or None.");
  std::vector<Tensor> input_grads(node.edges.size());
  bool any = false;
  for (size_t i = 0; i < grads.size(); ++i) {
    if (!grads[i].defined()) continue;
    const Shape& sizes = node.results[i].sizes;
    CHECK(grads[i].sizes() == sizes, node.name(), ": result ", i, " has shape ", sizes,
          ", but its gradient has shape ", grads[i].sizes(), ".");
    grads[i] = conform(std::move(grads[i]), node.results[i]);
    any = true;
  }
  if (!any && !node.runs_without_grads()) return input_grads;
  UnpackedScope unpacked;
  needs::run_node(node, grads, input_grads);
  for (size_t i = 0; i < input_grads.size(); ++i) {
    const Edge& edge = node.edges[i];
    if (edge.node && input_grads[i].defined())
      input_grads[i] = conform(std::move(input_grads[i]), edge.node->results[edge.slot]);
  }
  return input_grads;
}

int64_t current_walk() { return Walk::current ? Walk::current->number() : -1; }
void visit_running(const std::function<void(const Node&)>& visit) {
  if (Walk::current) Walk::current->visit_running(visit);
}
bool will_run(const Node& node) {
  CHECK(Walk::current, "called outside of a backward. Call it in a hook.");
  return Walk::current->will_run(node);
}
void call_when_done(std::function<void()> callback) {
  CHECK(Walk::current, "Final callbacks can only be installed during backward pass.");
  Walk::current->first().call_when_done(std::move(callback));
}

Tensor root_gradient(TensorList roots, TensorList grads, size_t i) {
  const Tensor& root = roots[i];
  if (i < grads.size() && grads[i].defined()) {
    CHECK(grads[i].sizes() == root.sizes(), "Mismatch in shape: grad_output[", i,
          "] has a shape of ", grads[i].sizes(), " and output[", i, "] has a shape of ",
          root.sizes(), ".");
    CHECK(is_complex(grads[i].dtype()) == is_complex(root.dtype()),
          "For complex Tensors, both grad_output and output are required to have the same dtype. "
          "Mismatch in dtype: grad_output[",
          i, "] has a dtype of ", dtype_name(grads[i].dtype()), " and output[", i,
          "] has a dtype of ", dtype_name(root.dtype()), ".");
    Edge edge = gradient_edge(root);
    return edge.node ? in_dtype(grads[i], edge.node->results[edge.slot]) : grads[i];
  }
  CHECK(root.numel() == 1, "grad can be implicitly created only for scalar outputs, and output[", i,
        "] has shape ", root.sizes(), ". Pass gradient=..., or reduce it with .sum().");
  CHECK(!is_complex(root.dtype()), "grad can be implicitly created only for real scalar outputs");
  GradModeGuard no_grad(false);
  return needs::ones_like(root);
}

bool depends_on_more(TensorList roots, TensorList inputs) {
  std::vector<NodePtr> stack;
  std::unordered_set<Node*> seen, ends;
  for (const Tensor& input : inputs)
    if (Edge edge = gradient_edge(input); edge.node) ends.insert(edge.node.get());
  auto add = [&](const NodePtr& node) {
    if (node && seen.insert(node.get()).second) stack.push_back(node);
  };
  auto add_root = [&](auto& self, const Tensor& root) -> void {
    if (is_lifted(root)) {
      self(self, root.impl()->lift->value);
      if (root.impl()->lift->tangent.defined()) self(self, root.impl()->lift->tangent);
    } else {
      add(gradient_edge(root).node);
    }
  };
  for (const Tensor& root : roots) add_root(add_root, root);
  while (!stack.empty()) {
    NodePtr node = std::move(stack.back());
    stack.pop_back();
    bool is_end = ends.contains(node.get());
    if (node->edges.empty() && !is_end) return true;
    for (const Edge& edge : node->edges) {
      if (is_end && edge.node) return true;  // an input that depends on others
      add(edge.node);
    }
  }
  return false;
}

std::vector<Tensor> run_backward(TensorList roots, TensorList grads, TensorList inputs,
                                 const BackwardOptions& options) {
  auto is_hollow = [](const Tensor& t) { return t.is_hollow(); };
  if (std::ranges::any_of(roots, is_hollow) || std::ranges::any_of(inputs, is_hollow))
    if (std::ranges::any_of(roots, is_lifted) || std::ranges::any_of(inputs, is_lifted))
      return needs::run_lifted_backward(roots, grads, inputs, options);
  Walk walk(inputs, options);
  for (size_t i = 0; i < roots.size(); ++i) {
    CHECK(gradient_edge(roots[i]).node, "element ", i,
          " of tensors does not require grad and does not have a grad_fn. Nothing that it was "
          "computed from requires grad, or it was computed under no_grad, or detached.");
    walk.add_root(roots[i], root_gradient(roots, grads, i));
  }
  walk.run();
  return walk.captured();
}

}  // namespace rushlight
