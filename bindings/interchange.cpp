// Owns memory shared with Python objects: the buffer protocol and NumPy, both ways. DLPack is in
// dlpack.cpp.
//
// NumPy is reached through the buffer protocol only, so that importing us does not import it.
#include <algorithm>
#include <cstring>
#include <memory>

#include "bindings/dispatch.h"
#include "bindings/python.h"
#include "core/autograd/grad_mode.h"
#include "core/autograd/node.h"
#include "core/base/alignment.h"
#include "core/tensor/lift.h"
#include "core/tensor/tile_loop.h"

namespace rushlight::python {

const char* why_without_memory(const Tensor& tensor) {
  if (tensor.is_sparse()) return "the tensor is sparse; use .to_dense() first";
  if (!tensor.is_hollow()) return nullptr;
  return is_lifted(tensor)
             ? "a tensor inside vmap or forward mode has no memory; return it first"
             : "the class of the tensor has a __torch_dispatch__; ask the tensors inside";
}

namespace {

// ---- formats ------------------------------------------------------------------------------------

// The struct-module letters of a dtype; null where Python has none. 64 bits are "l", NumPy's int64:
// an array of "q" prints its dtype.
const char* format_of(DType dtype) {
  switch (dtype) {
    case DType::bool_: return "?";
    case DType::uint8: return "B";
    case DType::int8: return "b";
    case DType::uint16: return "H";
    case DType::int16: return "h";
    case DType::uint32: return "I";
    case DType::int32: return "i";
    case DType::uint64: return "L";
    case DType::int64: return "l";
    case DType::float16: return "e";
    case DType::bfloat16:
    case DType::float8_e4m3fn:
    case DType::float8_e5m2: return nullptr;
    case DType::float32: return "f";
    case DType::float64: return "d";
    case DType::complex64: return "Zf";
    case DType::complex128: return "Zd";
  }
  return nullptr;
}

bool read_format(std::string_view f, size_t itemsize, DType& out) {
  if (!f.empty() && (f[0] == '@' || f[0] == '=' || f[0] == '<')) f.remove_prefix(1);
  if (f == "q" || f == "l") f = itemsize == 8 ? "l" : "i";
  if (f == "Q" || f == "L") f = itemsize == 8 ? "L" : "I";
  for (int i = 0; i < kDTypeCount; ++i) {
    const char* candidate = format_of(DType(i));
    if (!candidate || f != candidate || dtype_size(DType(i)) != itemsize) continue;
    out = DType(i);
    return true;
  }
  return false;
}

// ---- the buffer protocol, out -------------------------------------------------------------------

int fill_view(PyObject* self, Py_buffer* view, int flags) {
  const Tensor& t = unwrap(self);
  auto refuse = [](const char* why) {
    PyErr_SetString(PyExc_BufferError, why);
    return -1;
  };
  if (!t.device().is_cpu()) return refuse("the tensor is not on the CPU; use .cpu() first");
  if (const char* why = why_without_memory(t)) return refuse(why);
  const char* format = format_of(t.dtype());
  if (!format) return refuse("the dtype has no buffer format; convert with .float() first");
  if (gradient_edge_exists(t) && is_grad_enabled())
    return refuse("the tensor requires grad; use .detach()");
  bool readonly = t.storage()->readonly();
  if ((flags & PyBUF_WRITABLE) && readonly) return refuse("the tensor shares read-only memory");
  if (!(flags & PyBUF_STRIDES) && !t.is_contiguous()) return refuse("the tensor is not contiguous");
  view->buf = t.data();
  auto* shape = new Exported(t);
  for (int64_t& stride : shape->strides) stride *= int64_t(t.itemsize());
  view->internal = shape;
  view->obj = Py_NewRef(self);
  view->len = Py_ssize_t(t.numel() * int64_t(t.itemsize()));
  view->itemsize = Py_ssize_t(t.itemsize());
  view->readonly = readonly;
  view->ndim = flags & PyBUF_ND ? int(t.dim()) : 1;  // memoryview reads the shape of several
  view->format = flags & PyBUF_FORMAT ? const_cast<char*>(format) : nullptr;
  view->shape = flags & PyBUF_ND ? reinterpret_cast<Py_ssize_t*>(shape->sizes.data()) : nullptr;
  view->strides =
      flags & PyBUF_STRIDES ? reinterpret_cast<Py_ssize_t*>(shape->strides.data()) : nullptr;
  view->suboffsets = nullptr;
  return 0;
}
int get_buffer(PyObject* self, Py_buffer* view, int flags) {
  view->obj = nullptr;
  return guarded([&] { return fill_view(self, view, flags); });
}
void release_buffer(PyObject*, Py_buffer* view) { delete static_cast<Exported*>(view->internal); }
PyBufferProcs buffer_methods = {.bf_getbuffer = get_buffer, .bf_releasebuffer = release_buffer};

// ---- the buffer protocol, in --------------------------------------------------------------------

void release_context(void* context) {
  if (!Py_IsInitialized()) return;
  AcquireGil gil;
  AsideError aside;
  auto* view = static_cast<Py_buffer*>(context);
  PyBuffer_Release(view);
  delete view;
}
struct ReleaseView {
  void operator()(Py_buffer* view) const { release_context(view); }
};
using View = std::unique_ptr<Py_buffer, ReleaseView>;

// The exporter's buffer; null, with a Python error set, when it has none of that kind.
View acquire(PyObject* object, int flags) {
  auto view = std::make_unique<Py_buffer>();
  if (PyObject_GetBuffer(object, view.get(), flags) < 0) return nullptr;
  return View(view.release());
}

// Its memory as a storage that keeps the exporter alive.
Storage wrap_buffer(View view, void* begin, size_t bytes) {
  bool readonly = view->readonly;
  return StorageImpl::wrap(begin, bytes, Device{}, release_context, view.release(), readonly);
}

PyObject* from_numpy(PyObject*, PyObject* array) {
  return guarded([&] {
    CHECK(!is_tensor(array) && has_array_interface(array), ErrorKind::kType,
          "expected np.ndarray (got ", Py_TYPE(array)->tp_name, ")");
    return wrap(lift_fresh(tensor_from_array(array, false)));
  });
}

PyObject* frombuffer(PyObject*, PyObject* args, PyObject* kwargs) {
  return guarded([&] {
    static const char* names[] = {"buffer", "dtype", "count", "offset", "requires_grad", nullptr};
    PyObject *buffer, *dtype_in = nullptr;
    long long count = -1, offset = 0;
    int requires_grad = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|$OLLp:frombuffer", const_cast<char**>(names),
                                     &buffer, &dtype_in, &count, &offset, &requires_grad))
      throw PythonError();
    DType dtype;
    CHECK(dtype_in, ErrorKind::kType, "frombuffer() missing required argument: 'dtype'");
    CHECK(read_dtype(dtype_in, dtype), ErrorKind::kType,
          "frombuffer: argument 'dtype' must be torch.dtype");
    CHECK(PyObject_CheckBuffer(buffer), ErrorKind::kValue, "frombuffer: a ",
          Py_TYPE(buffer)->tp_name, " object does not implement Python buffer protocol.");
    View view = acquire(buffer, PyBUF_SIMPLE);
    if (!view) {
      PyErr_Clear();
      CHECK(false,
            "frombuffer: could not retrieve buffer from object; its memory must be contiguous.");
    }
    int64_t size = int64_t(dtype_size(dtype)), bytes = view->len;
    CHECK(bytes > 0 && count != 0, ErrorKind::kValue, "frombuffer: both buffer length (", bytes,
          ") and count (", count, ") must not be 0");
    CHECK(offset >= 0 && offset < bytes, ErrorKind::kValue, "frombuffer: offset (", offset,
          " bytes) must be non-negative and no greater than buffer length (", bytes,
          " bytes) minus 1");
    CHECK(count > 0 || (bytes - offset) % size == 0, ErrorKind::kValue,
          "frombuffer: buffer length (", bytes - offset, " bytes) after offset (", offset,
          " bytes) must be a multiple of element size (", size, ")");
    int64_t room = (bytes - offset) / size;
    CHECK(count <= room, ErrorKind::kValue, "frombuffer: requested buffer length (", count,
          " elements) after offset (", offset,
          " bytes) must not be greater than actual buffer length (", bytes, " bytes)");
    int64_t n = count < 0 ? room : count;
    char* begin = static_cast<char*>(view->buf) + offset;
    bool shares = is_aligned(begin, dtype);
    CHECK(shares || view->readonly, ErrorKind::kValue, "frombuffer: offset (", offset,
          " bytes) must put the elements at a multiple of ", dtype_alignment(dtype),
          " bytes. Copy the part of the buffer first, as in bytes(buffer[offset:]).");
    Tensor t;
    if (shares) {
      t = from_storage(wrap_buffer(std::move(view), begin, size_t(n * size)), Shape{n}, Shape{1},
                       dtype);
    } else {  // nothing could be written to the buffer through the tensor, so a copy will do
      t = empty(Shape{n}, dtype);
      std::memcpy(t.data(), begin, size_t(n * size));
    }
    if (requires_grad) set_requires_grad(t, true);
    return wrap(t);
  });
}

