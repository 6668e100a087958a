// Declares the binding of core/device/nccl.h.
#pragma once

#include "bindings/python.h"

namespace rushlight::python {

void add_nccl(PyObject* module);

}  // namespace rushlight::python
