// Owns what Python sees of the tape: backward, grad modes, hooks and nodes.
#include <algorithm>
#include <vector>

#include "bindings/python.h"
#include "core/autograd/engine.h"
#include "core/autograd/needs.h"
#include "core/autograd/node.h"

namespace rushlight::python {
namespace {

// ---- a Python callable inside a C++ hook
// ------------------------------------------------------------

// Shared by copies of the std::function; dropped with the lock held.
class Callable {
 public:
  explicit Callable(PyObject* function) : function_(Py_NewRef(function)) {}
  Callable(const Callable& other) : function_(other.function_) {
    AcquireGil gil;
    Py_INCREF(function_);
  }
  ~Callable() {
    if (!Py_IsInitialized()) return;
    AcquireGil gil;
    Py_DECREF(function_);
  }
  PyObject* get() const { return function_; }

 private:
  PyObject* function_;
};

Ref call_hook(const Callable& hook, const Tensor& grad) {
  Ref argument(wrap(grad));
  Ref result(PyObject_CallOneArg(hook.get(), argument.get()));
  if (!result) throw_python_error();
  return result;
}

// hook(grad) -> grad or None, for the gradient of result `slot` of a node.
NodePreHook tensor_hook(PyObject* function, uint32_t slot) {
  return [hook = Callable(function), slot](std::vector<Tensor>& grads) {
    if (grads.size() <= slot || !grads[slot].defined()) return;
    AcquireGil gil;
    Ref result = call_hook(hook, grads[slot]);
    if (result.get() == Py_None) return;
    const Tensor& replaced = expect_tensor(result.get(), "the result of a hook");
    CHECK(replaced.sizes() == grads[slot].sizes(), "a hook returned a gradient of shape ",
          replaced.sizes(), " for a tensor of shape ", grads[slot].sizes());
    grads[slot] = replaced;
  };
}

template <class Hooks>
bool remove_hook(Hooks& hooks, int64_t id) {
  for (auto it = hooks.begin(); it != hooks.end(); ++it) {
    if (it->first != id) continue;
    hooks.erase(it);
    return true;
  }
  return false;
}

PyObject* register_hook(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *self, *function;
    if (!PyArg_ParseTuple(args, "OO", &self, &function)) return nullptr;
    const Tensor& tensor = expect_tensor(self, "self");
    CHECK(gradient_edge_exists(tensor),
          "cannot register a hook on a tensor that doesn't require gradient");
    int64_t id = next_hook_id();
    if (NodePtr node = grad_fn_of(tensor))
      node->make_hooks().tensor_pre.push_back({id, tensor_hook(function, find_meta(tensor)->slot)});
    else get_meta(tensor).hooks.push_back({id, tensor_hook(function, 0)});
    return PyLong_FromLongLong(id);
  });
}

PyObject* register_post_accumulate_hook(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *self, *function;
    if (!PyArg_ParseTuple(args, "OO", &self, &function)) return nullptr;
    const Tensor& tensor = expect_tensor(self, "self");
    CHECK(tensor.requires_grad() && is_leaf(tensor),
          "post accumulate grad hooks cannot be registered on non-leaf tensors");
    int64_t id = next_hook_id();
    get_meta(tensor).post_accumulate_hooks.push_back(
        {id, [hook = Callable(function)](const Tensor& leaf) {
           AcquireGil gil;
           call_hook(hook, leaf);
         }});
    return PyLong_FromLongLong(id);
  });
}

PyObject* remove_tensor_hook(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject* self;
    long long id;
    if (!PyArg_ParseTuple(args, "OL", &self, &id)) return nullptr;
    const Tensor& tensor = expect_tensor(self, "self");
    AutogradMeta* meta = find_meta(tensor);
    if (!meta) Py_RETURN_NONE;
    remove_hook(meta->hooks, id) || remove_hook(meta->post_accumulate_hooks, id) ||
        (meta->grad_fn && meta->grad_fn->hooks &&
         remove_hook(meta->grad_fn->hooks->tensor_pre, id));
    Py_RETURN_NONE;
  });
}

PyObject* retain_grad(PyObject*, PyObject* self) {
  return guarded([&]() -> PyObject* {
    const Tensor& tensor = expect_tensor(self, "self");
    CHECK(gradient_edge_exists(tensor), "can't retain_grad on Tensor that has requires_grad=False");
    NodePtr node = grad_fn_of(tensor);
    AutogradMeta& meta = get_meta(tensor);
    if (!node || meta.retains_grad) Py_RETURN_NONE;
    meta.retains_grad = true;
    // The node must not own the tensor it made: the hook finds it only while it lives.
    TensorImpl* impl = tensor.impl();
    auto* owner = &meta;
    uint32_t slot = meta.slot;
    meta.retain_token = std::make_shared<char>();
    node->make_hooks().retain_grad.push_back(
        {slot, [impl, owner, slot,
                alive = std::weak_ptr<char>(meta.retain_token)](std::vector<Tensor>& grads) {
           if (alive.expired() || grads.size() <= slot || !grads[slot].defined() ||
               !impl->try_retain())
             return;
           Tensor keep(IntrusivePtr<TensorImpl>::adopt(impl));
           GradModeGuard mode(is_grad_enabled());
           owner->grad = owner->grad.defined() ? needs::add(owner->grad, grads[slot]) : grads[slot];
         }});
    Py_RETURN_NONE;
  });
}