PyObject* tensor_to_array(const Tensor& tensor) {
  CHECK(tensor.device().is_cpu(), ErrorKind::kType, "can't convert ", tensor.device(),
        " device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first.");
  if (tensor.is_hollow() && !tensor.is_sparse()) throw NeedsElements(tensor);
  CHECK(!gradient_edge_exists(tensor) || !is_grad_enabled(),
        "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.");
  CHECK(format_of(tensor.dtype()), ErrorKind::kType, "Got unsupported ScalarType ",
        tensor.dtype() == DType::bfloat16 ? "BFloat16" : dtype_name(tensor.dtype()),
        ". Use tensor.float().numpy().");
  static PyObject* asarray = nullptr;
  if (!asarray) {
    Ref module(checked(PyImport_ImportModule("numpy")));
    asarray = checked(PyObject_GetAttrString(module.get(), "asarray"));
  }
  Ref object(wrap(tensor));
  Ref view(checked(PyMemoryView_FromObject(object.get())));
  return checked(PyObject_CallOneArg(asarray, view.get()));
}

PyObject* numpy(PyObject*, PyObject* self) {
  return guarded([&] { return tensor_to_array(expect_tensor(self, "self")); });
}

bool has_aligned_elements(const Py_buffer& view, DType dtype) {
  if (!is_aligned(view.buf, dtype)) return false;
  return std::all_of(view.strides, view.strides + view.ndim, [&](Py_ssize_t stride) {
    return stride % Py_ssize_t(dtype_alignment(dtype)) == 0;
  });
}

