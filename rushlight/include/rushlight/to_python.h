// Owns how values of the C++ API become objects of Python.
#pragma once

#include <rushlight/tensor_base.h>

namespace at {

namespace py = pybind11;

namespace detail {

using namespace c10::detail;

// A tensor as an object of Python, and back; the caller holds the interpreter lock.
inline py::object to_python(const TensorBase& tensor) {
  if (!tensor.defined()) return py::none();
  PyObject* object = table().to_python(tensor.handle());
  if (!object) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(object);
}
inline py::object to_python(ScalarType type) {
  return py::module_::import("rushlight").attr(python_name(type));
}
inline py::object to_python(const Device& device) {
  return py::module_::import("rushlight").attr("device")(device.str());
}
inline py::object to_python(MemoryFormat format) {
  static constexpr const char* names[] = {"contiguous_format", "preserve_format", "channels_last",
                                          "channels_last_3d"};
  return py::module_::import("rushlight").attr(names[int(format)]);
}
inline py::object to_python(const Scalar& number) {
  if (number.isBoolean()) return py::bool_(number.toBool());
  if (number.isIntegral()) return py::int_(number.toLong());
  if (number.isFloatingPoint()) return py::float_(number.toDouble());
  return py::reinterpret_steal<py::object>(
      PyComplex_FromDoubles(number.toComplexDouble().real(), number.toComplexDouble().imag()));
}

}  // namespace detail

}  // namespace at
