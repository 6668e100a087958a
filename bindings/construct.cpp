// Owns torch.tensor and its kin: nested Python data to a fresh tensor.
#include <cstring>
#include <utility>
#include <vector>

#include "bindings/dispatch.h"
#include "bindings/override.h"
#include "bindings/python.h"
#include "core/autograd/node.h"
#include "core/ops/ops.h"
#include "core/tensor/default_device.h"
#include "core/tensor/tile_loop.h"

namespace rushlight::python {
namespace {

// Whether it is an array or a number of NumPy, both of which know their dtype.
bool is_array(PyObject* object) {
  if (PyFloat_CheckExact(object) || PyLong_CheckExact(object) || PyBool_Check(object) ||
      PyList_CheckExact(object))
    return false;
  return has_array_interface(object) && PyObject_HasAttrString(object, "dtype");
}

// Whether it is a number of NumPy, which unlike its arrays has a hash.
bool is_array_number(PyObject* object) {
  return Py_TYPE(object)->tp_hash != PyObject_HashNotImplemented && is_array(object);
}

// The dtype of a number of NumPy; false for other objects. Lists hold many of one type, so the last
// one is remembered.
bool read_number_dtype(PyObject* object, DType& out) {
  static PyTypeObject* last_type = nullptr;
  static DType last_dtype;
  PyTypeObject* type = Py_TYPE(object);
  if (type != last_type) {
    if (!is_array_number(object)) return false;
    last_dtype = tensor_from_array(object, true).dtype();
    Py_XDECREF(last_type);
    last_type = reinterpret_cast<PyTypeObject*>(Py_NewRef(type));
  }
  out = last_dtype;
  return true;
}

// An object of DLPack that is neither a tensor nor an array, as a tensor on its memory.
bool read_shared(PyObject* object, Tensor& out) {
  if (PyFloat_CheckExact(object) || PyLong_CheckExact(object) || PyBool_Check(object) ||
      PyList_CheckExact(object) || PyTuple_CheckExact(object) ||
      !PyObject_HasAttrString(object, "__dlpack__"))
    return false;
  Ref module(checked(PyImport_ImportModule("rushlight.utils.dlpack")));
  Ref shared(checked(PyObject_CallMethod(module.get(), "from_dlpack", "O", object)));
  out = unwrap(shared.get());
  return true;
}

bool is_sequence(PyObject* object) {
  return PyList_Check(object) || PyTuple_Check(object) ||
         (PySequence_Check(object) && !PyUnicode_Check(object) && !PyBytes_Check(object) &&
          !PyDict_Check(object) && !is_tensor(object));
}

// The items of a sequence. A list is copied, because the numbers in it may run Python code that
// changes it.
Ref items_of(PyObject* sequence) { return Ref(checked(PySequence_Tuple(sequence))); }

// A tensor, or an array as one: what nested data may hold in place of sequences.
bool read_whole(PyObject* object, Tensor& out) {
  if (is_tensor(object)) out = unwrap(object);
  else if (is_array(object)) out = tensor_from_array(object, true);
  else return false;
  return true;
}

Shape shape_of(PyObject* data) {
  Shape shape;
  Ref level = Ref::borrow(data);
  while (true) {
    Tensor whole;
    if (read_whole(level.get(), whole)) {
      // In a sequence, a tensor of one element is a number, whatever its shape.
      bool is_number = !shape.empty() && is_tensor(level.get()) && whole.numel() == 1;
      if (!is_number)
        for (int64_t size : whole.sizes()) shape.push_back(size);
      return shape;
    }
    // Where the first number should be, a text is one dim too many, as PyTorch has it.
    CHECK(shape.empty() || !PyUnicode_Check(level.get()), ErrorKind::kValue,
          "too many dimensions 'str': a tensor holds numbers, not text");
    if (!is_sequence(level.get())) return shape;
    Ref items(PySequence_Tuple(level.get()));
    if (!items && PyErr_ExceptionMatches(PyExc_Exception)) {
      PyErr_Clear();
      CHECK(false, ErrorKind::kValue, "could not determine the shape of object type '",
            Py_TYPE(level.get())->tp_name, "': it has no item at each place below its length");
    }
    Py_ssize_t count = PyTuple_GET_SIZE(checked(items.get()));
    shape.push_back(count);
    CHECK(shape.size() <= kMaxDims, ErrorKind::kValue,
          "too many dimensions: the data is nested deeper than ", kMaxDims);
    if (count == 0) return shape;
    level = Ref::borrow(PyTuple_GET_ITEM(items.get(), 0));
  }
}

// As read_number, but an int beyond 64 bits is read as the float that it becomes.
bool read_wide_number(PyObject* object, Scalar& out) {
  try {
    return read_number(object, out);
  } catch (const PythonError&) {
    if (!PyLong_Check(object) || !PyErr_ExceptionMatches(PyExc_OverflowError)) throw;
    PyErr_Clear();
    double rounded = PyLong_AsDouble(object);
    if (PyErr_Occurred()) throw;
    out = rounded;
    return true;
  }
}

// `is_wide` where ints beyond 64 bits become floats.
Scalar number_in(PyObject* object, bool is_wide) {
  Scalar value;
  if (is_tensor(object)) return item_of(unwrap(object));
  DType dtype;
  bool is_real = read_number_dtype(object, dtype) && !is_complex(dtype);
  if (!is_real && is_array(object)) return item(tensor_from_array(object, true));
  CHECK(is_wide ? read_wide_number(object, value) : read_number(object, value), ErrorKind::kType,
        "new(): invalid data type '", Py_TYPE(object)->tp_name, "'");
  return value;
}

// The dtype of a number of Python.
DType dtype_of_number(PyObject* object) {
  Scalar value;
  CHECK(PyUnicode_Check(object) || PyBytes_Check(object) || read_wide_number(object, value),
        "Could not infer dtype of ", Py_TYPE(object)->tp_name,
        ". The data must be numbers, tensors, arrays or sequences of them.");
  value = number_in(object, true);
  bool beyond_64_bits = PyLong_Check(object) && value.dtype() == DType::float64;
  CHECK(beyond_64_bits || !value.exceeds_int64(), ErrorKind::kValue,
        "Overflow when unpacking long: ", value,
        " does not fit into int64. Pass dtype=torch.uint64.");
  CHECK(!beyond_64_bits, ErrorKind::kValue, "Overflow when unpacking long long: ", value,
        " does not fit into 64 bits. Pass a floating-point dtype.");
  if (value.dtype() == DType::float64) return default_dtype();
  if (value.dtype() == DType::complex128) return complex_dtype(default_dtype());
  return value.dtype();
}

// The dtype that holds all numbers of data that has `dims` dims: deeper there are none, but maybe
// the data itself again.
void widen(PyObject* data, size_t dims, DType& dtype, bool& any) {
  DType found;
  Tensor whole;
  if (!read_number_dtype(data, found)) {
    if (read_whole(data, whole)) {
      found = whole.dtype();
    } else if (is_sequence(data)) {
      if (dims == 0) return;  // fill says what is wrong
      Ref items = items_of(data);
      for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(items.get()); ++i)
        widen(PyTuple_GET_ITEM(items.get(), i), dims - 1, dtype, any);
      return;
    } else {
      found = dtype_of_number(data);
    }
  }
  dtype = any ? promote(dtype, found) : found;
  any = true;
}

// A number as an element. What scalar_tensor refuses, and what wraps around there, does so here.
template <class T>
T number_as(const Scalar& value) {
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
    bool fits =
        value.is_integral() && !value.exceeds_int64() && std::in_range<T>(value.to<int64_t>());
    if (!fits) return *scalar_tensor(value, dtype_of<T>).template data<T>();
  }
  return value.to<T>();
}

