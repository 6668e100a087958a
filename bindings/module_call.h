// Declares the call of nn.Module for module.cpp.
#pragma once

#include "bindings/python.h"

namespace rushlight::python {

void add_module_call(PyObject* module);

}  // namespace rushlight::python
