// Owns nn.Module.__call__, where a module without hooks goes straight to its forward, and how the
// attributes of modules are read.
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
  PyObject* kinds = PyUnicode_InternFromString("_kinds");
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

getattrofunc read_and_ask_getattr = nullptr;  // Python's, of every class with a __getattr__

// The first class is one as Python made it.
PyObject* set_reads(PyObject* cls, getattrofunc reads) {
  auto* type = reinterpret_cast<PyTypeObject*>(cls);
  if (!read_and_ask_getattr) read_and_ask_getattr = type->tp_getattro;
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

// Whether a property, or the like, of the class goes before an attribute of the object.
bool is_shadowed(PyObject* self, PyObject* name) {
  PyObject* found = _PyType_Lookup(Py_TYPE(self), name);  // borrowed
  return found && Py_TYPE(found)->tp_descr_set;
}

PyObject* read_or_ask_for_member(PyObject* self, PyObject* name) {
  Ref attributes(PyObject_GenericGetDict(self, nullptr));
  if (!attributes) return nullptr;
  PyObject* kinds = PyDict_GetItemWithError(attributes.get(), names().kinds);  // borrowed
  if (!kinds && PyErr_Occurred()) return nullptr;
  int is_member = kinds ? PyDict_Contains(kinds, name) : 0;
  if (is_member < 0) return nullptr;
  if (!is_member || is_shadowed(self, name)) return read_and_ask_getattr(self, name);
  return stay_at_exit([&] { return PyObject_CallMethodOneArg(self, names().getattr, name); });
}

// _read_members_by_getattr(cls): members are attributes that Python finds by itself, but in PyTorch
// a class's own __getattr__ gives them; so it is asked for them here, too. It also gives those that
// have the name of a property that raises AttributeError.
PyObject* read_members_by_getattr(PyObject*, PyObject* cls) {
  return set_reads(cls, read_or_ask_for_member);
}

PyMethodDef member_reads = {"_read_members_by_getattr", read_members_by_getattr, METH_O,
                            "Lets a class's own __getattr__ be asked for members."};

PyMethodDef direct_reads = {"_read_attributes_directly", read_attributes_directly, METH_O,
                            "Lets a class's own __getattr__ be called by name only."};

}  // namespace

void add_module_call(PyObject* module) {
  for (PyMethodDef* method : {&direct_reads, &member_reads}) {
    Ref function(checked(PyCFunction_New(method, nullptr)));
    checked(PyModule_AddObjectRef(module, method->ml_name, function.get()));
  }
  Ref descriptor(checked(PyDescr_NewMethod(&PyBaseObject_Type, &call_method)));
  checked(PyModule_AddObjectRef(module, "_module_call", descriptor.get()));
}

}  // namespace rushlight::python
