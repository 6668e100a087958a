// Owns the small Python objects: dtype, device, memory_format and Size, and number conversions.
#include <array>
#include <string>
#include <vector>

#include "bindings/python.h"
#include "core/tensor/default_device.h"

namespace rushlight::python {
namespace {

// ---- dtype --------------------------------------------------------------------------------------

struct PyDType {
  PyObject_HEAD DType dtype;
};
std::array<PyObject*, kDTypeCount> dtypes;

DType dtype_in(PyObject* self) { return reinterpret_cast<PyDType*>(self)->dtype; }

PyObject* dtype_repr(PyObject* self) {
  return PyUnicode_FromFormat("torch.%s", dtype_name(dtype_in(self)));
}
PyObject* dtype_reduce(PyObject* self, PyObject*) {
  return PyUnicode_FromString(dtype_name(dtype_in(self)));
}
PyObject* dtype_to_complex(PyObject* self, PyObject*) {
  return guarded([&] {
    DType dtype = dtype_in(self);
    CHECK(is_floating(dtype) || is_complex(dtype), "to_complex(): there is no complex dtype for ",
          dtype_name(dtype), ". Convert to a floating-point dtype first.");
    return wrap_dtype(complex_dtype(dtype));
  });
}
PyObject* dtype_bool(bool value) { return PyBool_FromLong(value); }

// Where pickle finds what is pickled by name; without it, it would look through all modules.
PyGetSetDef home_attribute = {"__module__",
                              [](PyObject*, void*) { return PyUnicode_FromString("rushlight"); },
                              nullptr, "The module of the object.", nullptr};

PyGetSetDef dtype_attributes[] = {
    home_attribute,
    {"itemsize",
     [](PyObject* self, void*) { return PyLong_FromSize_t(dtype_size(dtype_in(self))); }, nullptr,
     "The number of bytes of an element.", nullptr},
    {"is_floating_point",
     [](PyObject* self, void*) {
       return dtype_bool(is_floating(dtype_in(self)) || is_float8(dtype_in(self)));
     },
     nullptr, "Whether it is a real floating-point type.", nullptr},
    {"is_complex", [](PyObject* self, void*) { return dtype_bool(is_complex(dtype_in(self))); },
     nullptr, "Whether it is a complex type.", nullptr},
    {"is_signed",
     [](PyObject* self, void*) {
       return dtype_bool(!is_unsigned(dtype_in(self)) && !is_bool(dtype_in(self)));
     },
     nullptr, "Whether it has negative values.", nullptr},
    {"_name",
     [](PyObject* self, void*) { return PyUnicode_FromString(dtype_name(dtype_in(self))); },
     nullptr, "The name without a module.", nullptr},
    {}};
PyMethodDef dtype_methods[] = {
    {"__reduce__", dtype_reduce, METH_NOARGS, "Pickles by name."},
    {"to_real", [](PyObject* self, PyObject*) { return wrap_dtype(real_dtype(dtype_in(self))); },
     METH_NOARGS, "The dtype of the real part."},
    {"to_complex", dtype_to_complex, METH_NOARGS, "The complex dtype of the same precision."},
    {}};
PyTypeObject DTypeType = {.ob_base = {PyObject_HEAD_INIT(nullptr) 0},
                          .tp_name = "rushlight.dtype",
                          .tp_basicsize = sizeof(PyDType),
                          .tp_repr = dtype_repr,
                          .tp_flags = Py_TPFLAGS_DEFAULT,
                          .tp_doc = "The type of a tensor's elements.",
                          .tp_methods = dtype_methods,
                          .tp_getset = dtype_attributes};

// ---- device -------------------------------------------------------------------------------------

struct PyDevice {
  PyObject_HEAD Device device;
};
Device device_in(PyObject* self) { return reinterpret_cast<PyDevice*>(self)->device; }

PyObject* device_new(PyTypeObject*, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    static const char* names[] = {"type", "index", nullptr};
    PyObject* type = nullptr;
    PyObject* index = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O:device", const_cast<char**>(names), &type,
                                     &index))
      return nullptr;
    Device device;
    CHECK(read_device(type, device), ErrorKind::kType,
          "device(): argument 'type' must be str or device, not ", Py_TYPE(type)->tp_name);
    if (index != Py_None) {
      int64_t number;
      CHECK(read_int(index, number), ErrorKind::kType,
            "device(): argument 'index' must be int, not ", Py_TYPE(index)->tp_name);
      CHECK(number >= 0 && number < 128, "device(): index must be an int from 0 to 127");
      CHECK(
          !device.has_index(), ErrorKind::kValue,
          "type (string) must not include an index because index was passed explicitly: ", device);
      device.index = int8_t(number);
    }
    return wrap_device(device);
  });
}
PyObject* device_repr(PyObject* self) {
  Device device = device_in(self);
  if (!device.has_index())
    return PyUnicode_FromFormat("device(type='%s')", device_type_name(device.type));
  return PyUnicode_FromFormat("device(type='%s', index=%d)", device_type_name(device.type),
                              int(device.index));
}
PyObject* device_str(PyObject* self) {
  return PyUnicode_FromString(device_in(self).to_string().c_str());
}
PyObject* device_compare(PyObject* a, PyObject* b, int op);
Py_hash_t device_hash(PyObject* self) {
  return Py_hash_t(int(device_in(self).type) * 257 + device_in(self).index + 1);
}
PyGetSetDef device_attributes[] = {
    {"type",
     [](PyObject* self, void*) {
       return PyUnicode_FromString(device_type_name(device_in(self).type));
     },
     nullptr, "'cpu', 'cuda' or 'meta'.", nullptr},
    {"index",
     [](PyObject* self, void*) {
       return device_in(self).has_index() ? PyLong_FromLong(device_in(self).index)
                                          : Py_NewRef(Py_None);
     },
     nullptr, "The number of the device, or None.", nullptr},
    {}};
