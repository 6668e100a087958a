// Owns the Python class Generator.
#include "bindings/python.h"

namespace rushlight::python {

PyObject* wrap_generator(Generator*) { return nullptr; }
bool read_generator(PyObject*, Generator*&) { return false; }
void add_generator(PyObject*) {}

}  // namespace rushlight::python
