// Defines the hooks that Python hangs on tensors and nodes.
#include "bindings/hooks.h"

#include <string>
#include <unordered_set>

#include "core/autograd/engine.h"

namespace rushlight::python {
namespace {

// ---- calling ------------------------------------------------------------------------------------

Ref call(const Held& function, PyObject* argument, PyObject* second = nullptr) {
  Ref result(stay_at_exit(
      [&] { return PyObject_CallFunctionObjArgs(function.get(), argument, second, nullptr); }));
  if (!result) throw_python_error();
  return result;
}

std::string name_of(const Held& hook) {
  Ref name(PyObject_GetAttrString(hook.get(), "__name__"));
  const char* text = name ? PyUnicode_AsUTF8(name.get()) : nullptr;
  PyErr_Clear();
  return text ? text : "<unknown>";
}

// Puts what a hook returned in the place of a gradient.
void replace(Tensor& grad, PyObject* result, const Held& hook) {
  if (result == Py_None) {
    grad = {};
    return;
  }
  CHECK(is_tensor(result), ErrorKind::kType, "expected Variable, but hook returned '",
        Py_TYPE(result)->tp_name, "'");
  const Tensor& replaced = unwrap(result);
  CHECK(grad.defined(), "can't replace a None gradient with a non-None value");
  CHECK(replaced.dtype() == grad.dtype() && replaced.device() == grad.device(), "hook '",
        name_of(hook), "' has changed the type of value (was ", dtype_name(grad.dtype()), " on ",
        grad.device(), " got ", dtype_name(replaced.dtype()), " on ", replaced.device(), ")");
  CHECK(replaced.sizes() == grad.sizes(), "hook '", name_of(hook),
        "' has changed the size of value: the gradient is ", grad.sizes(), ", it returned ",
        replaced.sizes());
  grad = replaced;
}

void replace_all(std::vector<Tensor>& grads, PyObject* result, const Held& hook) {
  if (result == Py_None) return;
  CHECK(PyTuple_Check(result), ErrorKind::kType, "expected tuple, but hook returned '",
        Py_TYPE(result)->tp_name, "'");
  CHECK(PyTuple_GET_SIZE(result) == Py_ssize_t(grads.size()), "hook '", name_of(hook),
        "' has returned an incorrect number of values (got ", PyTuple_GET_SIZE(result),
        ", but expected ", grads.size(), ")");
  for (size_t i = 0; i < grads.size(); ++i)
    replace(grads[i], PyTuple_GET_ITEM(result, Py_ssize_t(i)), hook);
}

// hook(grad) -> grad or None, for the gradient of result `slot` of a node.
struct TensorHook {
  Held function;
  uint32_t slot;

  void operator()(std::vector<Tensor>& grads) const {
    if (!grads[slot].defined()) return;
    AcquireGil gil;
    Ref argument(wrap(grads[slot]));
    Ref result = call(function, argument.get());
    if (result.get() != Py_None) replace(grads[slot], result.get(), function);
  }
};

// hook(leaf), when the .grad of the leaf is complete.
struct AccumulatedHook {
  Held function;

  void operator()(const Tensor& leaf) const {
    AcquireGil gil;
    Ref argument(wrap(leaf));
    Ref result = call(function, argument.get());
    // The leaf itself is what lambda leaf: leaf.add_(...) returns.
    CHECK(result.get() == Py_None || result.get() == argument.get(),
          "Tensor post accumulate grad hooks should return None.");
  }
};

// hook(grad_outputs) -> grad_outputs or None
struct NodeBefore {
  Held function;

  void operator()(std::vector<Tensor>& grads) const {
    AcquireGil gil;
    Ref argument(wrap_tuple(grads));
    Ref result = call(function, argument.get());
    replace_all(grads, result.get(), function);
  }
};

// hook(grad_inputs, grad_outputs) -> grad_inputs or None
struct NodeAfter {
  Held function;