// The default devices that `with` blocks of this thread replaced; they end in reverse order.
thread_local std::vector<Device> devices_before;

PyMethodDef device_methods[] = {
    {"__reduce__",
     [](PyObject* self, PyObject*) {
       return Py_BuildValue("(O(N))", Py_TYPE(self), device_str(self));
     },
     METH_NOARGS, "Pickles by its string."},
    {"__enter__",
     [](PyObject* self, PyObject*) {
       devices_before.push_back(default_device());
       set_default_device(device_in(self));
       return Py_NewRef(self);
     },
     METH_NOARGS, "Makes it the device of new tensors in a with block."},
    {"__exit__",
     [](PyObject*, PyObject*) {
       if (!devices_before.empty()) {
         set_default_device(devices_before.back());
         devices_before.pop_back();
       }
       return Py_NewRef(Py_None);
     },
     METH_VARARGS, "Goes back to the default device from before."},
    {}};
PyTypeObject DeviceType_ = {
    .ob_base = {PyObject_HEAD_INIT(nullptr) 0},
    .tp_name = "rushlight.device",
    .tp_basicsize = sizeof(PyDevice),
    .tp_repr = device_repr,
    .tp_hash = device_hash,
    .tp_str = device_str,
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = "Where a tensor lives: device('cpu'), device('cuda:1'), device('cuda', 1).",
    .tp_richcompare = device_compare,
    .tp_methods = device_methods,
    .tp_getset = device_attributes,
    .tp_new = device_new};
PyObject* device_compare(PyObject* a, PyObject* b, int op) {
  if ((op != Py_EQ && op != Py_NE) || Py_TYPE(b) != &DeviceType_) Py_RETURN_NOTIMPLEMENTED;
  return PyBool_FromLong((device_in(a) == device_in(b)) == (op == Py_EQ));
}

// ---- memory_format ------------------------------------------------------------------------------

struct PyMemoryFormat {
  PyObject_HEAD MemoryFormat format;
};
constexpr const char* kFormatNames[] = {"contiguous_format", "preserve_format", "channels_last",
                                        "channels_last_3d"};
