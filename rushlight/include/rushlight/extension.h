// Everything that an extension may use.
#pragma once

#include <rushlight/autograd.h>
#include <rushlight/dispatch.h>
#include <rushlight/library.h>

namespace py = pybind11;
