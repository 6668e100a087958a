// Defines who takes over an op, and what runs instead.
#include "bindings/override.h"

#include "bindings/asked.h"

namespace rushlight::python {

thread_local bool overrides_disabled = false;
int mode_count = 0;

namespace {

constexpr const char* kMethod = "__torch_function__";

// The __torch_function__ of classes that opt out.
PyObject* opted_out = nullptr;

// Whether the class has a __torch_function__ that is not the one that opts out.
bool has_method(PyTypeObject* type) {
  PyObject* method = PyObject_GetAttrString(reinterpret_cast<PyObject*>(type), kMethod);
  if (!method) {
    PyErr_Clear();
    return false;
  }
  Py_DECREF(method);
  return method != opted_out;
}

// Whether the class inherits the __torch_function__ of Tensor.
bool has_default_method(PyTypeObject* type) {
  if (!tensor_class) return false;  // this is one of its bases
  Ref own(PyObject_GetAttrString(reinterpret_cast<PyObject*>(type), kMethod));
  Ref usual(PyObject_GetAttrString(reinterpret_cast<PyObject*>(tensor_class), kMethod));
  Ref function(own ? PyObject_GetAttrString(own.get(), "__func__") : nullptr);
  Ref expected(usual ? PyObject_GetAttrString(usual.get(), "__func__") : nullptr);
  PyErr_Clear();
  return function && function.get() == expected.get();
}

thread_local Modes modes;

class DisabledScope {
 public:
  DisabledScope() : before_(overrides_disabled) { overrides_disabled = true; }
  ~DisabledScope() { overrides_disabled = before_; }

 private:
  bool before_;
};

// Those of the arguments that take over.
class Overrides : public Asked {
 public:
  void look_at(PyObject* object) {
    if (PyList_Check(object) || PyTuple_Check(object)) {
      for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(object); ++i)
        consider(PySequence_Fast_GET_ITEM(object, i));
    } else {
      consider(object);
    }
  }

 private:
  void consider(PyObject* object) {
    PyTypeObject* type = Py_TYPE(object);
    if (overrides_disabled || !(type->tp_flags & Py_TPFLAGS_HEAPTYPE) || type == tensor_class)
      return;
    Ref held = Ref::borrow(object);  // the lookup may run Python code that empties the list
    if (is_tensor(object) ? class_takes_over(type) : has_method(type)) add(std::move(held));
  }
};

Overrides overrides_among(PyObject* args, PyObject* kwargs) {
  Overrides overrides;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); ++i)
    overrides.look_at(PyTuple_GET_ITEM(args, i));
  PyObject* value;
  for (Py_ssize_t place = 0; PyDict_Next(kwargs, &place, nullptr, &value);)
    overrides.look_at(value);
  return overrides;
}

PyObject* nobody_took_over(PyObject* function, PyObject* types) {
  PyErr_Format(PyExc_TypeError,
               "no implementation found for %R on types that implement __torch_function__: %R",
               function, types);
  return nullptr;
}

PyObject* call_with(PyObject* function, const Overrides& overrides, PyObject* args,
                    PyObject* kwargs) {
  Ref types = overrides.types();
  if (!modes.empty()) {
    InnermostMode mode(modes, [] {});
    Ref result = ask(mode.get(), kMethod, function, types, args, kwargs);
    if (result.get() != Py_NotImplemented) return result.release();
  }
  for (const Ref& object : overrides.in_order()) {
    Ref result = ask(object.get(), kMethod, function, types, args, kwargs);
    if (result.get() != Py_NotImplemented) return result.release();
  }
  return nobody_took_over(function, types.get());
}

// Turns overrides off or on for this thread; returns whether they were off.
PyObject* set_disabled(PyObject*, PyObject* value) {
  int disabled = PyObject_IsTrue(value);
  if (disabled < 0) return nullptr;
  return PyBool_FromLong(std::exchange(overrides_disabled, bool(disabled)));
}

PyObject* push_mode(PyObject*, PyObject* mode) {
  return guarded([&]() -> PyObject* {
    modes.push_back(Py_NewRef(mode));
    ++mode_count;
    if (mode_hears()) let_modes_hear(true);
    Py_RETURN_NONE;
  });
}
PyObject* pop_mode(PyObject*, PyObject*) {
  return guarded([&]() -> PyObject* {
    CHECK(!modes.empty(), "no mode is in force");
    Py_DECREF(modes.back());
    modes.pop_back();
    if (--mode_count == 0) let_modes_hear(false);
    Py_RETURN_NONE;
  });
}

PyObject* list_modes(PyObject*, PyObject*) {
  return guarded([] { return list_of(modes); });
}

PyObject* some_mode(PyObject*, PyObject*) { return PyBool_FromLong(!modes.empty()); }

PyObject* has_override(PyObject*, PyObject* args) {
  return guarded([&] {
    Ref items(checked(PySequence_Fast(args, "expected the relevant arguments")));
    Overrides overrides;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i)
      overrides.look_at(PySequence_Fast_GET_ITEM(items.get(), i));
    return PyBool_FromLong(!modes.empty() || !overrides.empty());
  });
}

// (args, kwargs): whether the class of an argument takes over, whatever modes are in force.
PyObject* argument_takes_over(PyObject*, PyObject* all) {
  return guarded([&]() -> PyObject* {
    PyObject *args, *kwargs;
    if (!PyArg_ParseTuple(all, "O!O!", &PyTuple_Type, &args, &PyDict_Type, &kwargs)) return nullptr;
    return PyBool_FromLong(!overrides_among(args, kwargs).empty());
  });
}

