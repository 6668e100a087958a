// Owns the Python objects of nodes: torch.autograd.graph.Node and a class for each kind of node.
#include "bindings/node.h"

#include <map>
#include <string>

#include "bindings/hooks.h"
#include "core/autograd/engine.h"

namespace rushlight::python {
namespace {

const NodePtr& node_of(PyObject* self) { return reinterpret_cast<PyNode*>(self)->node; }

// The class of nodes of one name, so that type(node).__name__ tells what it is. Kept for the life
// of the process: there are as many as kinds of ops.
PyTypeObject* class_named(const std::string& name) {
  static std::map<std::string, PyObject*> classes;
  PyObject*& made = classes[name];
  if (!made)
    made = checked(PyObject_CallFunction(reinterpret_cast<PyObject*>(&PyType_Type), "s(O){s()ss}",
                                         name.c_str(), &NodeType, "__slots__", "__module__",
                                         "rushlight.autograd.graph"));
  return reinterpret_cast<PyTypeObject*>(made);
}

void node_dealloc(PyObject* self) {
  PyObject_GC_UnTrack(self);
  node_of(self)->py_object = nullptr;
  reinterpret_cast<PyNode*>(self)->node.~NodePtr();
  Py_TYPE(self)->tp_free(self);
}
int node_traverse(PyObject* self, visitproc visit, void* arg) {
  return visit_hooks(node_of(self), visit, arg);
}
int node_clear(PyObject* self) {
  drop_hooks(node_of(self));
  return 0;
}

PyObject* node_name(PyObject* self, PyObject*) {
  std::string name = node_of(self)->name();
  if (name == "AccumulateGrad") name = "torch::autograd::" + name;  // as PyTorch calls it here only
  return PyUnicode_FromString(name.c_str());
}
PyObject* node_op(PyObject* self, PyObject*) { return PyUnicode_FromString(node_of(self)->op()); }
PyObject* node_repr(PyObject* self) {
  return PyUnicode_FromFormat("<%s object at %p>", node_of(self)->name().c_str(),
                              node_of(self).get());
}

// PyTorch's names of what the op kept: _saved_other, and _saved_self for `input`; with _raw_saved_
// the place where it is kept.
PyObject* node_getattro(PyObject* self, PyObject* name) {
  return guarded([&]() -> PyObject* {
    Py_ssize_t size;
    const char* text = PyUnicode_AsUTF8AndSize(name, &size);
    if (!text) throw PythonError();
    std::string_view wanted(text, size_t(size));
    constexpr std::string_view kValue = "_saved_", kPlace = "_raw_saved_";
    bool is_place = wanted.starts_with(kPlace);
    if (!is_place && !wanted.starts_with(kValue))
      return checked(PyObject_GenericGetAttr(self, name));
    wanted.remove_prefix(is_place ? kPlace.size() : kValue.size());
    if (wanted == "self") wanted = "input";
    const NodePtr& node = node_of(self);
    Ref items(checked(PyList_New(0)));
    bool known = false;
    node->visit_saved([&](std::string_view item, const SavedTensor& saved) {
      if (item != wanted) return;
      known = true;
      if (!saved.is_kept()) return;
      Ref object(is_place ? wrap_saved(node, saved) : wrap(saved.unpack(*node)));
      checked(PyList_Append(items.get(), object.get()));
    });
    if (!known) return checked(PyObject_GenericGetAttr(self, name));
    Py_ssize_t count = PyList_GET_SIZE(items.get());
    if (count > 1) return PyList_AsTuple(items.get());
    return Py_NewRef(count ? PyList_GET_ITEM(items.get(), 0) : Py_None);
  });
}
// dir() of the object and PyTorch's names of what is kept, which programs look for there.
PyObject* node_dir(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    auto* object = reinterpret_cast<PyObject*>(&PyBaseObject_Type);
    Ref names(checked(PyObject_CallMethod(object, "__dir__", "O", self)));
    node_of(self)->visit_saved([&](std::string_view item, const SavedTensor&) {
      std::string kept = item == "input" ? "self" : std::string(item);
      for (const char* start : {"_saved_", "_raw_saved_"}) {
        Ref name(checked(PyUnicode_FromString((start + kept).c_str())));
        int listed = PySequence_Contains(names.get(), name.get());  // a list of tensors, again
        if (listed < 0 || (!listed && PyList_Append(names.get(), name.get()) < 0))
          throw PythonError();
      }
    });
    return names.release();
  });
}
PyObject* node_call(PyObject* self, PyObject* args, PyObject* kwargs) {
  return guarded([&] {
    NodePtr node = node_of(self);
    CHECK(!kwargs || PyDict_GET_SIZE(kwargs) == 0, ErrorKind::kType, node->name(),
          " takes no keyword arguments");
    std::vector<Tensor> input_grads = read_tensors(args, "grad_outputs");
    {
      ReleaseGil release;
      input_grads = run_alone(*node, std::move(input_grads));
    }
    return input_grads.size() == 1 ? wrap(input_grads[0]) : wrap_tuple(input_grads);
  });
}
// The Python object of a node: a new reference, None for no node.
PyObject* wrap_node(const NodePtr& node) {
  if (!node) Py_RETURN_NONE;
  if (node->py_object) return Py_NewRef(static_cast<PyObject*>(node->py_object));
  PyTypeObject* type = class_named(node->name());
  PyObject* object = checked(type->tp_alloc(type, 0));
  new (&reinterpret_cast<PyNode*>(object)->node) NodePtr(node);
  node->py_object = object;
  return object;
}
PyObject* next_functions(PyObject* self, void*) {
  return guarded([&] {
    const auto& edges = node_of(self)->edges;
    Ref tuple(checked(PyTuple_New(Py_ssize_t(edges.size()))));
    for (size_t i = 0; i < edges.size(); ++i)
      PyTuple_SET_ITEM(tuple.get(), Py_ssize_t(i),
                       checked(Py_BuildValue("(NI)", wrap_node(edges[i].node), edges[i].slot)));
    return tuple.release();
  });
}
PyObject* node_variable(PyObject* self, void*) {
  return guarded([&]() -> PyObject* {
    auto* accumulate = dynamic_cast<AccumulateGrad*>(node_of(self).get());
    Tensor leaf = accumulate ? accumulate->leaf.lock() : Tensor();
    if (leaf.defined()) return wrap(leaf);
    PyErr_SetString(PyExc_AttributeError, "only AccumulateGrad of a live tensor has a variable");
    return nullptr;
  });
}
PyObject* node_metadata(PyObject* self, void*) {
  return guarded([&] { return Py_NewRef(metadata_of(*node_of(self))); });
}
// The line of the program that called the op, "train.py:12"; None when nobody noted it.
PyObject* node_call_site(PyObject* self, void*) {
  return guarded([&]() -> PyObject* {
    std::string line = describe_call_site(node_of(self)->site);
    if (line.empty()) Py_RETURN_NONE;
    return PyUnicode_FromStringAndSize(line.data(), Py_ssize_t(line.size()));
  });
}
// What the op kept for backward: [(name, tensor)], with None for an argument that was not given.
PyObject* node_saved(PyObject* self, PyObject*) {
  return guarded([&] {
    Ref list(checked(PyList_New(0)));
    const Node& node = *node_of(self);
    node.visit_saved([&](std::string_view name, const SavedTensor& saved) {
      if (!saved.is_kept()) return;
      PyObject* object = wrap(saved.unpack(node));
      Ref item(checked(Py_BuildValue("(s#N)", name.data(), Py_ssize_t(name.size()), object)));
      checked(PyList_Append(list.get(), item.get()));
    });
    return list.release();
  });
}
PyObject* node_requires_grad(PyObject*, void*) { Py_RETURN_TRUE; }
PyObject* sequence_number(PyObject* self, PyObject*) {
  return PyLong_FromUnsignedLongLong(node_of(self)->sequence);
}
PyObject* run_last(PyObject* self, PyObject*) {
  node_of(self)->sequence = Node::kRunsLast;
  Py_RETURN_NONE;
}
// The shape, dtype and device of result `slot`.
PyObject* node_result(PyObject* self, PyObject* slot) {
  return guarded([&]() -> PyObject* {
    const auto& results = node_of(self)->results;
    int64_t i;
    CHECK(read_int(slot, i) && i >= 0 && size_t(i) < results.size(), ErrorKind::kIndex,
          node_of(self)->name(), " has ", results.size(), " results; there is no such one");
    const ResultInfo& info = results[size_t(i)];
    return Py_BuildValue("(NNN)", wrap_size(info.sizes), wrap_dtype(info.dtype),
                         wrap_device(info.device));
  });
}
PyObject* node_register_hook(PyObject* self, PyObject* function) {
  return guarded([&] { return add_node_hook(*node_of(self), function); });
}
PyObject* node_register_prehook(PyObject* self, PyObject* function) {
  return guarded([&] { return add_node_prehook(*node_of(self), function); });
}

