// Owns the bridge between C++ and Python exceptions.
#include <cctype>
#include <cstring>
#include <new>
#include <stdexcept>

#include "bindings/python.h"

namespace rushlight::python {
namespace {

PyObject* class_of(ErrorKind kind) {
  // Classes that Python lacks live in the package; they subclass RuntimeError.
  auto from_package = [](const char* name) -> PyObject* {
    Ref module(PyImport_ImportModule("rushlight._errors"));
    PyObject* type = module ? PyObject_GetAttrString(module.get(), name) : nullptr;
    if (!type) PyErr_Clear();
    return type ? type : Py_NewRef(PyExc_RuntimeError);
  };
  switch (kind) {
    case ErrorKind::kRuntime: return Py_NewRef(PyExc_RuntimeError);
    case ErrorKind::kValue: return Py_NewRef(PyExc_ValueError);
    case ErrorKind::kType: return Py_NewRef(PyExc_TypeError);
    case ErrorKind::kIndex: return Py_NewRef(PyExc_IndexError);
    case ErrorKind::kAssertion: return Py_NewRef(PyExc_AssertionError);
    case ErrorKind::kNotImplemented: return Py_NewRef(PyExc_NotImplementedError);
    case ErrorKind::kOutOfMemory: return from_package("OutOfMemoryError");
    case ErrorKind::kLinAlg: return from_package("LinAlgError");
  }
  return Py_NewRef(PyExc_RuntimeError);
}

// A text as a sentence: authors need not end it.
std::string sentence(std::string text) {
  char last = text.empty() ? '.' : text.back();
  if (std::isalnum(static_cast<unsigned char>(last)) || std::strchr(")]}'\"", last)) text += '.';
  return text;
}

// A Python exception on its way through C++ frames that may run without the lock.
class CarriedPythonError : public std::exception {
 public:
  CarriedPythonError() { PyErr_Fetch(&type_, &value_, &traceback_); }
  CarriedPythonError(const CarriedPythonError& other)
      : type_(other.type_), value_(other.value_), traceback_(other.traceback_) {
    AcquireGil gil;
    Py_XINCREF(type_);
    Py_XINCREF(value_);
    Py_XINCREF(traceback_);
  }
  ~CarriedPythonError() override {
    AcquireGil gil;
    Py_XDECREF(type_);
    Py_XDECREF(value_);
    Py_XDECREF(traceback_);
  }
  void restore() const {
    PyErr_Restore(Py_XNewRef(type_), Py_XNewRef(value_), Py_XNewRef(traceback_));
  }

 private:
  PyObject *type_, *value_, *traceback_;
};

}  // namespace

void set_python_error() noexcept {
  auto set_out_of_memory = [] {
    Ref type(class_of(ErrorKind::kOutOfMemory));
    PyErr_SetString(type.get(), "out of memory");
  };
  try {
    throw;
  } catch (const PythonError&) {
    // already set
  } catch (const CarriedPythonError& error) {
    error.restore();
  } catch (const Error& error) {
    Ref type(class_of(error.kind()));
    PyErr_SetString(type.get(), sentence(error.what()).c_str());
  } catch (const std::bad_alloc&) {
    set_out_of_memory();
  } catch (const std::length_error&) {  // a vector of more elements than there are addresses
    set_out_of_memory();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
}

void throw_python_error() { throw CarriedPythonError(); }

}  // namespace rushlight::python
