// Owns the type of contexts, on which rushlight/autograd/function.py builds what users see.
#include "bindings/function.h"

namespace rushlight::python {
namespace {

PyObject* function_new(PyTypeObject* type, PyObject*, PyObject*) {
  return guarded([&] {
    Ref forward_class(PyObject_GetAttrString(reinterpret_cast<PyObject*>(type), "_forward_cls"));
    if (!forward_class) PyErr_Clear();
    NodePtr node = make_context(type, forward_class.get());
    return Py_NewRef(static_cast<PyObject*>(node->py_object));
  });
}

int function_traverse(PyObject* self, visitproc visit, void* arg) {
  PyFunction* context = function_of(self);
  Py_VISIT(context->forward_class);
  Py_VISIT(context->needs_input_grad);
  Py_VISIT(context->to_save);
  Py_VISIT(context->dirty_tensors);
  Py_VISIT(context->non_differentiable);
  Py_VISIT(context->saved_for_forward);
  Py_VISIT(context->output_grad_dtypes);
  return context->owns_node ? visit_hooks(context->base.node, visit, arg) : 0;
}
int function_clear(PyObject* self) {
  PyFunction* context = function_of(self);
  if (context->owns_node) drop_hooks(context->base.node);
  Py_CLEAR(context->needs_input_grad);
  Py_CLEAR(context->to_save);
  Py_CLEAR(context->dirty_tensors);
  Py_CLEAR(context->non_differentiable);
  Py_CLEAR(context->saved_for_forward);
  Py_CLEAR(context->output_grad_dtypes);
  return 0;
}
void function_dealloc(PyObject* self) {
  PyObject_GC_UnTrack(self);
  PyFunction* context = function_of(self);
  if (context->base.node.get() != gone_node().get()) node_in(context).forget_context();
  function_clear(self);
  Py_CLEAR(context->forward_class);
  context->base.node.~NodePtr();
  Py_TYPE(self)->tp_free(self);
}

PyObject* saved_tensors(PyObject* self, void*) {
  return guarded([&] {
    NodePtr held = hold(function_of(self));
    auto& node = static_cast<FunctionNode&>(*held);
    if (node.is_released) SavedTensor().unpack(node);  // says so
    std::vector<Tensor> tensors;
    tensors.reserve(node.saved.size());
    // Unpacking may run the user's code, which may free what is saved.
    for (size_t i = 0; i < node.saved.size(); ++i)
      tensors.push_back(SavedTensor(node.saved[i]).unpack(node));
    return wrap_tuple(tensors);
  });
}

// An attribute that anything may be assigned to.
template <PyObject* PyFunction::* member>
PyGetSetDef field(const char* name, const char* doc) {
  getter get = [](PyObject* self, void*) {
    PyObject* value = function_of(self)->*member;
    return Py_NewRef(value ? value : Py_None);
  };
  setter set = [](PyObject* self, PyObject* value, void*) {
    Py_XSETREF(function_of(self)->*member, Py_XNewRef(value));
    return 0;
  };
  return {name, get, set, doc, nullptr};
}

PyObject* get_materialize_grads(PyObject* self, void*) {
  return PyBool_FromLong(function_of(self)->materialize_grads);
}
int set_materialize_grads(PyObject* self, PyObject* value, void*) {
  if (!value || !PyBool_Check(value)) {
    PyErr_Format(PyExc_TypeError, "set_materialize_grads expects a bool, got %s",
                 value ? Py_TYPE(value)->tp_name : "nothing");
    return -1;
  }
  function_of(self)->materialize_grads = value == Py_True;
  return 0;
}

PyObject* apply_backward(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  return guarded([&] {
    Ref function = user_backward(function_of(self));
    SmallVector<PyObject*, 8> stack{self};
    for (Py_ssize_t i = 0; i < count; ++i) stack.push_back(args[i]);
    return PyObject_Vectorcall(function.get(), stack.data(), stack.size(), nullptr);
  });
}

// _set_function_defaults(setup_context, backward, bind, apply_lifted)
PyObject* set_defaults(PyObject*, PyObject* args) {
  FunctionDefaults given;
  if (!PyArg_ParseTuple(args, "OOOO", &given.setup_context, &given.backward, &given.bind,
                        &given.apply_lifted))
    return nullptr;
  for (PyObject* object : {given.setup_context, given.backward, given.bind, given.apply_lifted})
    Py_INCREF(object);
  function_defaults = given;
  Py_RETURN_NONE;
}

// _watch_functions(watcher)
PyObject* watch_functions(PyObject*, PyObject* watcher) {
  Py_XSETREF(function_watcher, Py_NewRef(watcher));
  Py_RETURN_NONE;
}

template <class F>
PyCFunction as_method(F* function) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(function));
}
PyMethodDef function_methods[] = {
    {"apply", as_method(apply_function), METH_CLASS | METH_FASTCALL | METH_KEYWORDS,
     "apply(*args, **kwargs)\n\nCalls forward, and records the call for backward."},
    {"_apply_backward", as_method(apply_backward), METH_FASTCALL, "Calls the user's backward."},
    {}};
PyGetSetDef function_attributes[] = {
    field<&PyFunction::needs_input_grad>(
        "needs_input_grad", "For each argument of forward, whether its gradient is wanted."),
    field<&PyFunction::to_save>("to_save", "What save_for_backward got."),
    field<&PyFunction::dirty_tensors>("dirty_tensors", "What mark_dirty got."),
    field<&PyFunction::non_differentiable>("non_differentiable",
                                           "What mark_non_differentiable got."),
    field<&PyFunction::saved_for_forward>("saved_for_forward", "What save_for_forward got."),
    field<&PyFunction::output_grad_dtypes>("output_grad_dtypes", "What set_output_grad_dtype got."),
    {"saved_tensors", saved_tensors, nullptr,
     "What save_for_backward kept, checked for writes in place since.", nullptr},
    {"materialize_grads", get_materialize_grads, set_materialize_grads,
     "Whether backward gets zeros in place of None.", nullptr},
    {}};

PyMethodDef methods[] = {{"_set_function_defaults", set_defaults, METH_VARARGS,
                          "Names what a Function has before users override it."},
                         {"_watch_functions", watch_functions, METH_O,
                          "Lets a function be called with the class of each Function applied."},
                         {}};

}  // namespace

PyTypeObject FunctionType = {
    .ob_base = {PyObject_HEAD_INIT(nullptr) 0},
    .tp_name = "rushlight._C._FunctionBase",
    .tp_basicsize = sizeof(PyFunction),
    .tp_dealloc = function_dealloc,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .tp_doc = "The context of one call of a Function, and its node on the tape.",
    .tp_traverse = function_traverse,
    .tp_clear = function_clear,
    .tp_methods = function_methods,
    .tp_getset = function_attributes,
    .tp_base = &NodeType,
    .tp_new = function_new,
    .tp_free = PyObject_GC_Del};

void add_function(PyObject* module) {
  FunctionType.tp_repr = PyBaseObject_Type.tp_repr;  // with the module, as of any object
  checked(PyType_Ready(&FunctionType));
  checked(
      PyModule_AddObjectRef(module, "_FunctionBase", reinterpret_cast<PyObject*>(&FunctionType)));
  checked(PyModule_AddFunctions(module, methods));
}

}  // namespace rushlight::python