PyObject* formats[4];
PyObject* format_name(PyObject* self, const char* pattern) {
  return PyUnicode_FromFormat(pattern,
                              kFormatNames[int(reinterpret_cast<PyMemoryFormat*>(self)->format)]);
}
PyGetSetDef format_attributes[] = {home_attribute, {}};
PyMethodDef format_methods[] = {
    {"__reduce__", [](PyObject* self, PyObject*) { return format_name(self, "%s"); }, METH_NOARGS,
     "Pickles by name."},
    {}};
PyTypeObject MemoryFormatType = {
    .ob_base = {PyObject_HEAD_INIT(nullptr) 0},
    .tp_name = "rushlight.memory_format",
    .tp_basicsize = sizeof(PyMemoryFormat),
    .tp_repr = [](PyObject* self) { return format_name(self, "torch.%s"); },
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = "The order in which a tensor's elements lie in memory.",
    .tp_methods = format_methods,
    .tp_getset = format_attributes};

// ---- Size ---------------------------------------------------------------------------------------

PyObject* size_repr(PyObject* self) {
  Ref list(PySequence_List(self));
  return list ? PyUnicode_FromFormat("torch.Size(%R)", list.get()) : nullptr;
}
PyObject* size_numel(PyObject* self, PyObject*) {
  Ref count(PyLong_FromLong(1));  // of any size: a Size need not be that of a tensor
  for (Py_ssize_t i = 0; count && i < PyTuple_GET_SIZE(self); ++i)
    count = Ref(PyNumber_Multiply(count.get(), PyTuple_GET_ITEM(self, i)));
  return count.release();
}
extern PyTypeObject SizeType;
PyObject* size_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  Ref sizes(PyTuple_Type.tp_new(type, args, kwargs));
  if (!sizes) return nullptr;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(sizes.get()); ++i) {
    PyObject* item = PyTuple_GET_ITEM(sizes.get(), i);
    if (PyLong_CheckExact(item)) continue;
    if (PyObject_HasAttrString(item, "_is_symbolic_size")) continue;  // of a ragged dim
    PyObject* number = PyNumber_Index(item);  // of a NumPy integer, a tensor of one element
    if (!number) {
      PyErr_Format(PyExc_TypeError, "torch.Size() takes an iterable of 'int' (item %zd is '%s')", i,
                   Py_TYPE(item)->tp_name);
      return nullptr;
    }
    PyTuple_SET_ITEM(sizes.get(), i, number);
    Py_DECREF(item);
  }
  return sizes.release();
}
// Slices and sums of sizes are sizes.
PyObject* as_size(PyObject* tuple) {
  if (!tuple || !PyTuple_CheckExact(tuple)) return tuple;
  Ref owned(tuple);
  return PyObject_CallOneArg(reinterpret_cast<PyObject*>(&SizeType), tuple);
}
PyObject* size_subscript(PyObject* self, PyObject* index) {
  return as_size(PyTuple_Type.tp_as_mapping->mp_subscript(self, index));
}
PyObject* size_concat(PyObject* a, PyObject* b) {
  return as_size(PyTuple_Type.tp_as_sequence->sq_concat(a, b));
}
PyObject* size_repeat(PyObject* self, Py_ssize_t times) {
  return as_size(PyTuple_Type.tp_as_sequence->sq_repeat(self, times));
}
// Python asks it before the + of tuples, also where a plain tuple stands on the left.
PyObject* size_add(PyObject* a, PyObject* b) {
  if (!PyTuple_Check(a) || !PyTuple_Check(b)) Py_RETURN_NOTIMPLEMENTED;
  return size_concat(a, b);
}
PyNumberMethods size_number = {.nb_add = size_add};
PyMappingMethods size_mapping = {.mp_subscript = size_subscript};
PySequenceMethods size_sequence = {.sq_concat = size_concat, .sq_repeat = size_repeat};
PyMethodDef size_methods[] = {{"numel", size_numel, METH_NOARGS, "The product of the sizes."},
                              {"__reduce__",
                               [](PyObject* self, PyObject*) {
                                 return Py_BuildValue("(O(N))", Py_TYPE(self),
                                                      PySequence_Tuple(self));
                               },
                               METH_NOARGS, "Pickles as a tuple."},
                              {}};