template <class T>
void fill(PyObject* data, ShapeRef shape, size_t dim, T*& at) {
  Tensor t;
  if (dim < shape.size() && read_whole(data, t)) {
    Tensor piece = to_contiguous(to_dtype(t, dtype_of<T>));
    CHECK(same_shape(t.sizes(), shape.subspan(dim)), ErrorKind::kValue,
          "expected a tensor of shape ", ShapeText{shape.subspan(dim)}, " at depth ", dim, ", got ",
          t.sizes());
    std::memcpy(at, piece.data(), size_t(piece.numel()) * sizeof(T));
    at += piece.numel();
    return;
  }
  if (dim == shape.size()) {
    CHECK(!is_sequence(data) || is_array(data), ErrorKind::kType, "expected a number at depth ",
          dim, ", got a sequence");
    Scalar value = number_in(data, !std::is_integral_v<T> || std::is_same_v<T, bool>);
    if constexpr (!std::is_same_v<T, std::complex<float>> &&
                  !std::is_same_v<T, std::complex<double>> && !std::is_same_v<T, bool>)
      CHECK(!value.is_complex(), ErrorKind::kType,
            "a complex number does not fit into a real tensor");
    *at++ = number_as<T>(value);
    return;
  }
  CHECK(is_sequence(data), ErrorKind::kType, "expected a sequence of length ", shape[dim],
        " at depth ", dim, ", got ", Py_TYPE(data)->tp_name);
  Ref items = items_of(data);
  Py_ssize_t count = PyTuple_GET_SIZE(items.get());
  CHECK(count == shape[dim], ErrorKind::kValue, "expected sequence of length ", shape[dim],
        " at dim ", dim, " (got ", count, ")");
  for (Py_ssize_t i = 0; i < count; ++i)
    fill<T>(PyTuple_GET_ITEM(items.get(), i), shape, dim + 1, at);
}

