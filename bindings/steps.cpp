// Counts the steps of parameters; each state of an optimizer has its number in "step", a tensor.
#include "bindings/steps.h"

namespace rushlight::python {
namespace {

// Adds 1 to a float32 scalar on the CPU, as they are unless a program put something else there.
bool count_in_place(PyObject* count, double& number) {
  if (Py_TYPE(count) != tensor_class) return false;
  const Tensor& t = unwrap(count);
  if (t.is_hollow() || t.dtype() != DType::float32 || t.numel() != 1 || !t.device().is_cpu())
    return false;
  number = *t.data<float>() += 1;
  t.storage()->bump_version("add_");
  return true;
}

// _count_steps(states) -> how many steps each has now
PyObject* count_steps(PyObject*, PyObject* states) {
  return guarded([&] {
    Ref key(checked(PyUnicode_InternFromString("step")));
    CHECK(PyList_Check(states), ErrorKind::kType, "the states must be a list");
    Py_ssize_t size = PyList_GET_SIZE(states);
    Ref counts(checked(PyList_New(size)));
    for (Py_ssize_t i = 0; i < size; i++) {
      Ref state = Ref::borrow(checked(PyList_GetItem(states, i)));  // Python code may shorten it
      Ref count(checked(PyObject_GetItem(state.get(), key.get())));
      double number;
      if (!count_in_place(count.get(), number)) {
        Ref one(checked(PyLong_FromLong(1)));
        Ref next(checked(PyNumber_InPlaceAdd(count.get(), one.get())));
        if (PyObject_SetItem(state.get(), key.get(), next.get()) < 0) throw PythonError();
        number = PyFloat_AsDouble(next.get());
        if (number == -1 && PyErr_Occurred()) throw PythonError();
      }
      PyList_SET_ITEM(counts.get(), i, checked(PyFloat_FromDouble(number)));
    }
    return counts.release();
  });
}

}  // namespace

void add_steps(PyObject* module) {
  static PyMethodDef methods[] = {
      {"_count_steps", count_steps, METH_O,
       "Adds 1 to the \"step\" of states, a list of dicts; returns what they are then."},
      {}};
  checked(PyModule_AddFunctions(module, methods));
}

}  // namespace rushlight::python