// (public_api, args, kwargs), asking the classes of all arguments.
PyObject* call_taken_over(PyObject*, PyObject* all) {
  return guarded([&]() -> PyObject* {
    PyObject *function, *args, *kwargs;
    if (!PyArg_ParseTuple(all, "OO!O!", &function, &PyTuple_Type, &args, &PyDict_Type, &kwargs))
      return nullptr;
    return call_with(function, overrides_among(args, kwargs), args, kwargs);
  });
}

// (public_api, relevant_args, args, kwargs)
PyObject* handle_override(PyObject*, PyObject* all) {
  return guarded([&]() -> PyObject* {
    PyObject *function, *relevant, *args, *kwargs;
    if (!PyArg_ParseTuple(all, "OOO!O!", &function, &relevant, &PyTuple_Type, &args, &PyDict_Type,
                          &kwargs))
      return nullptr;
    Ref items(checked(PySequence_Fast(relevant, "expected the relevant arguments")));
    Overrides overrides;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i)
      overrides.look_at(PySequence_Fast_GET_ITEM(items.get(), i));
    return call_with(function, overrides, args, kwargs);
  });
}

PyMethodDef opt_out_method = {"_disabled_torch_function_impl", run_unasked<DisabledScope>,
                              METH_VARARGS,
                              "The __torch_function__ of classes that do not take over ops."};
PyMethodDef methods[] = {
    {"_set_overrides_disabled", set_disabled, METH_O, "Turns __torch_function__ off or on."},
    {"_push_function_mode", push_mode, METH_O, "Lets a mode take over what this thread calls."},
    {"_pop_function_mode", pop_mode, METH_NOARGS, "Ends the innermost mode of this thread."},
    {"_function_modes", list_modes, METH_NOARGS, "The modes of this thread, the innermost last."},
    {"_is_torch_function_mode_enabled", some_mode, METH_NOARGS,
     "Whether a mode takes over what this thread calls."},
    {"_has_torch_function", has_override, METH_O, "Whether one of the arguments takes over."},
    {"_argument_takes_over", argument_takes_over, METH_VARARGS,
     "Whether the class of one of the arguments takes over, modes aside."},
    {"_call_taken_over", call_taken_over, METH_VARARGS,
     "Calls the __torch_function__ of the arguments of a function that take over."},
    {"_handle_torch_function", handle_override, METH_VARARGS,
     "Calls the __torch_function__ of the arguments that take over."},
    {}};

}  // namespace

bool object_takes_over(PyObject* object) {
  Overrides overrides;
  overrides.look_at(object);
  return mode_count || !overrides.empty();
}

bool mode_hears() {
  if (modes.empty()) return false;
  Ref answer(PyObject_GetAttrString(modes.back(), "_hears_attributes"));
  PyErr_Clear();
  return answer.get() == Py_True;
}

PyObject* call_override(PyObject* function, PyObject* const* args, Py_ssize_t nargs,
                        PyObject* keywords) {
  Overrides overrides;
  Py_ssize_t keyword_count = keywords ? PyTuple_GET_SIZE(keywords) : 0;
  for (Py_ssize_t i = 0; i < nargs + keyword_count; ++i) overrides.look_at(args[i]);
  if (modes.empty() && overrides.empty()) return nullptr;
  Ref positional(checked(PyTuple_New(nargs))), named(checked(PyDict_New()));
  for (Py_ssize_t i = 0; i < nargs; ++i) PyTuple_SET_ITEM(positional.get(), i, Py_NewRef(args[i]));
  for (Py_ssize_t i = 0; i < keyword_count; ++i)
    checked(PyDict_SetItem(named.get(), PyTuple_GET_ITEM(keywords, i), args[nargs + i]));
  PyObject* result = call_with(function, overrides, positional.get(), named.get());
  return checked(result);
}

PyObject* call_override(const char* method, std::initializer_list<PyObject*> args) {
  Ref function(checked(PyObject_GetAttrString(reinterpret_cast<PyObject*>(tensor_class), method)));
  return call_override(function.get(), args.begin(), Py_ssize_t(args.size()), nullptr);
}

PyObject* call_mode(PyObject* module, const char* function, PyObject* args, PyObject* kwargs) {
  if (modes.empty()) return nullptr;
  Ref own(checked(PyObject_GetAttrString(module, function)));
  Ref named = kwargs ? Ref::borrow(kwargs) : Ref(checked(PyDict_New()));
  return checked(call_with(own.get(), {}, args, named.get()));
}

void note_tensor_class(PyTypeObject* type) {
  if (reinterpret_cast<TensorMeta*>(type)->dispatches && has_default_method(type))
    checked(PyObject_SetAttrString(reinterpret_cast<PyObject*>(type), kMethod, opted_out));
  reinterpret_cast<TensorMeta*>(type)->takes_over = has_method(type);
}

void add_override(PyObject* module) {
  opted_out = checked(PyCFunction_New(&opt_out_method, nullptr));
  checked(PyModule_AddObjectRef(module, opt_out_method.ml_name, opted_out));
  checked(PyModule_AddFunctions(module, methods));
}

}  // namespace rushlight::python