// ---- nodes
// ------------------------------------------------------------------------------------------

struct PyNode {
  PyObject_HEAD NodePtr node;
};
extern PyTypeObject NodeType;

PyObject* wrap_node(const NodePtr& node) {
  if (!node) Py_RETURN_NONE;
  if (node->py_object) return Py_NewRef(static_cast<PyObject*>(node->py_object));
  PyObject* object = checked(NodeType.tp_alloc(&NodeType, 0));
  new (&reinterpret_cast<PyNode*>(object)->node) NodePtr(node);
  node->py_object = object;
  return object;
}
const NodePtr& node_of(PyObject* self) { return reinterpret_cast<PyNode*>(self)->node; }

void node_dealloc(PyObject* self) {
  node_of(self)->py_object = nullptr;
  reinterpret_cast<PyNode*>(self)->node.~NodePtr();
  Py_TYPE(self)->tp_free(self);
}
PyObject* node_name(PyObject* self, PyObject*) {
  return PyUnicode_FromString(node_of(self)->name().c_str());
}
PyObject* node_repr(PyObject* self) {
  return PyUnicode_FromFormat("<%s object at %p>", node_of(self)->name().c_str(),
                              node_of(self).get());
}
PyObject* next_functions(PyObject* self, void*) {
  return guarded([&] {
    const auto& edges = node_of(self)->edges;
    PyObject* tuple = checked(PyTuple_New(Py_ssize_t(edges.size())));
    for (size_t i = 0; i < edges.size(); ++i)
      PyTuple_SET_ITEM(tuple, Py_ssize_t(i),
                       Py_BuildValue("(NI)", wrap_node(edges[i].node), edges[i].slot));
    return tuple;
  });
}
PyObject* node_variable(PyObject* self, void*) {
  return guarded([&]() -> PyObject* {
    auto* accumulate = dynamic_cast<AccumulateGrad*>(node_of(self).get());
    Tensor leaf = accumulate ? accumulate->leaf() : Tensor();
    if (leaf.defined()) return wrap(leaf);
    PyErr_SetString(PyExc_AttributeError, "only AccumulateGrad of a live tensor has a variable");
    return nullptr;
  });
}
PyMethodDef node_methods[] = {{"name", node_name, METH_NOARGS, "The name of the node."}, {}};
PyGetSetDef node_attributes[] = {
    {"next_functions", next_functions, nullptr, "The nodes that gradients go to, with their slots.",
     nullptr},
    {"variable", node_variable, nullptr, "The leaf of an AccumulateGrad.", nullptr},
    {}};
PyTypeObject NodeType = {.ob_base = {PyObject_HEAD_INIT(nullptr) 0},
                         .tp_name = "rushlight.autograd.graph.Node",
                         .tp_basicsize = sizeof(PyNode),
                         .tp_dealloc = node_dealloc,
                         .tp_repr = node_repr,
                         .tp_flags = Py_TPFLAGS_DEFAULT,
                         .tp_doc = "One recorded op on the tape.",
                         .tp_methods = node_methods,
                         .tp_getset = node_attributes};

PyObject* grad_fn(PyObject*, PyObject* self) {
  return guarded([&] { return wrap_node(grad_fn_of(expect_tensor(self, "self"))); });
}

PyObject* detach_(PyObject*, PyObject* self) {
  return guarded([&]() -> PyObject* {
    const Tensor& tensor = expect_tensor(self, "self");
    AutogradMeta* meta = find_meta(tensor);
    CHECK(!meta || !meta->view, "Can't detach views in-place. Use detach() instead.");
    if (meta) meta->grad_fn = nullptr;
    tensor.impl()->requires_grad = false;
    Py_RETURN_NONE;
  });
}

// ---- backward
// -----------------------------------------------------------------------------------------

std::vector<Tensor> read_tensors(PyObject* object, const char* what) {
  std::vector<Tensor> tensors;
  if (object == Py_None) return tensors;
  Ref items(checked(PySequence_Fast(object, what)));
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i) {
    PyObject* item = PySequence_Fast_GET_ITEM(items.get(), i);
    tensors.push_back(item == Py_None ? Tensor() : expect_tensor(item, what));
  }
  return tensors;
}

