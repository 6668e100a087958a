// Declares the attributes of the Python type of tensors.
#pragma once

#include "bindings/python.h"

namespace rushlight::python {

extern PyGetSetDef tensor_attributes[];

}  // namespace rushlight::python
