// Declares the protocol by which classes take over ops: __torch_function__.
//
// An op that meets an instance of a subclass of Tensor does not run: it calls the subclass's
// __torch_function__(func, types, args, kwargs), whose default runs func and makes the results
// instances of the subclass. Other objects with that method take over ops that cannot read them.
// Parameter and Buffer opt out. Whether a class takes over is known from its creation, so that a
// call with plain tensors pays one comparison for each argument.
#pragma once

#include "bindings/python.h"

namespace rushlight::python {

// A class of tensors, with what we know of it.
struct TensorMeta {
  PyHeapTypeObject type;
  bool takes_over;
};
extern PyTypeObject TensorMetaType;

// Whether DisableTorchFunctionSubclass is in force on this thread.
extern thread_local bool overrides_disabled;

[[gnu::cold, gnu::noinline]] bool class_takes_over(PyTypeObject* type);
[[gnu::noinline]] bool some_item_takes_over(PyObject* sequence);

// Whether an argument of an op is a tensor whose class takes over.
inline bool takes_over(PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  if (type == tensor_class) return false;
  if (type->tp_flags & Py_TPFLAGS_HEAPTYPE) [[unlikely]]
    return class_takes_over(type);
  return false;
}
// The same, also of the items of a list or tuple.
inline bool takes_over_inside(PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  if (type == tensor_class) return false;
  if (type->tp_flags & (Py_TPFLAGS_LIST_SUBCLASS | Py_TPFLAGS_TUPLE_SUBCLASS))
    return some_item_takes_over(object);
  return takes_over(object);
}

// Calls the first __torch_function__ among the arguments that does not return NotImplemented; null
// and no Python error when there is none, which is so while overrides are disabled.
PyObject* call_override(PyObject* function, PyObject* const* args, Py_ssize_t nargs,
                        PyObject* keywords);
// The same for a function of Tensor by its name.
PyObject* call_override(const char* method, std::initializer_list<PyObject*> args);

// Notes of a fresh class whether it takes over.
void note_tensor_class(PyTypeObject* type);

void add_override(PyObject* module);

}  // namespace rushlight::python