[[noreturn]] void refuse_type(PyObject* array) {
  Ref dtype(PyObject_GetAttrString(array, "dtype"));
  Ref type(dtype ? PyObject_GetAttrString(dtype.get(), "type") : nullptr);
  PyErr_Clear();
  const char* name = type && PyType_Check(type.get())
                         ? reinterpret_cast<PyTypeObject*>(type.get())->tp_name
                         : Py_TYPE(array)->tp_name;
  CHECK(false, ErrorKind::kType, "can't convert np.ndarray of type ", name,
        ". The only supported types are: float64, float32, float16, complex64, complex128, int64, "
        "int32, int16, int8, uint64, uint32, uint16, uint8, and bool.");
  __builtin_unreachable();
}

PyMethodDef methods[] = {
    {"from_numpy", from_numpy, METH_O,
     "from_numpy(ndarray) -> Tensor\n\nA tensor that shares memory with the array; read-only when "
     "the array is."},
    {"frombuffer", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(frombuffer)),
     METH_VARARGS | METH_KEYWORDS,
     "frombuffer(buffer, *, dtype, count=-1, offset=0, requires_grad=False) -> Tensor\n\n"
     "A 1-d tensor that shares memory with an object of the buffer protocol."},
    {"_numpy", numpy, METH_O, "An array that shares memory with the tensor."},
    {}};

}  // namespace