  void operator()(std::vector<Tensor>& input_grads, const std::vector<Tensor>& grads) const {
    AcquireGil gil;
    Ref inputs(wrap_tuple(input_grads)), outputs(wrap_tuple(grads));
    Ref result = call(function, inputs.get(), outputs.get());
    replace_all(input_grads, result.get(), function);
  }
};

// ---- handles ------------------------------------------------------------------------------------

constexpr const char* kHandle = "rushlight.hook";

// A RemovableHandle, which finds the hook only while it is there.
PyObject* wrap_handle(HookHandle handle) {
  auto* kept = new HookHandle(std::move(handle));
  auto drop = [](PyObject* capsule) {
    delete static_cast<HookHandle*>(PyCapsule_GetPointer(capsule, kHandle));
  };
  Ref capsule(checked(PyCapsule_New(kept, kHandle, drop)));
  Ref module(checked(PyImport_ImportModule("rushlight.utils.hooks")));
  return checked(PyObject_CallMethod(module.get(), "_tape_handle", "O", capsule.get()));
}

PyObject* remove_hook(PyObject*, PyObject* capsule) {
  return guarded([&]() -> PyObject* {
    auto* handle = static_cast<HookHandle*>(PyCapsule_GetPointer(capsule, kHandle));
    if (!handle) throw PythonError();
    if (auto hook = handle->lock()) hook->remove();
    Py_RETURN_NONE;
  });
}

// ---- registration -------------------------------------------------------------------------------

PyObject* register_hook(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *self, *function;
    if (!PyArg_ParseTuple(args, "OO", &self, &function)) return nullptr;
    Edge edge = gradient_edge(expect_tensor(self, "self"));
    CHECK(edge.node, "cannot register a hook on a tensor that doesn't require gradient");
    return wrap_handle(edge.node->make_hooks().tensor.add(TensorHook{Held(function), edge.slot}));
  });
}

PyObject* register_accumulated_hook(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *self, *function;
    if (!PyArg_ParseTuple(args, "OO", &self, &function)) return nullptr;
    const Tensor& tensor = expect_tensor(self, "self");
    CHECK(gradient_edge_exists(tensor),
          "cannot register a hook on a tensor that doesn't require gradient");
    CHECK(is_leaf(tensor), "post accumulate grad hooks cannot be registered on non-leaf tensors");
    return wrap_handle(get_meta(tensor).leaf_hooks.add(AccumulatedHook{Held(function)}));
  });
}

// _hooks_of(tensor) -> the functions that register_hook was given
PyObject* hooks_of(PyObject*, PyObject* self) {
  return guarded([&]() -> PyObject* {
    Ref functions(checked(PyList_New(0)));
    AutogradMeta* meta = find_meta(expect_tensor(self, "self"));
    Node* node = !meta ? nullptr : meta->grad_fn ? meta->grad_fn.get() : meta->accumulator.get();
    if (!node || !node->hooks()) return functions.release();
    for (const auto& hook : node->hooks()->tensor.all()) {
      auto* known = hook->target<TensorHook>();
      if (known && known->slot == meta->slot)
        checked(PyList_Append(functions.get(), known->function.get()));
    }
    return functions.release();
  });
}

// _count_running(hooks) -> how many of these functions the backward that runs calls, where each is
// the hook of one tensor.
PyObject* count_running(PyObject*, PyObject* hooks) {
  return guarded([&] {
    Ref items(checked(PySequence_Fast(hooks, "hooks must be a list")));
    PyObject** begin = PySequence_Fast_ITEMS(items.get());
    std::unordered_set<PyObject*> wanted(begin, begin + PySequence_Fast_GET_SIZE(items.get()));
    long count = 0;
    visit_running([&](const Node& node) {
      if (!node.hooks()) return;
      for (const auto& hook : node.hooks()->tensor.all())
        if (auto* known = hook->target<TensorHook>())
          count += wanted.contains(known->function.get());
    });
    return PyLong_FromLong(count);
  });
}

// _running_leaves(tensors) -> for each leaf whether the backward that runs comes by it
PyObject* running_leaves(PyObject*, PyObject* tensors) {
  return guarded([&]() -> PyObject* {
    std::unordered_set<const Node*> running;
    visit_running([&](const Node& node) { running.insert(&node); });
    Ref items(checked(PySequence_Fast(tensors, "tensors must be a list")));
    Ref flags(checked(PyList_New(PySequence_Fast_GET_SIZE(items.get()))));
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i) {
      const Tensor& leaf = expect_tensor(PySequence_Fast_GET_ITEM(items.get(), i), "tensors");
      AutogradMeta* meta = find_meta(leaf);
      bool found = meta && running.contains(meta->accumulator.get());
      PyList_SET_ITEM(flags.get(), i, PyBool_FromLong(found));
    }
    return flags.release();
  });
}

PyObject* queue_callback(PyObject*, PyObject* function) {
  return guarded([&]() -> PyObject* {
    call_when_done([held = Held(function)] {
      AcquireGil gil;
      Ref result(stay_at_exit([&] { return PyObject_CallNoArgs(held.get()); }));
      if (!result) throw_python_error();
    });
    Py_RETURN_NONE;
  });
}

