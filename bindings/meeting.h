// Declares the binding of core/device/meeting.h.
#pragma once

#include "bindings/python.h"

namespace rushlight::python {

void add_meeting(PyObject* module);

}  // namespace rushlight::python
