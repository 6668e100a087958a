// Owns how optimizers count the steps of parameters, which takes longer in Python than the rest.
#pragma once

#include "bindings/python.h"

namespace rushlight::python {

void add_steps(PyObject* module);

}  // namespace rushlight::python
