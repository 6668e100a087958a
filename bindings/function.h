// Declares what the files of autograd.Function share: contexts and their nodes.
//
// Note [Contexts and nodes]
// A call of a Function has a node on the tape and a context, the Python object that forward and
// backward get as ctx and that y.grad_fn is. The node owns the context, which points back without
// counting. When the tape lets go of the node while Python still holds the context, they swap: the
// context owns the node then, until the node is handed out again. A context may be in a cycle
// with the tensors that own it (ctx.y = y): see Note [Hooks and the garbage collector].
#pragma once

#include <string>
#include <vector>

#include "bindings/hooks.h"
#include "bindings/node.h"
#include "core/autograd/saved_tensor.h"
#include "core/base/small_vector.h"

namespace rushlight::python {

struct PyFunction {
  PyNode base;
  bool owns_node;
  bool materialize_grads;
  PyObject* forward_class;  // the user's Function
  PyObject* needs_input_grad;
  // What forward asked for; read and dropped by apply().
  PyObject *to_save, *dirty_tensors, *non_differentiable, *saved_for_forward;
  PyObject* output_grad_dtypes;
};

inline PyFunction* function_of(PyObject* self) { return reinterpret_cast<PyFunction*>(self); }
inline PyObject* object_of(PyFunction* context) { return reinterpret_cast<PyObject*>(context); }

// What Function has before users override it; set by the package at import.
struct FunctionDefaults {
  PyObject *setup_context, *backward, *bind, *apply_lifted;
};
inline FunctionDefaults function_defaults;
inline PyObject* function_watcher = nullptr;  // is called with the class of each apply

extern PyTypeObject FunctionType;
// Function.apply of a class: calls forward, and records the call.
PyObject* apply_function(PyObject* cls, PyObject* const* items, Py_ssize_t count,
                         PyObject* keywords);

class FunctionNode final : public Node, public HoldsPython {
 public:
  explicit FunctionNode(PyFunction* context) : context_(context) { py_object = context; }
  ~FunctionNode() override;

  void backward(TensorList grads, std::span<Tensor> input_grads) override;
  void release_saved() override;
  bool runs_without_grads() const override { return true; }
  bool survives() override;
  // The context, while the node owns it.
  PyObject* held() const override {
    return context_ && !context_->owns_node ? object_of(context_) : nullptr;
  }
  const char* op() const override;
  std::string name() const override;

  // The context dies before the node: a backward would not know what to call.
  void forget_context() { context_ = nullptr, py_object = nullptr; }

  // All of these are read and written with the interpreter lock held.
  std::vector<SavedTensor> saved;
  bool is_released = false;
  std::vector<uint32_t> plain_outputs;    // slots of results that are no tensors
  SmallVector<int32_t, 6> edge_of_input;  // -1: no tensor

 private:
  void call_backward(TensorList grads, std::span<Tensor> input_grads);
  Ref incoming(const Tensor& grad, uint32_t slot) const;
  void read_gradients(PyObject* const* items, Py_ssize_t count, std::span<Tensor> input_grads);
  void check_gradient(const Tensor& grad, size_t edge) const;

  PyFunction* context_;
  PyObject* doomed_ = nullptr;  // the context, on its way out
};

inline FunctionNode& node_in(PyFunction* context) {
  return static_cast<FunctionNode&>(*context->base.node);
}
// Behind contexts that have lost theirs.
const NodePtr& gone_node();
// The node of a context, kept alive together with it.
NodePtr hold(PyFunction* context);
// Makes a context and its node, which owns it.
NodePtr make_context(PyTypeObject* type, PyObject* forward_class);
// The user's backward, under either name.
Ref user_backward(PyFunction* context);

}  // namespace rushlight::python
