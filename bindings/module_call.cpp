// Owns nn.Module.__call__: a module without hooks goes straight to its forward.
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
  return PyObject_VectorcallMethod(method, slots + 1,
                                   size_t(count + 1) | PY_VECTORCALL_ARGUMENTS_OFFSET, keywords);
}

PyMethodDef call_method = {
    "__call__", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(call)),
    METH_FASTCALL | METH_KEYWORDS, "Runs forward(*args, **kwargs) and the hooks around it."};

}  // namespace

void add_module_call(PyObject* module) {
  Ref descriptor(checked(PyDescr_NewMethod(&PyBaseObject_Type, &call_method)));
  checked(PyModule_AddObjectRef(module, "_module_call", descriptor.get()));
}

}  // namespace rushlight::python
