// Everything that an extension may use.
#pragma once

#include <rushlight/autograd.h>
#include <rushlight/dispatch.h>
#include <rushlight/library.h>

namespace py = pybind11;

#ifdef TORCH_EXTENSION_NAME
// Python has to see it; those that are written without pybind11 do not say so.
extern "C" PYBIND11_EXPORT PyObject* RUSHLIGHT_JOINED(PyInit_, TORCH_EXTENSION_NAME)();
#endif
