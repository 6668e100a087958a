// Owns how modes, and classes with a __torch_function__ of their own, are told of attributes, and
// of methods that are no ops.
//
// Instances of such classes look attributes up here, and while a mode is in force all tensors do.
// Otherwise these do not, so that they pay nothing.
#include <unordered_map>
#include <utility>

#include "bindings/override.h"

namespace rushlight::python {

namespace {

// What is done about a member of Tensor; both live as long as the process.
struct Told {
  PyObject* read;   // a function that becomes a method, else what __torch_function__ is told of
  PyObject* write;  // the same for setting it; None for methods
};
std::unordered_map<PyObject*, Told> told;

TensorMeta& meta_of(PyTypeObject* type) { return *reinterpret_cast<TensorMeta*>(type); }

const Told* find_told(PyObject* self, PyObject* name) {
  if (!hears_attributes(self)) return nullptr;
  auto found = told.find(_PyType_Lookup(Py_TYPE(self), name));
  return found == told.end() ? nullptr : &found->second;
}

PyObject* read(PyObject* self, PyObject* name) {
  const Told* member = find_told(self, name);
  if (!member) return meta_of(Py_TYPE(self)).read(self, name);
  if (PyFunction_Check(member->read)) return PyMethod_New(member->read, self);
  return guarded([&] { return call_override(member->read, &self, 1, nullptr); });
}

int write(PyObject* self, PyObject* name, PyObject* value) {
  const Told* member = value ? find_told(self, name) : nullptr;
  if (!member || member->write == Py_None) return meta_of(Py_TYPE(self)).write(self, name, value);
  return guarded([&] {
    PyObject* args[] = {self, value};
    Py_DECREF(call_override(member->write, args, 2, nullptr));
    return 0;
  });
}

// The class's own __torch_function__, not the one of Tensor.
bool has_own_method(PyTypeObject* type) {
  auto* object = reinterpret_cast<PyObject*>(type);
  auto* base = reinterpret_cast<PyObject*>(tensor_class);
  Ref method(checked(PyObject_GetAttrString(object, "__torch_function__")));
  Ref common(checked(PyObject_GetAttrString(base, "__torch_function__")));
  return !PyMethod_Check(method.get()) ||
         PyMethod_GET_FUNCTION(method.get()) != PyMethod_GET_FUNCTION(common.get());
}

bool wants_to_hear(PyTypeObject* type) {
  if (!tensor_class || !meta_of(type).takes_over || !has_own_method(type)) return false;
  auto* object = reinterpret_cast<PyObject*>(type);
  Ref answer(checked(PyObject_GetAttrString(object, "_hears_attributes")));
  return answer.get() == Py_True;
}

// (member, read, write)
PyObject* tell_of(PyObject*, PyObject* all) {
  PyObject *member, *read, *write;
  if (!PyArg_ParseTuple(all, "OOO", &member, &read, &write)) return nullptr;
  if (told.try_emplace(member, Told{read, write}).second)
    for (PyObject* object : {member, read, write}) Py_INCREF(object);
  Py_RETURN_NONE;
}

// Whether modes are told, so that all classes of tensors look attributes up here.
bool modes_hear = false;
// How often that may end again. Python caches lookups in a class for a limited number of changes.
int ends_left = 100;

// Puts `ours` into a slot of a class, or back what was there. A program may have changed it since.
template <class Slot>
void choose(Slot& slot, Slot ours, Slot& theirs, bool here) {
  if (here && slot != ours) theirs = std::exchange(slot, ours);
  if (!here && slot == ours) slot = theirs;
}

void choose_lookup(PyTypeObject* type) {
  TensorMeta& meta = meta_of(type);
  bool here = meta.hears || modes_hear;
  choose<getattrofunc>(type->tp_getattro, read, meta.read, here);
  choose<setattrofunc>(type->tp_setattro, write, meta.write, here);
  PyType_Modified(type);
}

void choose_lookup_of_subclasses(PyTypeObject* type) {
  choose_lookup(type);
  Ref subclasses(
      checked(PyObject_CallMethod(reinterpret_cast<PyObject*>(type), "__subclasses__", nullptr)));
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(subclasses.get()); ++i)
    choose_lookup_of_subclasses(
        reinterpret_cast<PyTypeObject*>(PyList_GET_ITEM(subclasses.get(), i)));
}

}  // namespace

void note_hearing(PyTypeObject* type) {
  TensorMeta& meta = meta_of(type);
  meta.hears = wants_to_hear(type);
  meta.read = type->tp_getattro == read ? PyObject_GenericGetAttr : type->tp_getattro;
  meta.write = type->tp_setattro == write ? PyObject_GenericSetAttr : type->tp_setattro;
  if (meta.hears || modes_hear) choose_lookup(type);
}

void let_modes_hear(bool hear) {
  if (hear == modes_hear || (!hear && ends_left == 0)) return;
  if (!hear) --ends_left;
  modes_hear = hear;
  choose_lookup_of_subclasses(tensor_class);
}

void add_told(PyObject* module) {
  static PyMethodDef methods[] = {
      {"_tell_of", tell_of, METH_VARARGS, "Lets classes be told of a member of Tensor."},
      {"_hears_attributes",
       [](PyObject*, PyObject* tensor) { return PyBool_FromLong(hears_attributes(tensor)); },
       METH_O, "Whether the class of a tensor is told of its attributes."},
      {}};
  checked(PyModule_AddFunctions(module, methods));
}

}  // namespace rushlight::python