// tensor(data, *, dtype, device, requires_grad, pin_memory) and as_tensor(data, dtype, device).
struct DataArgs {
  PyObject* data = nullptr;
  std::optional<DType> dtype;
  std::optional<Device> device;
  bool requires_grad = false;

  Tensor moved(const Tensor& tensor) const {
    Device place = device.value_or(default_device());
    return device || !place.is_cpu() ? call<"_to", Tensor>(tensor, std::optional(place), false)
                                     : tensor;
  }
  // The same for a tensor that nobody else has.
  Tensor fresh(const Tensor& tensor) const {
    tensor.impl()->inference = grad_mode.inference;
    return moved(lift_fresh(tensor));
  }
};
DataArgs read_args(PyObject* args, PyObject* kwargs, const char* format) {
  static const char* names[] = {"data", "dtype", "device", "requires_grad", "pin_memory", nullptr};
  DataArgs out;
  PyObject *dtype = Py_None, *device = Py_None;
  int requires_grad = 0, pin_memory = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, format, const_cast<char**>(names), &out.data,
                                   &dtype, &device, &requires_grad, &pin_memory))
    throw PythonError();
  DType value;
  CHECK(dtype == Py_None || read_dtype(dtype, value), ErrorKind::kType,
        "argument 'dtype' must be torch.dtype, not ", Py_TYPE(dtype)->tp_name);
  if (dtype != Py_None) out.dtype = value;
  Device place;
  CHECK(device == Py_None || read_device(device, place), ErrorKind::kType,
        "argument 'device' must be torch.device, not ", Py_TYPE(device)->tp_name);
  if (device != Py_None) out.device = place;
  out.requires_grad = requires_grad;
  return out;
}

PyObject* make_tensor(PyObject* module, PyObject* args, PyObject* kwargs) {
  return guarded([&] {
    if (PyObject* result = call_mode(module, "tensor", args, kwargs)) return result;
    DataArgs a = read_args(args, kwargs, "O|$OOpp:tensor");
    if (is_tensor(a.data))
      checked(warn_program(
          "To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() "
          "or sourceTensor.detach().clone().requires_grad_(True), rather than "
          "torch.tensor(sourceTensor)."));
    Tensor tensor = a.fresh(tensor_from_data(a.data, a.dtype));
    if (a.requires_grad) set_requires_grad(tensor, true);
    return wrap(tensor);
  });
}

PyObject* as_tensor(PyObject* module, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    if (PyObject* result = call_mode(module, "as_tensor", args, kwargs)) return result;
    DataArgs a = read_args(args, kwargs, "O|OO$pp:as_tensor");
    if (is_tensor(a.data)) {
      const Tensor& tensor = unwrap(a.data);
      return wrap(a.moved(a.dtype ? cast(tensor, *a.dtype) : tensor));
    }
    if (is_array(a.data)) {
      Tensor tensor = tensor_from_array(a.data, is_array_number(a.data));
      return wrap(a.fresh(a.dtype ? to_dtype(tensor, *a.dtype) : tensor));
    }
    if (Tensor shared; read_shared(a.data, shared))
      return wrap(a.moved(a.dtype ? to_dtype(shared, *a.dtype) : shared));
    return wrap(a.fresh(tensor_from_data(a.data, a.dtype)));
  });
}