// _run_backward(roots, grads, inputs, retain_graph, create_graph, accumulate) -> gradients of
// inputs
PyObject* run_backward_py(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *roots_in, *grads_in, *inputs_in;
    int retain_graph, create_graph, accumulate;
    if (!PyArg_ParseTuple(args, "OOOppp", &roots_in, &grads_in, &inputs_in, &retain_graph,
                          &create_graph, &accumulate))
      return nullptr;
    auto roots = read_tensors(roots_in, "tensors");
    auto grads = read_tensors(grads_in, "grad_tensors");
    auto inputs = read_tensors(inputs_in, "inputs");
    BackwardOptions options{bool(retain_graph), bool(create_graph), bool(accumulate)};
    std::vector<Tensor> result;
    {
      ReleaseGil release;
      result = run_backward(roots, grads, inputs, options);
      // Freeing the tape may take as long as walking it.
      if (!retain_graph) grads.clear();
    }
    return wrap_tuple(result);
  });
}

// ---- gates
// ----------------------------------------------------------------------------------------

// The identity on several tensors. Its backward hands all their gradients to a Python function at
// once and passes on what that returns: hooks of single tensors could not see them together.
class Gate final : public Node {
 public:
  Gate(PyObject* function, TensorList tensors) : function_(function) {
    for (const Tensor& tensor : tensors) edges.push_back(gradient_edge(tensor));
  }

  void backward(TensorList grads, std::span<Tensor> input_grads) override {
    AcquireGil gil;
    Ref argument(wrap_tuple(grads));
    Ref result(PyObject_CallOneArg(function_.get(), argument.get()));
    if (!result) throw_python_error();
    std::vector<Tensor> passed = read_tensors(result.get(), "what a backward hook returns");
    std::ranges::move(passed, input_grads.begin());
  }
  const char* op() const override { return "gate"; }

 private:
  Callable function_;
};

// _gate(function, tensors) -> the tensors, behind one gate
PyObject* gate(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *function, *tensors_in;
    if (!PyArg_ParseTuple(args, "OO", &function, &tensors_in)) return nullptr;
    std::vector<Tensor> tensors = read_tensors(tensors_in, "tensors");
    NodePtr node = NodePtr::adopt(new Gate(function, tensors));
    for (uint32_t slot = 0; slot < tensors.size(); ++slot) {
      Tensor passed = detach(tensors[slot]);
      set_view(passed, tensors[slot], ViewOrigin::one_of_many);
      set_history(passed, node, slot);
      tensors[slot] = passed;
    }
    return wrap_tuple(tensors);
  });
}

// ---- modes
// --------------------------------------------------------------------------------------------

PyObject* is_grad_enabled_py(PyObject*, PyObject*) { return PyBool_FromLong(grad_mode.enabled); }
PyObject* set_grad_enabled_py(PyObject*, PyObject* value) {
  int enabled = PyObject_IsTrue(value);
  if (enabled < 0) return nullptr;
  grad_mode.enabled = enabled;
  Py_RETURN_NONE;
}
PyObject* is_inference_py(PyObject*, PyObject*) { return PyBool_FromLong(grad_mode.inference); }
PyObject* set_inference_py(PyObject*, PyObject* value) {
  int enabled = PyObject_IsTrue(value);
  if (enabled < 0) return nullptr;
  grad_mode.inference = enabled;
  Py_RETURN_NONE;
}

PyMethodDef methods[] = {
    {"_run_backward", run_backward_py, METH_VARARGS, "Walks the tape from roots to leaves."},
    {"_gate", gate, METH_VARARGS, "Passes tensors on; a function may replace their gradients."},
    {"_register_hook", register_hook, METH_VARARGS, "Adds a hook on a tensor's gradient."},
    {"_register_post_accumulate_grad_hook", register_post_accumulate_hook, METH_VARARGS,
     "Adds a hook that runs when a leaf's .grad is complete."},
    {"_remove_hook", remove_tensor_hook, METH_VARARGS, "Removes a hook by its number."},
    {"_retain_grad", retain_grad, METH_O, "Keeps the gradient of a computed tensor in .grad."},
    {"_detach_", detach_, METH_O, "Cuts a tensor off its history, in place."},
    {"_grad_fn", grad_fn, METH_O, "The node that made a tensor, or None."},
    {"is_grad_enabled", is_grad_enabled_py, METH_NOARGS,
     "is_grad_enabled() -> bool\n\nWhether ops are recorded."},
    {"_set_grad_enabled", set_grad_enabled_py, METH_O,
     "Turns recording on or off for this thread."},
    {"is_inference_mode_enabled", is_inference_py, METH_NOARGS,
     "is_inference_mode_enabled() -> bool\n\nWhether inference_mode is on."},
    {"_set_inference_mode", set_inference_py, METH_O,
     "Turns inference mode on or off for this thread."},
    {}};

}  // namespace

void add_autograd(PyObject* module) {
  checked(PyType_Ready(&NodeType));
  checked(PyModule_AddObjectRef(module, "Node", reinterpret_cast<PyObject*>(&NodeType)));
  checked(PyModule_AddFunctions(module, methods));
}

}  // namespace rushlight::python