PyMethodDef node_methods[] = {
    {"name", node_name, METH_NOARGS, "name() -> str\n\nThe name of the node: 'AddBackward0'."},
    {"_op", node_op, METH_NOARGS, "_op() -> str\n\nThe op whose gradients it computes."},
    {"register_hook", node_register_hook, METH_O,
     "register_hook(fn) -> RemovableHandle\n\nCalls fn(grad_inputs, grad_outputs) after the node's "
     "backward. Both are tuples, with None where\nnothing flowed; a tuple that fn returns replaces "
     "grad_inputs."},
    {"register_prehook", node_register_prehook, METH_O,
     "register_prehook(fn) -> RemovableHandle\n\nCalls fn(grad_outputs) before the node's "
     "backward; a tuple that fn returns replaces\ngrad_outputs."},
    {"__dir__", node_dir, METH_NOARGS, "The names of attributes, with those of what is kept."},
    {"_saved", node_saved, METH_NOARGS, "What the op kept for backward, as (name, tensor)."},
    {"_sequence_nr", sequence_number, METH_NOARGS, "Grows with the time of creation."},
    {"_run_last", run_last, METH_NOARGS, "Lets walks take the node after all that are ready."},
    {"_result", node_result, METH_O, "The shape, dtype and device of one of its results."},
    {}};
