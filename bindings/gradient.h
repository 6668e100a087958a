// Declares the attributes of a tensor that hold its gradient.
#pragma once

#include "bindings/python.h"
#include "core/autograd/node.h"

namespace rushlight::python {

// The form in which a leaf collects its gradient.
ResultInfo info_of_grad(const Tensor& tensor);

PyObject* get_grad(PyObject* self, void*);
int set_grad(PyObject* self, PyObject* value, void*);
PyObject* get_grad_dtype(PyObject* self, void*);
int set_grad_dtype(PyObject* self, PyObject* value, void*);

}  // namespace rushlight::python