Tensor from_storage(Storage storage, ShapeRef sizes, ShapeRef strides, DType dtype) {
  if (storage->device().is_cpu()) check_aligned(storage->data(), dtype);
  Tensor seed = empty(Shape{0}, dtype);
  seed.impl()->storage = std::move(storage);
  return alias(seed, sizes, strides, 0);
}

Tensor tensor_from_array(PyObject* array, bool copy) {
  View view = acquire(array, PyBUF_STRIDES | PyBUF_FORMAT);
  if (!view) PyErr_Clear();
  // Dates of NumPy lend their bytes, without strides.
  if (!view || (view->ndim && !view->strides)) refuse_type(array);
  std::string_view format = view->format && *view->format ? view->format : "B";
  DType dtype = DType::uint8;
  if (!read_format(format, size_t(view->itemsize), dtype)) {
    bool is_swapped =
        format[0] == '>' && read_format(format.substr(1), size_t(view->itemsize), dtype);
    CHECK(!is_swapped, ErrorKind::kValue,
          "given numpy array has byte order different from the native byte order. Convert it with "
          "array.astype(array.dtype.newbyteorder('=')).");
    refuse_type(array);
  }
  Shape sizes(view->shape, view->shape + view->ndim);
  if (copy) {
    if (!has_aligned_elements(*view, dtype)) {  // NumPy can read them
      Ref module(checked(PyImport_ImportModule("numpy")));
      Ref aligned(checked(PyObject_CallMethod(module.get(), "array", "O", array)));
      return tensor_from_array(aligned.get(), true);
    }
    Tensor tensor = empty(sizes, dtype);
    Shape to = tensor.strides();
    for (int64_t& stride : to) stride *= view->itemsize;
    if (tensor.numel() != 0)
      copy_strided(sizes, view->itemsize, static_cast<char*>(tensor.data()), to,
                   static_cast<const char*>(view->buf),
                   Shape(view->strides, view->strides + view->ndim));
    return tensor;
  }
  Shape strides = contiguous_strides(sizes);
  for (int d = 0; d < view->ndim; ++d) {
    int64_t stride = view->strides[d];
    bool is_taken = sizes[size_t(d)] > 1, is_possible = stride >= 0 && stride % view->itemsize == 0;
    if (!is_taken && !is_possible) continue;
    CHECK(stride >= 0, ErrorKind::kValue,
          "At least one stride in the given numpy array is negative, and tensors with negative "
          "strides are not supported. Make a copy with array.copy().");
    CHECK(stride % view->itemsize == 0, ErrorKind::kValue,
          "given numpy array strides not a multiple of the element byte size. Copy the numpy array "
          "to reallocate the memory.");
    strides[size_t(d)] = stride / view->itemsize;
  }
  int64_t bytes = storage_bytes_needed(sizes, strides, 0, size_t(view->itemsize));
  void* begin = view->buf;
  return from_storage(wrap_buffer(std::move(view), begin, size_t(bytes)), sizes, strides, dtype);
}

bool has_array_interface(PyObject* object) {
  // Asked of the class, because an array would make the value.
  return PyObject_HasAttrString(reinterpret_cast<PyObject*>(Py_TYPE(object)),
                                "__array_interface__");
}

void install_buffer(PyTypeObject& type) { type.tp_as_buffer = &buffer_methods; }

void add_interchange(PyObject* module) { checked(PyModule_AddFunctions(module, methods)); }

}  // namespace rushlight::python