PyObject* retain_grad_py(PyObject*, PyObject* self) {
  return guarded([&]() -> PyObject* {
    retain_grad(expect_tensor(self, "self"));
    Py_RETURN_NONE;
  });
}

PyMethodDef methods[] = {
    {"_register_hook", register_hook, METH_VARARGS, "Adds a hook on a tensor's gradient."},
    {"_register_post_accumulate_grad_hook", register_accumulated_hook, METH_VARARGS,
     "Adds a hook that runs when a leaf's .grad is complete."},
    {"_remove_hook", remove_hook, METH_O, "Removes a hook, if it is still there."},
    {"_hooks_of", hooks_of, METH_O, "The hooks on a tensor's gradient."},
    {"_count_running", count_running, METH_O, "How many of these hooks the backward calls."},
    {"_running_leaves", running_leaves, METH_O, "Which of these leaves the backward comes by."},
    {"_queue_callback", queue_callback, METH_O, "Calls a function when the backward is done."},
    {"_retain_grad", retain_grad_py, METH_O, "Keeps the gradient of a computed tensor in .grad."},
    {}};

// ---- garbage collection -------------------------------------------------------------------------

template <class Kind, class F>
int visit_list(const HookList<F>& list, visitproc visit, void* arg) {
  for (const auto& hook : list.all())
    if (const Kind* known = hook->template target<Kind>()) Py_VISIT(known->function.get());
  return 0;
}

int visit_node(const Node& node, visitproc visit, void* arg) {
  if (auto* holder = dynamic_cast<const HoldsPython*>(&node)) Py_VISIT(holder->held());
  const NodeHooks* hooks = node.hooks();
  if (!hooks) return 0;
  Py_VISIT(static_cast<PyObject*>(hooks->metadata.get()));
  if (int stop = visit_list<TensorHook>(hooks->tensor, visit, arg)) return stop;
  if (int stop = visit_list<NodeBefore>(hooks->pre, visit, arg)) return stop;
  return visit_list<NodeAfter>(hooks->post, visit, arg);
}

void drop_node(Node& node) {
  NodeHooks* hooks = node.hooks();
  if (!hooks) return;
  hooks->tensor.clear();
  hooks->pre.clear();
  hooks->post.clear();
  hooks->metadata = nullptr;
}

// See Note [Hooks and the garbage collector].
bool is_alone(const RefCounted* object) {
  return object && object->use_count() == 1 && ReleaseGil::running() == 0;
}
AutogradMeta* meta_alone(const Tensor& tensor) {
  return is_alone(tensor.impl()) ? find_meta(tensor) : nullptr;
}

}  // namespace

bool is_alone(const Tensor& tensor) { return is_alone(tensor.impl()); }

int visit_hooks(const NodePtr& node, visitproc visit, void* arg) {
  return is_alone(node.get()) ? visit_node(*node, visit, arg) : 0;
}

int visit_hooks(const Tensor& tensor, visitproc visit, void* arg) {
  AutogradMeta* meta = meta_alone(tensor);
  if (!meta) return 0;
  if (int stop = visit_hooks(meta->grad_fn, visit, arg)) return stop;
  // Whoever has the accumulator can find the leaf.
  if (meta->accumulator && !is_alone(meta->accumulator.get())) return 0;
  if (meta->accumulator)
    if (int stop = visit_node(*meta->accumulator, visit, arg)) return stop;
  return visit_list<AccumulatedHook>(meta->leaf_hooks, visit, arg);
}

void drop_hooks(const NodePtr& node) {
  if (is_alone(node.get())) drop_node(*node);
}

void drop_hooks(const Tensor& tensor) {
  AutogradMeta* meta = meta_alone(tensor);
  if (!meta) return;
  drop_hooks(meta->grad_fn);
  if (meta->accumulator && !is_alone(meta->accumulator.get())) return;
  if (meta->accumulator) drop_node(*meta->accumulator);
  meta->leaf_hooks.clear();
}

PyObject* add_node_hook(Node& node, PyObject* function) {
  return wrap_handle(node.make_hooks().post.add(NodeAfter{Held(function)}));
}
PyObject* add_node_prehook(Node& node, PyObject* function) {
  return wrap_handle(node.make_hooks().pre.add(NodeBefore{Held(function)}));
}

void add_hooks(PyObject* module) { checked(PyModule_AddFunctions(module, methods)); }

}  // namespace rushlight::python
