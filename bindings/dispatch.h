// Declares the protocol by which Python runs ops: __torch_dispatch__; see Note [Dispatch to Python]
// in core/tensor/dispatch.h.
//
// A handler is called as handler(func, types, args, kwargs): func is what torch.ops.aten has by the
// name of the op, which rushlight/_dispatch finds; types are the classes among the arguments that
// have a __torch_dispatch__.
#pragma once

#include "bindings/python.h"

namespace rushlight::python {

// The Python object of a fresh tensor as one of a class.
PyObject* wrap_in_class(PyTypeObject* type, const Tensor& tensor);

// Notes of a fresh class whether it has.
void note_dispatch(PyTypeObject* type);

// What modes and the tensor's class make of a method that is no op. False when nobody is asked.
bool dispatch_method(const char* name, const Tensor& tensor, Ref& result);

// What modes make of a tensor with numbers that the program gave, as aten.lift_fresh.
Tensor lift_fresh(const Tensor& tensor);

void add_dispatch(PyObject* module);

}  // namespace rushlight::python
