// Declares the Python object of a node, for those that add to it.
#pragma once

#include "bindings/python.h"
#include "core/autograd/node.h"

namespace rushlight::python {

struct PyNode {
  PyObject_HEAD NodePtr node;
};

extern PyTypeObject NodeType;

}  // namespace rushlight::python
