// Owns Node, one recorded op on the tape, and the links from tensors to nodes.
//
// A Node is written once, when an op is recorded (ops/record.h), and read by the engine.
// Edges point from newer nodes to older ones, so the graph has no cycles.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "core/autograd/grad_mode.h"
#include "core/autograd/hooks.h"
#include "core/base/call_site.h"
#include "core/base/lazy_ptr.h"
#include "core/base/spin_lock.h"
#include "core/device/cuda_stream.h"
#include "core/tensor/tensor.h"

namespace rushlight {

class Node;
class SavedTensor;
using NodePtr = IntrusivePtr<Node>;

// Where a gradient goes: input `slot` of `node`. An empty node wants none.
struct Edge {
  NodePtr node;
  uint32_t slot = 0;
};

// What the engine must know of a forward result to check the gradient that arrives for it.
struct ResultInfo {
  Shape sizes;
  DType dtype = DType::float32;
  Device device;
  bool any_dtype = false;  // a gradient keeps its own
};

class Node : public RefCounted {
 public:
  Node();
  virtual ~Node() = default;
  static void destroy(Node* node);

  // Computes the gradient for every edge: fills `input_grads[i]` for edges()[i] that has a node.
  // `grads[k]` belongs to result k and is undefined where nothing flowed.
  virtual void backward(TensorList grads, std::span<Tensor> input_grads) = 0;
  // Frees saved tensors after a backward that does not retain the graph.
  virtual void release_saved() {}
  // Whether backward() is called when no gradient arrived, too.
  virtual bool runs_without_grads() const { return false; }
  // Called when the last reference is gone: whether the node took a new one and lives on.
  virtual bool survives() { return false; }
  // Shows what is kept for backward, with the name of the argument or result that it is.
  using SavedVisitor = std::function<void(std::string_view name, const SavedTensor&)>;
  virtual void visit_saved(const SavedVisitor&) const {}
  // The op that was recorded: "add".
  virtual const char* op() const = 0;
  // The op as PyTorch prints it: "AddBackward0".
  virtual std::string name() const;
  // The op by the name that PyTorch's tape has for it.
  virtual const char* named_for() const { return op(); }

  std::vector<Edge> edges;
  std::vector<ResultInfo> results;
  // Grows with time of creation on a thread. A walk takes the greatest of the nodes that are ready.
  uint64_t sequence;
  static constexpr uint64_t kRunsLast = 0;
  bool fused;  // made in a FusionScope: its gradients are deferred, too
  CallSite site;
  cuda::Stream stream;  // see node_stream.h
  // Hooks are rare: one pointer, null when there are none.
  NodeHooks* hooks() const { return hooks_.get(); }
  NodeHooks& make_hooks() {
    return hooks_.get_or([] { return new NodeHooks; });
  }
  // The Python object of this node, if one was made; borrowed, managed by the bindings.
  void* py_object = nullptr;

  bool wants(size_t edge) const { return bool(edges[edge].node); }
  // Whether the walk that runs backward() needs the gradient of an edge. One that was asked for
  // some inputs does not need what leads to others.
  bool asks(size_t edge) const {
    return wants(edge) && (selective_walks.load(std::memory_order_relaxed) == 0 || is_asked(edge));
  }
  // How many walks run, in all threads, that were asked for some inputs.
  inline static std::atomic<int> selective_walks = 0;

 private:
  bool is_asked(size_t edge) const;  // by this thread's walk; defined by the engine

  LazyPtr<NodeHooks> hooks_;
};

// How a view came to be, which decides whether it may be written in place.
enum class ViewOrigin : uint8_t {
  normal,
  made_without_grad,
  made_in_inference,
  one_of_many,
  in_function
};

struct ViewInfo {
  Tensor base;  // never itself a view
  ViewOrigin origin = ViewOrigin::normal;
  uint32_t version = 0;  // of the storage when grad_fn was made; older means grad_fn is stale
};

class AccumulateGrad;

// What autograd keeps with a tensor.
class AutogradMeta : public AutogradMetaBase {
 public:
  ~AutogradMeta() override;