PyGetSetDef node_attributes[] = {
    {"next_functions", next_functions, nullptr, "The nodes that gradients go to, with their slots.",
     nullptr},
    {"variable", node_variable, nullptr, "The leaf of an AccumulateGrad.", nullptr},
    {"call_site", node_call_site, nullptr, "The line of the program that called the op, or None.",
     nullptr},
    {"metadata", node_metadata, nullptr, "A dict for notes on the node.", nullptr},
    {"requires_grad", node_requires_grad, nullptr, "Always True.", nullptr},
    {}};
}  // namespace

PyTypeObject NodeType = {
    .ob_base = {PyObject_HEAD_INIT(nullptr) 0},
    .tp_name = "rushlight.autograd.graph.Node",
    .tp_basicsize = sizeof(PyNode),
    .tp_dealloc = node_dealloc,
    .tp_repr = node_repr,
    .tp_call = node_call,
    .tp_getattro = node_getattro,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC |
                Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_doc =
        "One recorded op on the tape: what a tensor's grad_fn is.\n\nExample:\n"
        "    >>> x = torch.ones(2, requires_grad=True)\n"
        "    >>> y = x.exp()\n"
        "    >>> isinstance(y.grad_fn, torch.autograd.graph.Node), y.grad_fn.name()\n"
        "    (True, 'ExpBackward0')\n"
        "    >>> y.grad_fn.next_functions[0][0].variable is x\n"
        "    True\n\n"
        "Called with the gradients of its results, a node returns those of its inputs:\n\n"
        "    >>> (x * 3).grad_fn(torch.ones(2))\n"
        "    (tensor([3., 3.]), None)",
    .tp_traverse = node_traverse,
    .tp_clear = node_clear,
    .tp_methods = node_methods,
    .tp_getset = node_attributes};

namespace {

PyObject* grad_fn(PyObject*, PyObject* self) {
  return guarded([&] { return wrap_node(grad_fn_of(expect_tensor(self, "self"))); });
}
PyObject* gradient_edge_py(PyObject*, PyObject* self) {
  return guarded([&] {
    Edge edge = gradient_edge(expect_tensor(self, "tensor"));
    CHECK(edge.node,
          "It is not possible to get the gradient edge for a Tensor that does not "
          "require gradients");
    return checked(Py_BuildValue("(NI)", wrap_node(edge.node), edge.slot));
  });
}

PyMethodDef methods[] = {
    {"_grad_fn", grad_fn, METH_O, "The node that made a tensor, or None."},
    {"_gradient_edge", gradient_edge_py, METH_O, "Where a tensor's gradient goes: (node, slot)."},
    {}};

}  // namespace

PyObject* metadata_of(Node& node) {
  std::shared_ptr<void>& metadata = node.make_hooks().metadata;
  if (!metadata) {
    auto drop = [](void* dict) {
      if (!Py_IsInitialized()) return;
      AcquireGil gil;
      Py_DECREF(static_cast<PyObject*>(dict));
    };
    metadata = std::shared_ptr<void>(checked(PyDict_New()), drop);
  }
  return static_cast<PyObject*>(metadata.get());
}

const NodePtr* find_node(PyObject* object) {
  return PyObject_TypeCheck(object, &NodeType) ? &node_of(object) : nullptr;
}

void add_node(PyObject* module) {
  checked(PyType_Ready(&NodeType));
  checked(PyModule_AddObjectRef(module, "Node", reinterpret_cast<PyObject*>(&NodeType)));
  checked(PyModule_AddFunctions(module, methods));
}

}  // namespace rushlight::python