PyTypeObject SizeType = {.ob_base = {PyObject_HEAD_INIT(nullptr) 0},
                         .tp_name = "rushlight.Size",
                         .tp_repr = size_repr,
                         .tp_as_number = &size_number,
                         .tp_as_sequence = &size_sequence,
                         .tp_as_mapping = &size_mapping,
                         .tp_flags = Py_TPFLAGS_DEFAULT,
                         .tp_doc = "The shape of a tensor: a tuple of ints.",
                         .tp_methods = size_methods,
                         .tp_base = &PyTuple_Type,
                         .tp_new = size_new};

void add_type(PyObject* module, const char* name, PyTypeObject* type) {
  checked(PyType_Ready(type));
  checked(PyModule_AddObjectRef(module, name, reinterpret_cast<PyObject*>(type)));
}

}  // namespace

PyObject* wrap_dtype(DType dtype) { return Py_NewRef(dtypes[size_t(dtype)]); }
PyObject* wrap_device(Device device) {
  PyObject* object = checked(DeviceType_.tp_alloc(&DeviceType_, 0));
  reinterpret_cast<PyDevice*>(object)->device = device;
  return object;
}
PyObject* wrap_memory_format(MemoryFormat format) { return Py_NewRef(formats[int(format)]); }

PyObject* wrap_size(ShapeRef sizes) {
  Ref object(checked(SizeType.tp_alloc(&SizeType, Py_ssize_t(sizes.size()))));
  for (size_t i = 0; i < sizes.size(); ++i)
    PyTuple_SET_ITEM(object.get(), Py_ssize_t(i), checked(PyLong_FromLongLong(sizes[i])));
  return object.release();
}

PyObject* wrap_number(const Scalar& value) {
  switch (value.kind()) {
    case Scalar::Kind::kBool: return PyBool_FromLong(value.to<bool>());
    case Scalar::Kind::kInt:
      return value.exceeds_int64() ? PyLong_FromUnsignedLongLong(value.to<uint64_t>())
                                   : PyLong_FromLongLong(value.to<int64_t>());
    case Scalar::Kind::kFloat: return PyFloat_FromDouble(value.to<double>());
    case Scalar::Kind::kComplex: {
      auto z = value.to<std::complex<double>>();
      return PyComplex_FromDoubles(z.real(), z.imag());
    }
  }
  return nullptr;
}

bool read_dtype(PyObject* object, DType& out) {
  if (Py_TYPE(object) == &DTypeType) out = dtype_in(object);
  else if (object == reinterpret_cast<PyObject*>(&PyFloat_Type)) out = DType::float64;
  else if (object == reinterpret_cast<PyObject*>(&PyLong_Type)) out = DType::int64;
  else if (object == reinterpret_cast<PyObject*>(&PyBool_Type)) out = DType::bool_;
  else if (object == reinterpret_cast<PyObject*>(&PyComplex_Type)) out = DType::complex128;
  else return false;
  return true;
}

bool is_device(PyObject* object, Device& out) {
  if (Py_TYPE(object) != &DeviceType_) return false;
  out = device_in(object);
  return true;
}

bool read_device(PyObject* object, Device& out) {
  if (is_device(object, out)) return true;
  if (PyUnicode_Check(object)) {
    const char* text = PyUnicode_AsUTF8(object);
    if (!text) throw PythonError();
    out = Device::parse(text);
    return true;
  }
  int64_t index;
  if (!read_int(object, index)) return false;
  CHECK(index >= 0 && index < 128, "Device index must not be negative, got ", index);
  out = {DeviceType::cuda, int8_t(index)};
  return true;
}

bool read_memory_format(PyObject* object, MemoryFormat& out) {
  if (Py_TYPE(object) != &MemoryFormatType) return false;
  out = reinterpret_cast<PyMemoryFormat*>(object)->format;
  return true;
}