  // What backward collected. Other threads may read and replace it meanwhile.
  Tensor grad() const {
    std::lock_guard lock(grad_lock_);
    return grad_;
  }
  void set_grad(Tensor grad) {  // the one before is freed without the lock
    std::lock_guard lock(grad_lock_);
    std::swap(grad_, grad);
  }

  NodePtr grad_fn;
  uint32_t slot = 0;  // which result of grad_fn
  LazyPtr<AccumulateGrad, ReleaseReference<AccumulateGrad>> accumulator;
  std::unique_ptr<ViewInfo> view;
  std::shared_ptr<TensorLink> retains;  // set when a result keeps its gradient
  // Hooks for gradients hang on the node they enter; these are for a leaf's own .grad.
  HookList<LeafHook> leaf_hooks;

 private:
  Tensor grad_;
  mutable SpinLock grad_lock_;
};

// The end of the tape: adds what arrives to the .grad of a leaf.
// The leaf owns it.
class AccumulateGrad final : public Node {
 public:
  explicit AccumulateGrad(TensorImpl* leaf);
  static void destroy(AccumulateGrad* node) { Node::destroy(node); }

  void backward(TensorList grads, std::span<Tensor> input_grads) override;
  const char* op() const override { return "accumulate_grad"; }
  std::string name() const override { return "AccumulateGrad"; }

  TensorLink leaf;

 private:
  std::mutex sum_mutex_;  // backward may run in several threads
};

// The meta of a tensor, made on demand, or null.
inline AutogradMeta* find_meta(const Tensor& tensor) {
  return static_cast<AutogradMeta*>(tensor.impl()->autograd.get());
}
AutogradMeta& get_meta(const Tensor& tensor);

// Where the gradient of this tensor goes: its grad_fn, or the accumulator of a leaf, or nowhere.
Edge gradient_edge(const Tensor& tensor);
// Whether gradient_edge() leads anywhere.
inline bool gradient_edge_exists(const Tensor& tensor) {
  if (tensor.requires_grad()) return true;
  AutogradMeta* meta = find_meta(tensor);
  return meta && meta->view && meta->view->base.requires_grad();
}
// The end of the tape for this leaf, made on demand, whether or not it wants a gradient now.
AccumulateGrad& accumulator_of(const Tensor& leaf);
// The node that made the tensor; rebuilt for a view whose base was written. Null for leaves.
NodePtr grad_fn_of(const Tensor& tensor);
inline bool is_leaf(const Tensor& tensor) {
  return !gradient_edge_exists(tensor) || !grad_fn_of(tensor);
}

// Marks `result` as result `slot` of `node`.
void set_history(const Tensor& result, const NodePtr& node, uint32_t slot);

// Keeps the gradient of a result in its .grad, now and after writes in place; a leaf does anyway.
void retain_grad(const Tensor& tensor);

// Ties a fresh view to the tensor it looks into.
void set_view(const Tensor& view, const Tensor& input, ViewOrigin origin);
// Makes a view into a tensor that nobody else has a tensor of its own: what an op returns that
// computes elements and then arranges them.
void adopt_base(const Tensor& view);
// The base of a view, or an undefined tensor.
Tensor view_base(const Tensor& tensor);

void set_requires_grad(const Tensor& tensor, bool requires_grad);
// The tensor without its history; shares storage and versions.
Tensor detach(const Tensor& tensor);

// See Note [Writing in place].
// Refuses writes that would break the tape. `records` says whether the op will be recorded; `fills`
// is for check_writable().
void check_inplace(const Tensor& tensor, bool records, bool fills = false);
// The part of this that also holds where no element is written, but the layout changes.
void check_rewrite(const Tensor& tensor, bool records);
// Makes `node` (slot 0) the history of a tensor that was just written, and of its base.
void rewrite_history(const Tensor& tensor, const NodePtr& node);

}  // namespace rushlight
