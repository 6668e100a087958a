// Declares the protocol by which classes take over ops: __torch_function__.
//
// An op that meets an instance of a subclass of Tensor does not run: it calls the subclass's
// __torch_function__(func, types, args, kwargs), whose default runs func and makes the results
// instances of the subclass. Other objects with that method take over ops that cannot read them.
// Parameter and Buffer opt out. A mode takes over all ops that its thread calls in a with block.
// Whether a class takes over is known from its creation, so that a call with plain tensors pays one
// comparison for each argument.
#pragma once

#include "bindings/python.h"

namespace rushlight::python {

// A class of tensors, with what we know of it.
struct TensorMeta {
  PyHeapTypeObject type;
  bool takes_over;
  bool dispatches;  // see bindings/dispatch.h
  // See bindings/told.cpp: whether it is told of attributes, and how these are read and written
  // where it is not.
  bool hears;
  getattrofunc read;
  setattrofunc write;
};
extern PyTypeObject TensorMetaType;

// Whether DisableTorchFunctionSubclass is in force on this thread.
extern thread_local bool overrides_disabled;

// How many modes are in force on all threads; kept under the interpreter's lock.
extern int mode_count;

inline bool class_takes_over(PyTypeObject* type) {
  PyTypeObject* meta = Py_TYPE(type);
  if (meta != &TensorMetaType && !PyType_IsSubtype(meta, &TensorMetaType)) return false;
  return reinterpret_cast<TensorMeta*>(type)->takes_over && !overrides_disabled;
}
// Whether an argument of an op may be a tensor whose class, or for which a mode, takes over.
inline bool takes_over(PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  if (mode_count || type == tensor_class) return mode_count;
  return type->tp_flags & Py_TPFLAGS_HEAPTYPE && class_takes_over(type);
}
// The same, also of the items of a list or tuple.
inline bool takes_over_inside(PyObject* object) {
  if (!(Py_TYPE(object)->tp_flags & (Py_TPFLAGS_LIST_SUBCLASS | Py_TPFLAGS_TUPLE_SUBCLASS)))
    return takes_over(object);
  PyObject** items = PySequence_Fast_ITEMS(object);
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(object); ++i)
    if (takes_over(items[i])) return true;
  return false;
}
// The same for an index or what is written there, which may be an object of any class.
bool object_takes_over(PyObject* object);
// Whether results for this tensor are to be of its class.
inline bool stays_in_class(PyObject* tensor) {
  PyTypeObject* type = Py_TYPE(tensor);
  return type != tensor_class && type->tp_flags & Py_TPFLAGS_HEAPTYPE && class_takes_over(type);
}
// Whether this thread's innermost mode is told of attributes.
bool mode_hears();
// Whether a mode or the class of this tensor is told of attributes and of len(), bool() and the
// like.
inline bool hears_attributes(PyObject* tensor) {
  if (mode_count && mode_hears()) return true;
  return stays_in_class(tensor) && reinterpret_cast<TensorMeta*>(Py_TYPE(tensor))->hears;
}

// Calls the first __torch_function__, of the mode and then of the arguments, that does not return
// NotImplemented; null and no Python error when there is none, so that the op is to run.
PyObject* call_override(PyObject* function, PyObject* const* args, Py_ssize_t nargs,
                        PyObject* keywords);
// The same for a function of Tensor by its name.
PyObject* call_override(const char* method, std::initializer_list<PyObject*> args);

// What the mode makes of a function that asks no class, with the arguments of a method of a module;
// null where there is no mode.
PyObject* call_mode(PyObject* module, const char* function, PyObject* args, PyObject* kwargs);

// (func, types, args=(), kwargs=None): runs func while a Scope lasts, in which nobody is asked.
template <class Scope>
PyObject* run_unasked(PyObject*, PyObject* all) {
  return guarded([&]() -> PyObject* {
    PyObject *function, *types, *args = nullptr, *kwargs = nullptr;
    if (!PyArg_ParseTuple(all, "OO|OO", &function, &types, &args, &kwargs)) return nullptr;
    Ref positional = args ? Ref(checked(PySequence_Tuple(args))) : Ref(checked(PyTuple_New(0)));
    CHECK(!kwargs || kwargs == Py_None || PyDict_Check(kwargs), ErrorKind::kType,
          "kwargs must be a dict, not ", Py_TYPE(kwargs)->tp_name);
    Scope scope;
    return stay_at_exit([&] {
      return PyObject_Call(function, positional.get(), kwargs == Py_None ? nullptr : kwargs);
    });
  });
}

// Notes of a new class whether it takes over, and whether it is told of attributes. A class with a
// __torch_dispatch__ but no __torch_function__ of its own opts out, so that results stay as made.
void note_tensor_class(PyTypeObject* type);
void note_hearing(PyTypeObject* type);
// Starts or stops the slower lookup of all attributes of tensors that tells modes of them.
void let_modes_hear(bool hear);

void add_override(PyObject* module);
void add_told(PyObject* module);

}  // namespace rushlight::python
