// Defines the links between tensors and nodes, and the rules for writing in place.
//
// Note [Writing in place]
// An op that overwrites a tensor becomes the tensor's new history. When the tensor is a view, the
// base changed too: its new history is CopySlices, which runs the op's gradient on the window and
// passes the rest through. Every other view of that base now has a stale grad_fn; ViewInfo
// remembers the version it was made at, and grad_fn_of() makes a new one when that is old.
#include "core/autograd/node.h"

#include <algorithm>

#include "core/autograd/anomaly.h"
#include "core/autograd/needs.h"
#include "core/autograd/saving_hooks.h"
#include "core/autograd/view_parent.h"
#include "core/device/cuda.h"
#include "core/tensor/fusion.h"
#include "core/tensor/lift.h"

namespace rushlight {
namespace {

thread_local uint64_t next_sequence = Node::kRunsLast + 1;

// Where a window lies in the storage; enough to rebuild a view and its gradient. When one of base
// and view is complex and the other is not, both are measured in parts: real numbers, two for each
// complex one.
struct Geometry {
  Shape sizes, strides;
  int64_t offset;
  bool joins_parts;  // the tensor is complex, but measured in parts

  Geometry(const Tensor& t, const Tensor& other)
      : sizes(t.sizes()),
        strides(t.strides()),
        offset(t.offset()),
        joins_parts(is_complex(t.dtype()) && !is_complex(other.dtype())) {
    if (!joins_parts) return;
    for (int64_t& stride : strides) stride *= 2;
    sizes.push_back(2);
    strides.push_back(1);
    offset *= 2;
  }
  // A tensor of this geometry's kind as it is measured, and back.
  Tensor measured(const Tensor& t) const { return joins_parts ? needs::view_as_real(t) : t; }
  Tensor restored(const Tensor& t) const { return joins_parts ? needs::view_as_complex(t) : t; }
};

// The gradient of looking through a window: what flows back fills the window, zero elsewhere.
class WindowBackward final : public Node {
 public:
  WindowBackward(const Tensor& base, const Tensor& view) : base_(base, view), view_(view, base) {}

  void backward(TensorList grads, std::span<Tensor> input_grads) override {
    if (!asks(0)) return;
    input_grads[0] = base_.restored(
        needs::as_strided_backward(view_.measured(grads[0]), base_.sizes, base_.strides,
                                   base_.offset, view_.strides, view_.offset));
  }
  const char* op() const override { return "as_strided"; }

 private:
  Geometry base_, view_;
};

// The history of a base whose window was written by `write`.
class CopySlices final : public Node {
 public:
  CopySlices(const Tensor& base, const Tensor& view, NodePtr write)
      : base_(base, view), view_(view, base), write_(std::move(write)) {
    edges.resize(write_->edges.size());
    edges[0] = gradient_edge(base);
    for (size_t i = 1; i < edges.size(); ++i) edges[i] = write_->edges[i];
  }

  void backward(TensorList grads, std::span<Tensor> input_grads) override {
    Tensor whole = needs::clone_strided(base_.measured(grads[0]), base_.strides);
    Tensor window =
        needs::as_strided(whole, view_.sizes, view_.strides, view_.offset - base_.offset);
    Tensor window_grad = view_.restored(needs::clone(window));
    write_->backward({&window_grad, 1}, input_grads);
    if (!asks(0)) return;
    needs::copy_(window, input_grads[0].defined() ? view_.measured(input_grads[0])
                                                  : needs::zeros_like(window));
    input_grads[0] = base_.restored(whole);
  }
  void release_saved() override { write_->release_saved(); }
  const char* op() const override { return write_->op(); }
  std::string name() const override { return "CopySlices"; }