namespace {
// By a TypeError an object says that it is no such number after all; anything else is raised.
void expect_type_error() {
  if (!PyErr_ExceptionMatches(PyExc_TypeError)) throw PythonError();
  PyErr_Clear();
}

Scalar read_long(PyObject* number) {
  int overflow;
  long long value = PyLong_AsLongLongAndOverflow(number, &overflow);
  if (!overflow) return int64_t(value);
  unsigned long long wide = overflow > 0 ? PyLong_AsUnsignedLongLong(number) : 0;
  bool fits = overflow > 0 && !PyErr_Occurred();
  PyErr_Clear();
  if (!fits) {
    PyErr_SetString(PyExc_OverflowError, "int too big to convert: it does not fit into 64 bits");
    throw PythonError();
  }
  return uint64_t(wide);
}
}  // namespace

bool read_int(PyObject* object, int64_t& out) {
  if (PyLong_Check(object)) {
    if (PyBool_Check(object)) return false;
  } else if (is_tensor(object)) {
    const Tensor& t = unwrap(object);
    if (t.numel() != 1 || !is_integral(t.dtype())) return false;
    Scalar value = item_of(t);
    CHECK(!value.exceeds_int64(), "Overflow when unpacking long: ", value,
          " does not fit into int64");
    out = value.to<int64_t>();
    return true;
  } else if (!PyIndex_Check(object)) {
    return false;
  }
  Ref number(PyNumber_Index(object));
  if (!number) {
    expect_type_error();
    return false;
  }
  int overflow;
  out = PyLong_AsLongLongAndOverflow(number.get(), &overflow);
  CHECK(!overflow, ErrorKind::kValue,
        "Overflow when unpacking long long: the number does not fit into 64 bits");
  return true;
}

bool read_number(PyObject* object, Scalar& out) {
  if (PyFloat_Check(object)) {
    out = PyFloat_AS_DOUBLE(object);
  } else if (PyBool_Check(object)) {
    out = object == Py_True;
  } else if (PyLong_Check(object)) {
    out = read_long(object);
  } else if (PyComplex_Check(object)) {
    out = std::complex<double>(PyComplex_RealAsDouble(object), PyComplex_ImagAsDouble(object));
  } else if (is_tensor(object) || PySequence_Check(object)) {
    return false;
  } else if (PyIndex_Check(object)) {  // NumPy integers
    Ref number(PyNumber_Index(object));
    if (!number) {
      expect_type_error();
      return false;
    }
    out = read_long(number.get());
  } else if (PyNumber_Check(object) && Py_TYPE(object)->tp_as_number->nb_float) {  // NumPy floats
    double value = PyFloat_AsDouble(object);
    if (value == -1 && PyErr_Occurred()) {
      expect_type_error();
      return false;
    }
    Ref dtype(PyObject_GetAttrString(object, "dtype"));
    Ref kind(dtype ? PyObject_GetAttrString(dtype.get(), "kind") : nullptr);
    PyErr_Clear();
    if (kind && PyUnicode_CompareWithASCIIString(kind.get(), "b") == 0) out = value != 0;
    else out = value;
  } else {
    return false;
  }
  return true;
}

void add_objects(PyObject* module) {
  add_type(module, "dtype", &DTypeType);
  for (int i = 0; i < kDTypeCount; ++i) {
    PyObject* object = checked(DTypeType.tp_alloc(&DTypeType, 0));
    reinterpret_cast<PyDType*>(object)->dtype = DType(i);
    dtypes[size_t(i)] = object;
    checked(PyModule_AddObjectRef(module, dtype_name(DType(i)), object));
  }
  add_type(module, "device", &DeviceType_);
  add_type(module, "memory_format", &MemoryFormatType);
  for (int i = 0; i < 4; ++i) {
    PyObject* object = checked(MemoryFormatType.tp_alloc(&MemoryFormatType, 0));
    reinterpret_cast<PyMemoryFormat*>(object)->format = MemoryFormat(i);
    formats[i] = object;
    checked(PyModule_AddObjectRef(module, kFormatNames[i], object));
  }
  add_type(module, "Size", &SizeType);
  // What pickles by name says where: else pickle asks each module that is loaded for the name.
  Ref home(checked(PyUnicode_FromString("rushlight")));
  for (PyTypeObject* type : {&DTypeType, &MemoryFormatType}) {
    if (PyDict_SetItemString(type->tp_dict, "__module__", home.get()) < 0) throw PythonError();
    PyType_Modified(type);
  }
}

}  // namespace rushlight::python
