// Owns backward: the walk over the tape from results to leaves.
//
// Iterative, so that the depth of a graph is bounded by memory only; reentrant; any number of
// threads may run it at once on graphs that share nodes.
#pragma once

#include <functional>
#include <optional>

#include "core/autograd/node.h"

namespace rushlight {

struct BackwardOptions {
  bool retain_graph = false;
  bool create_graph = false;
  bool accumulate = true;  // false: return gradients of `inputs`, leave .grad alone
  // Nodes that are older lead to no input, and are left out: Node::sequence.
  uint64_t newer_than = 0;
};

// Runs the tape from `roots`, each with its gradient (undefined: ones, for a scalar root).
// With inputs, only the way to them is walked. Returns their gradients when not accumulating;
// an input that the roots do not depend on gets an undefined one.
std::vector<Tensor> run_backward(TensorList roots, TensorList grads, TensorList inputs,
                                 const BackwardOptions& options);

// Runs the backward of one node alone, without its hooks, on gradients of its results. Returns
// what would flow along its edges.
std::vector<Tensor> run_alone(Node& node, std::vector<Tensor> grads);

// The walk that runs in this thread, -1 outside of one: each has another number.
int64_t current_walk();
// Calls `visit` for every node that this walk comes by, and so calls the hooks of.
void visit_running(const std::function<void(const Node&)>& visit);
// Whether this walk runs a node, or takes its gradient for an input that was asked for.
bool will_run(const Node& node);
// Calls `callback` when the walk that runs in this thread, the outermost if hooks run others, has
// run all its nodes.
void call_when_done(std::function<void()> callback);

// The node whose backward raised last in this thread, for the bindings to name.
struct BackwardFailure {
  std::string node;
  CallSite site;
  std::shared_ptr<void> metadata;  // of NodeHooks
};
inline thread_local std::optional<BackwardFailure> backward_failure;
// The gradient of root i: the one given, whose sizes are checked, or one for a single element.
Tensor root_gradient(TensorList roots, TensorList grads, size_t i);

// Whether derivatives of the roots by other tensors than the inputs could be asked for.
bool depends_on_more(TensorList roots, TensorList inputs);

}  // namespace rushlight