 private:
  Geometry base_, view_;
  NodePtr write_;
};

ResultInfo info_of(const Tensor& t) { return {t.sizes(), t.dtype(), t.device()}; }

// A tensor keeps the gradient of what it holds now: after a write, that of the new history.
void move_retained(const AutogradMeta& meta, const NodePtr& from) {
  std::lock_guard lock(hook_mutex);
  if (from && from->hooks())
    std::erase_if(from->hooks()->retained, [&](auto& r) { return r.tensor == meta.retains; });
  if (meta.grad_fn) meta.grad_fn->make_hooks().retained.push_back({meta.slot, meta.retains});
}

// A copy of a gradient, laid out in memory like its leaf.
Tensor clone_for(const Tensor& leaf, const Tensor& grad) {
  bool follows = !grad.is_sparse() && !leaf.is_sparse() && leaf.is_dense();
  bool same = grad.strides() == leaf.strides();
  return follows && !same ? needs::clone_strided(grad, leaf.strides()) : needs::clone(grad);
}

// Whether a write is to the view itself, or was to its base or another view of that.
enum class WriteTo : uint8_t { view, base };

// Refuses views whose history cannot follow a write.
void check_origin(const AutogradMeta& meta, WriteTo to) {
  ViewOrigin origin = meta.view->origin;
  if (origin == ViewOrigin::normal) return;
  const char* what = to == WriteTo::view ? "is being modified inplace"
                                         : "its base or another view of its base has been "
                                           "modified inplace";
  CHECK(origin != ViewOrigin::one_of_many, "the tensor is a view and ", what,
        ". This view is the output of a function that returns multiple views. Such functions do "
        "not allow the output views to be modified inplace. You should replace the inplace "
        "operation by an out-of-place one.");
  if (origin == ViewOrigin::in_function) {  // the user's own backward stands behind it
    std::string name = meta.grad_fn
                           ? "Output " + std::to_string(meta.slot) + " of " + meta.grad_fn->op()
                           : "The tensor";
    CHECK(false, name, " is a view and ", what,
          ". This view was created inside a custom Function (or because an input was returned "
          "as-is) and the autograd logic to handle view+inplace would override the custom backward "
          "associated with the custom Function, leading to incorrect gradients. This behavior is "
          "forbidden. You can fix this by cloning the output of the custom Function.");
  }
  bool inference = origin == ViewOrigin::made_in_inference;
  CHECK(false, "A view was created in ", inference ? "inference mode" : "no_grad mode", " and ",
        what, inference ? " in normal mode" : " with grad mode enabled",
        ". Given that this use case is ambiguous and error-prone, it is forbidden. Make the view "
        "and the write both inside ",
        inference ? "inference_mode" : "no_grad", ", or both outside.");
}

}  // namespace

Node::Node()
    : sequence(next_sequence++),
      fused(is_fusing()),
      site(current_call_site),
      stream(cuda::current_stream(cuda::current_device())) {
  if (anomaly_mode.enabled && anomaly_mode.note_traceback) [[unlikely]]
    anomaly_mode.note_traceback(*this);
}

std::string Node::name() const {
  std::string name;
  bool upper = true;
  for (const char* c = named_for(); *c; ++c) {
    if (*c != '_') name += upper ? char(toupper(*c)) : *c;
    upper = *c == '_';
  }
  return name + "Backward0";
}

// A node owns older nodes through its edges: a long chain must not be freed by recursion.
void Node::destroy(Node* node) {
  if (node->survives()) return;
  thread_local std::vector<Node*> pending;
  thread_local bool draining = false;
  pending.push_back(node);
  if (draining) return;
  draining = true;
  while (!pending.empty()) {
    Node* next = pending.back();
    pending.pop_back();
    delete next;
  }
  draining = false;
}

AutogradMeta::~AutogradMeta() {
  if (accumulator) accumulator->leaf.forget();
  if (retains) retains->forget();
}

AccumulateGrad::AccumulateGrad(TensorImpl* impl) : leaf(impl) {
  sequence = UINT64_MAX;  // runs as soon as its gradient is complete
  results.push_back({impl->sizes, impl->dtype, impl->storage->device()});
}

void AccumulateGrad::backward(TensorList grads, std::span<Tensor>) {
  Tensor variable = leaf.lock();
  if (!variable.defined() || !variable.requires_grad() || !grads[0].defined()) return;
  CHECK(!is_lifted(grads[0]),
        "backward() cannot add to .grad inside vmap or forward-mode differentiation. Use "
        "torch.func.grad or torch.autograd.grad.");
  AutogradMeta& meta = get_meta(variable);
  Tensor before;  // freed after the lock: a gradient may have a Python object
  {
    std::lock_guard lock(sum_mutex_);
    const Tensor& grad = grads[0];
    before = meta.grad();
    if (!before.defined()) {
      // One owner: the engine's buffer. Anyone else might see a write to it, but for deferred ops,
      // which are settled before.
      size_t owners = grad.storage()->use_count() - deferred_readers(*grad.storage());
      bool unshared = grad.impl()->use_count() == 1 && owners == 1;
      bool lies_right = grad.strides() == variable.strides() || !grad_mode.keeps_grad_layout;
      Tensor own = unshared && grad.is_dense() && lies_right ? grad : clone_for(variable, grad);
      meta.set_grad(is_grad_enabled() ? own : detach(own));
    } else if (is_grad_enabled()) {
      meta.set_grad(needs::add(before, grad));
    } else if (before.is_sparse() && !grad.is_sparse()) {  // their sum is dense
      meta.set_grad(detach(needs::add(grad, before)));
    } else {
      needs::add_(before, grad);
    }
  }
  for (const auto& hook : meta.leaf_hooks.all()) (*hook)(variable);
}

AutogradMeta& get_meta(const Tensor& tensor) {
  auto& meta = tensor.impl()->autograd.get_or([] { return new AutogradMeta; });
  return static_cast<AutogradMeta&>(meta);
}

NodePtr grad_fn_of(const Tensor& tensor) {
  if (is_lifted(tensor)) return grad_fn_of(bottom(tensor));
  AutogradMeta* meta = find_meta(tensor);
  if (!meta) return nullptr;
  ViewInfo* view = meta->view.get();
  if (!view || !(view->base.requires_grad() || meta->grad_fn)) return meta->grad_fn;
  uint32_t version = tensor.storage()->version();
  if (view->version == version) return meta->grad_fn;
  NodePtr base_fn = grad_fn_of(view->base);
  check_origin(*meta, WriteTo::base);
  // A write that was not recorded leaves the history as it is.
  if (!base_fn && meta->grad_fn && view->base.requires_grad()) return meta->grad_fn;
  NodePtr before = meta->grad_fn;
  auto node = NodePtr::adopt(new WindowBackward(view->base, tensor));
  node->edges.push_back(gradient_edge(view->base));
  node->results.push_back(info_of(tensor));
  meta->grad_fn = node;
  meta->slot = 0;
  view->version = version;
  tensor.impl()->requires_grad = true;
  if (meta->retains) move_retained(*meta, before);
  return node;
}

Edge gradient_edge(const Tensor& tensor) {
  if (is_lifted(tensor)) return gradient_edge(bottom(tensor));
  if (!gradient_edge_exists(tensor)) return {};
  if (NodePtr node = grad_fn_of(tensor)) return {node, find_meta(tensor)->slot};
  if (!tensor.requires_grad()) return {};  // a view from before its base wanted gradients
  return {NodePtr::share(&accumulator_of(tensor)), 0};
}

AccumulateGrad& accumulator_of(const Tensor& leaf) {
  return get_meta(leaf).accumulator.get_or([&] { return new AccumulateGrad(leaf.impl()); });
}

void set_history(const Tensor& result, const NodePtr& node, uint32_t slot) {
  AutogradMeta& meta = get_meta(result);
  NodePtr before = std::exchange(meta.grad_fn, node);
  meta.slot = slot;
  if (meta.retains) [[unlikely]]
    move_retained(meta, before);
  if (meta.view) meta.view->version = result.storage()->version();
  result.impl()->requires_grad = true;
  if (node->results.size() <= slot) node->results.resize(slot + 1);
  node->results[slot] = info_of(result);
}

void retain_grad(const Tensor& tensor) {
  CHECK(gradient_edge_exists(tensor), "can't retain_grad on Tensor that has requires_grad=False");
  if (is_leaf(tensor)) return;
  AutogradMeta& meta = get_meta(tensor);
  if (meta.retains) return;
  meta.retains = std::make_shared<TensorLink>(tensor.impl());
  move_retained(meta, nullptr);
}

namespace {

class MetaWithParent final : public AutogradMeta {
 public:
  MetaWithParent(Tensor parent_in, int depth_in) : parent(std::move(parent_in)), depth(depth_in) {}
  Tensor parent;
  const int depth;  // of the chain of parents, which is freed by recursion
};

bool in_forward_mode() {
  return std::ranges::any_of(open_levels(), [](auto& l) { return l.kind == LevelKind::dual; });
}

void note_parent(const Tensor& view, const Tensor& parent) {
  auto* before = dynamic_cast<MetaWithParent*>(find_meta(parent));
  int depth = before ? before->depth + 1 : 1;
  if (depth <= 64) view.impl()->autograd.get_or([&] { return new MetaWithParent(parent, depth); });
}

}  // namespace

Tensor* find_view_parent(const Tensor& view) {
  auto* meta = dynamic_cast<MetaWithParent*>(find_meta(view));
  return meta && meta->view ? &meta->parent : nullptr;
}

void set_view(const Tensor& view, const Tensor& input, ViewOrigin origin) {
  if (view.impl()->inference) return;
  AutogradMeta* input_meta = find_meta(input);
  if (input_meta && input_meta->view && in_forward_mode()) note_parent(view, input);
  auto info = std::make_unique<ViewInfo>();
  if (input_meta && input_meta->view) {
    info->base = input_meta->view->base;
    info->origin = origin == ViewOrigin::normal ? input_meta->view->origin : origin;
  } else {
    info->base = input;
    info->origin = origin;
  }
  info->version = view.storage()->version();
  get_meta(view).view = std::move(info);
}

void adopt_base(const Tensor& view) {
  AutogradMeta* meta = find_meta(view);
  if (!meta || !meta->view || meta->view->base.impl()->use_count() > 1) return;
  grad_fn_of(view);  // made again if it is old
  meta->view.reset();
}

Tensor view_base(const Tensor& tensor) {
  AutogradMeta* meta = find_meta(tensor);
  return meta && meta->view ? meta->view->base : Tensor();
}

void set_requires_grad(const Tensor& tensor, bool requires_grad) {
  CHECK(is_leaf(tensor) || requires_grad,
        "you can only change requires_grad flags of leaf variables. If you want to use a computed "
        "variable in a subgraph that doesn't require differentiation use var_no_grad = "
        "var.detach().");
  CHECK(!requires_grad || is_differentiable(tensor.dtype()),
        "only Tensors of floating point and complex dtype can require gradients, got ",
        dtype_name(tensor.dtype()));
  CHECK(!requires_grad || !tensor.impl()->inference || grad_mode.inference,
        "Setting requires_grad=True on inference tensor outside InferenceMode is not allowed.");
  if (is_lifted(tensor)) set_requires_grad(tensor.impl()->lift->value, requires_grad);
  tensor.impl()->requires_grad = requires_grad;
}

Tensor detach(const Tensor& tensor) {
  if (!is_lifted(tensor)) return shallow_copy(tensor);
  const Lift& lift = *tensor.impl()->lift;
  if (lift.level.kind == LevelKind::dual) return detach(lift.value);
  return lift_samples(detach(lift.value), lift.level);
}

void check_inplace(const Tensor& tensor, bool records, bool fills) {
  check_writable(tensor, fills);
  if (saving_hooks) [[unlikely]]
    saving_hooks->before_write(tensor);
  check_rewrite(tensor, records);
}

void check_rewrite(const Tensor& tensor, bool records) {
  if (tensor.impl()->inference && !grad_mode.inference)
    CHECK(false,
          "Inplace update to inference tensor outside InferenceMode is not allowed. You can "
          "make a clone to get a normal tensor before doing inplace update.");
  if (!is_grad_enabled()) return;
  AutogradMeta* meta = find_meta(tensor);
  ViewInfo* view = meta ? meta->view.get() : nullptr;
  bool leaf_wants_grad = tensor.requires_grad() && is_leaf(tensor);
  CHECK(!leaf_wants_grad || (view && view->base.requires_grad()),
        "a leaf Variable that requires grad is being used in an in-place operation. Wrap the write "
        "in torch.no_grad(), or write to a clone.");
  if (!view || !(records || view->base.requires_grad())) return;
  if (view->origin == ViewOrigin::in_function) check_origin(*meta, WriteTo::view);
  CHECK(!(gradient_edge_exists(tensor) && is_leaf(view->base)),
        "a view of a leaf Variable that requires grad is being used in an in-place operation. Wrap "
        "the write in torch.no_grad(), or write to a clone.");
  check_origin(*meta, WriteTo::view);
}

void rewrite_history(const Tensor& tensor, const NodePtr& node) {
  AutogradMeta& meta = get_meta(tensor);
  if (!meta.view) return set_history(tensor, node, 0);
  node->results.assign(1, info_of(tensor));
  Tensor base = meta.view->base;
  auto slices = NodePtr::adopt(new CopySlices(base, tensor, node));
  set_history(base, slices, 0);
  // Rebuilt from the base's new history when somebody asks.
  NodePtr before = std::exchange(meta.grad_fn, nullptr);
  meta.view->version = tensor.storage()->version() - 1;
  tensor.impl()->requires_grad = true;
  if (!meta.retains) return;
  move_retained(meta, before);
  grad_fn_of(tensor);  // now: backward only finds what hangs on a node
}

}  // namespace rushlight