// What is not seen at a glance, like the number of a GPU or a class that may take over, counts as
// something else.
bool is_dtype_of(const Tensor& tensor, PyObject* target) {
  DType dtype;
  return read_dtype(target, dtype) && dtype == tensor.dtype();
}
bool is_device_of(const Tensor& tensor, PyObject* target) {
  if (PyUnicode_Check(target))
    return tensor.device().is_cpu() && PyUnicode_CompareWithASCIIString(target, "cpu") == 0;
  Device device;
  return is_device(target, device) && device == tensor.device();
}
bool is_like(const Tensor& tensor, PyObject* target) {
  if (Py_TYPE(target) == tensor_class)
    return unwrap(target).dtype() == tensor.dtype() && unwrap(target).device() == tensor.device();
  return is_dtype_of(tensor, target) || is_device_of(tensor, target);
}

PyObject* stays_as_it_is(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
  return guarded([&] {
    CHECK(nargs == 3 && PyTuple_Check(args[1]) && PyDict_Check(args[2]), ErrorKind::kType,
          "_stays_as_it_is(): expected a tensor, a tuple and a dict");
    const Tensor& tensor = expect_tensor(args[0], "self");
    PyObject *targets = args[1], *options = args[2];
    auto target = [&](Py_ssize_t i) { return PyTuple_GET_ITEM(targets, i); };
    bool stays = false;
    if (PyTuple_GET_SIZE(targets) == 1) stays = is_like(tensor, target(0));
    else if (PyTuple_GET_SIZE(targets) == 2)
      stays = is_device_of(tensor, target(0)) && is_dtype_of(tensor, target(1));
    if (stays && PyDict_GET_SIZE(options) == 1) {
      PyObject* non_blocking = PyDict_GetItemString(options, "non_blocking");
      stays = non_blocking && PyBool_Check(non_blocking);
    }
    return PyBool_FromLong(stays && PyDict_GET_SIZE(options) <= 1);
  });
}

PyMethodDef methods[] = {
    {"_stays_as_it_is", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(stays_as_it_is)),
     METH_FASTCALL,
     "Whether it is plain to see that to() changes nothing: (tensor, arguments, keyword ones)."},
    {"tensor", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(make_tensor)),
     METH_VARARGS | METH_KEYWORDS,
     "tensor(data, *, dtype=None, device=None, requires_grad=False, pin_memory=False)\n\n"
     "A new tensor with a copy of the data: a number, nested lists, an array or a tensor."},
    {"as_tensor", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(as_tensor)),
     METH_VARARGS | METH_KEYWORDS,
     "as_tensor(data, dtype=None, device=None)\n\n"
     "The data as a tensor, without a copy when it is a tensor or an array of that dtype."},
    {}};

}  // namespace

Tensor tensor_from_data(PyObject* data, std::optional<DType> dtype) {
  if (is_tensor(data)) {
    const Tensor& tensor = unwrap(data);
    return dtype && *dtype != tensor.dtype() ? to_dtype(tensor, *dtype) : clone_dense(tensor);
  }
  if (is_array(data)) {
    Tensor tensor = tensor_from_array(data, true);
    return dtype ? to_dtype(tensor, *dtype) : tensor;
  }
  if (Tensor shared; read_shared(data, shared))
    return dtype && *dtype != shared.dtype() ? to_dtype(shared, *dtype) : clone_dense(shared);
  CHECK(!PyUnicode_Check(data), ErrorKind::kType,
        "new(): invalid data type 'str': a tensor holds numbers, not text");
  Shape shape = shape_of(data);
  DType type = default_dtype();
  bool any = false;
  if (dtype) type = *dtype;
  else widen(data, shape.size(), type, any);
  Tensor tensor = empty(shape, type);
  visit_stored_dtype(type, [&]<class T>(Tag<T>) {
    T* at = tensor.data<T>();
    if (tensor.numel()) fill<T>(data, tensor.sizes(), 0, at);
  });
  return tensor;
}

void add_construct(PyObject* module) { checked(PyModule_AddFunctions(module, methods)); }

}  // namespace rushlight::python
