// Owns nn.Module.__call__, where a module without hooks goes straight to its forward, and how the
// attributes of modules are read and shown.
//
// In Python this call would cost as much as a small op. It is a method descriptor, so the
// interpreter hands over the arguments without a tuple or a dict.
#include "bindings/module_call.h"

#include <array>
#include <vector>

namespace rushlight::python {
namespace {

constexpr size_t kFewArguments = 8;

struct Names {
  PyObject* hooks = PyUnicode_InternFromString("_hooks");
  PyObject* forward = PyUnicode_InternFromString("forward");
  PyObject* getattr = PyUnicode_InternFromString("__getattr__");
  PyObject* with_hooks = PyUnicode_InternFromString("_call_with_hooks");
};
const Names& names() {
  static const Names instance;
  return instance;
}

PyObject* call(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* keywords) {
  Ref hooks(PyObject_GetAttr(self, names().hooks));
  if (!hooks) return nullptr;
  PyObject* method = hooks.get() == Py_None ? names().forward : names().with_hooks;
  size_t total = size_t(count) + (keywords ? size_t(PyTuple_GET_SIZE(keywords)) : 0);
  std::array<PyObject*, kFewArguments + 2> few;
  std::vector<PyObject*> many(total > kFewArguments ? total + 2 : 0);
  PyObject** slots = many.empty() ? few.data() : many.data();
  slots[0] = nullptr;  // for the callee, who may put an argument of its own here
  slots[1] = self;
  std::copy(args, args + total, slots + 2);
  return stay_at_exit([&] {
    return PyObject_VectorcallMethod(method, slots + 1,
                                     size_t(count + 1) | PY_VECTORCALL_ARGUMENTS_OFFSET, keywords);
  });
}

PyMethodDef call_method = {
    "__call__", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(call)),
    METH_FASTCALL | METH_KEYWORDS, "Runs forward(*args, **kwargs) and the hooks around it."};

// A class that Python made; those of C are shared by all.
bool is_made_by_python(PyObject* cls) {
  if (PyType_Check(cls) &&
      PyType_HasFeature(reinterpret_cast<PyTypeObject*>(cls), Py_TPFLAGS_HEAPTYPE))
    return true;
  PyErr_Format(PyExc_TypeError, "expected a class of Python's, not %R", cls);
  return false;
}

PyObject* set_reads(PyObject* cls, getattrofunc reads) {
  if (!is_made_by_python(cls)) return nullptr;
  auto* type = reinterpret_cast<PyTypeObject*>(cls);
  type->tp_getattro = reads;
  PyType_Modified(type);
  Py_RETURN_NONE;
}

// _read_attributes_directly(cls): a class with a __getattr__ has Python look for that at every read
// of an attribute, which costs 50 ns. nn.Module's only says what is missing, as Python does by
// itself; a class that has no other is given the reads of a class without.
PyObject* read_attributes_directly(PyObject*, PyObject* cls) {
  return set_reads(cls, PyObject_GenericGetAttr);
}

PyObject* read_or_ask_getattr(PyObject* self, PyObject* name) {
  // No error is made where there is nothing, or a property that raises AttributeError.
  PyObject* found = _PyObject_GenericGetAttrWithDict(self, name, nullptr, 1);
  if (found || PyErr_Occurred()) return found;
  PyTypeObject* type = Py_TYPE(self);
  Ref method = Ref::borrow(_PyType_Lookup(type, names().getattr));
  if (!method) {
    PyErr_SetObject(PyExc_AttributeError, name);
    return nullptr;
  }
  if (!PyType_HasFeature(Py_TYPE(method.get()), Py_TPFLAGS_METHOD_DESCRIPTOR)) {
    if (auto bind = Py_TYPE(method.get())->tp_descr_get)
      method = Ref(bind(method.get(), self, reinterpret_cast<PyObject*>(type)));
    return method ? stay_at_exit([&] { return PyObject_CallOneArg(method.get(), name); }) : nullptr;
  }
  PyObject* args[] = {self, name};
  return stay_at_exit([&] { return PyObject_Vectorcall(method.get(), args, 2, nullptr); });
}

// _ask_getattr(cls): reads in which __getattr__ is asked for what Python does not find, which are
// those of Python but for the cost of an error.
PyObject* ask_getattr(PyObject*, PyObject* cls) { return set_reads(cls, read_or_ask_getattr); }

PyMethodDef asking_reads = {
    "_ask_getattr", ask_getattr, METH_O,
    "Lets the __getattr__ of a class be asked for what Python does not find."};

PyMethodDef direct_reads = {"_read_attributes_directly", read_attributes_directly, METH_O,
                            "Lets a class's own __getattr__ be called by name only."};

// What vars() shows of a module, and what setting it does, are functions of Python's.
PyObject* shown_dict = nullptr;
PyObject* taken_dict = nullptr;

PyObject* get_dict(PyObject* self, void*) {
  return stay_at_exit([&] { return PyObject_CallOneArg(shown_dict, self); });
}

int set_dict(PyObject* self, PyObject* value, void*) {
  if (!value) {
    PyErr_SetString(PyExc_TypeError, "cannot delete __dict__");
    return -1;
  }
  Ref done(
      stay_at_exit([&] { return PyObject_CallFunctionObjArgs(taken_dict, self, value, nullptr); }));
  return done ? 0 : -1;
}

PyGetSetDef dict_attribute = {"__dict__", get_dict, set_dict, "The attributes of a module.",
                              nullptr};

// _show_as_dict(cls, get, set): lets get(module) be the __dict__ of instances. A property would do
// so, too, but inspect.getattr_static and checks of protocols look past the attributes then.
PyObject* show_as_dict(PyObject*, PyObject* args) {
  PyObject *cls, *get, *set;
  if (!PyArg_ParseTuple(args, "OOO", &cls, &get, &set) || !is_made_by_python(cls)) return nullptr;
  auto* type = reinterpret_cast<PyTypeObject*>(cls);
  Ref descriptor(PyDescr_NewGetSet(type, &dict_attribute));
  if (!descriptor || PyDict_SetItemString(type->tp_dict, "__dict__", descriptor.get()) < 0) {
    return nullptr;
  }
  Py_XSETREF(shown_dict, Py_NewRef(get));
  Py_XSETREF(taken_dict, Py_NewRef(set));
  PyType_Modified(type);
  Py_RETURN_NONE;
}

PyMethodDef dict_shows = {"_show_as_dict", show_as_dict, METH_VARARGS,
                          "Lets a function give the __dict__ of the instances of a class."};

// _entry_reader(name): a function that returns the entry of a name in the own dictionary of its
// argument. A property of it is read without a frame of Python's.
PyObject* read_entry(PyObject* name, PyObject* self) {
  Ref own(PyObject_GenericGetDict(self, nullptr));
  if (!own) return nullptr;
  PyObject* found = PyDict_GetItemWithError(own.get(), name);
  if (!found && !PyErr_Occurred())
    PyErr_Format(PyExc_AttributeError, "'%.100s' object has no attribute '%U'",
                 Py_TYPE(self)->tp_name, name);
  return Py_XNewRef(found);
}
PyMethodDef read_entry_method = {"read_entry", read_entry, METH_O,
                                 "An entry of the own dictionary of an object."};

PyObject* entry_reader(PyObject*, PyObject* name) {
  if (PyUnicode_Check(name)) return PyCFunction_New(&read_entry_method, name);
  PyErr_Format(PyExc_TypeError, "expected a name, not %R", name);
  return nullptr;
}
PyMethodDef entry_readers = {"_entry_reader", entry_reader, METH_O,
                             "A function that reads an entry of the own dictionary of an object."};

}  // namespace

void add_module_call(PyObject* module) {
  for (PyMethodDef* method : {&direct_reads, &asking_reads, &dict_shows, &entry_readers}) {
    Ref function(checked(PyCFunction_New(method, nullptr)));
    checked(PyModule_AddObjectRef(module, method->ml_name, function.get()));
  }
  Ref descriptor(checked(PyDescr_NewMethod(&PyBaseObject_Type, &call_method)));
  checked(PyModule_AddObjectRef(module, "_module_call", descriptor.get()));
}

}  // namespace rushlight::python
