// Owns memory shared with other libraries: the buffer protocol, NumPy and DLPack, both ways.
//
// NumPy is reached through the buffer protocol only, so that importing us does not import it.
#include <array>
#include <cstring>

#include "bindings/python.h"
#include "core/autograd/node.h"
#include "core/tensor/tile_loop.h"

namespace rushlight::python {
namespace {

// ---- formats
// ------------------------------------------------------------------------------------------

// The struct-module letters of a dtype; null where Python has none.
const char* format_of(DType dtype) {
  switch (dtype) {
    case DType::bool_: return "?";
    case DType::uint8: return "B";
    case DType::int8: return "b";
    case DType::uint16: return "H";
    case DType::int16: return "h";
    case DType::uint32: return "I";
    case DType::int32: return "i";
    case DType::uint64: return "Q";
    case DType::int64: return "q";
    case DType::float16: return "e";
    case DType::bfloat16: return nullptr;
    case DType::float32: return "f";
    case DType::float64: return "d";
    case DType::complex64: return "Zf";
    case DType::complex128: return "Zd";
  }
  return nullptr;
}

bool read_format(const char* format, size_t itemsize, DType& out) {
  std::string_view f = format ? format : "B";
  if (!f.empty() && (f[0] == '@' || f[0] == '=' || f[0] == '<')) f.remove_prefix(1);
  if (f == "l") f = itemsize == 8 ? "q" : "i";
  if (f == "L") f = itemsize == 8 ? "Q" : "I";
  for (int i = 0; i < kDTypeCount; ++i) {
    const char* candidate = format_of(DType(i));
    if (!candidate || f != candidate || dtype_size(DType(i)) != itemsize) continue;
    out = DType(i);
    return true;
  }
  return false;
}

// ---- the buffer protocol, out -------------------------------------------------------------------

// What a view on the memory of a tensor keeps alive.
struct Exported {
  BorrowedStorage storage;
  Shape sizes, strides;

  explicit Exported(const Tensor& t)
      : storage(t.storage()), sizes(t.sizes()), strides(t.strides()) {}
};

int get_buffer(PyObject* self, Py_buffer* view, int flags) {
  view->obj = nullptr;
  const Tensor& t = unwrap(self);
  auto refuse = [](const char* why) {
    PyErr_SetString(PyExc_BufferError, why);
    return -1;
  };
  if (!t.device().is_cpu()) return refuse("the tensor is not on the CPU; use .cpu() first");
  const char* format = format_of(t.dtype());
  if (!format) return refuse("bfloat16 has no buffer format; convert with .float() first");
  if (gradient_edge_exists(t)) return refuse("the tensor requires grad; use .detach()");
  bool readonly = t.storage()->readonly();
  if ((flags & PyBUF_WRITABLE) && readonly) return refuse("the tensor shares read-only memory");
  if (!(flags & PyBUF_STRIDES) && !t.is_contiguous()) return refuse("the tensor is not contiguous");
  auto* shape = new Exported(t);
  for (int64_t& stride : shape->strides) stride *= int64_t(t.itemsize());
  view->internal = shape;
  view->buf = t.data();
  view->obj = Py_NewRef(self);
  view->len = Py_ssize_t(t.numel() * int64_t(t.itemsize()));
  view->itemsize = Py_ssize_t(t.itemsize());
  view->readonly = readonly;
  view->ndim = int(t.dim());
  view->format = flags & PyBUF_FORMAT ? const_cast<char*>(format) : nullptr;
  view->shape = flags & PyBUF_ND ? reinterpret_cast<Py_ssize_t*>(shape->sizes.data()) : nullptr;
  view->strides =
      flags & PyBUF_STRIDES ? reinterpret_cast<Py_ssize_t*>(shape->strides.data()) : nullptr;
  view->suboffsets = nullptr;
  return 0;
}
void release_buffer(PyObject*, Py_buffer* view) { delete static_cast<Exported*>(view->internal); }
PyBufferProcs buffer_methods = {.bf_getbuffer = get_buffer, .bf_releasebuffer = release_buffer};

// ---- the buffer protocol, in --------------------------------------------------------------------

void release_context(void* context) {
  if (!Py_IsInitialized()) return;
  AcquireGil gil;
  auto* view = static_cast<Py_buffer*>(context);
  PyBuffer_Release(view);
  delete view;
}

// The exporter's memory as a 1-d storage that keeps the exporter alive.
Storage wrap_buffer(Py_buffer* view, void* begin, size_t bytes) {
  return StorageImpl::wrap(begin, bytes, Device{}, release_context, view, view->readonly);
}

Py_buffer* acquire(PyObject* object) {
  auto* view = new Py_buffer;
  if (PyObject_GetBuffer(object, view, PyBUF_STRIDES | PyBUF_FORMAT) < 0) {
    delete view;
    throw PythonError();
  }
  return view;
}

PyObject* from_numpy(PyObject*, PyObject* array) {
  return guarded([&] {
    CHECK(!is_tensor(array) && PyObject_HasAttrString(array, "__array_interface__"),
          ErrorKind::kType, "expected np.ndarray (got ", Py_TYPE(array)->tp_name, ")");
    return wrap(tensor_from_array(array, false));
  });
}

PyObject* frombuffer(PyObject*, PyObject* args, PyObject* kwargs) {
  return guarded([&] {
    static const char* names[] = {"buffer", "dtype", "count", "offset", "requires_grad", nullptr};
    PyObject *buffer, *dtype_in;
    long long count = -1, offset = 0;
    int requires_grad = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|$OLLp:frombuffer", const_cast<char**>(names),
                                     &buffer, &dtype_in, &count, &offset, &requires_grad))
      throw PythonError();
    DType dtype;
    CHECK(read_dtype(dtype_in, dtype), ErrorKind::kType,
          "frombuffer: argument 'dtype' must be torch.dtype");
    auto* view = new Py_buffer;
    if (PyObject_GetBuffer(buffer, view, PyBUF_SIMPLE) < 0) {
      delete view;
      throw PythonError();
    }
    try {
      int64_t size = int64_t(dtype_size(dtype)), bytes = view->len;
      CHECK(offset >= 0 && offset <= bytes, ErrorKind::kValue, "frombuffer: offset (", offset,
            " bytes) must be non-negative and no greater than buffer length (", bytes, " bytes)");
      CHECK(count > 0 || count == -1, ErrorKind::kValue,
            "frombuffer: count must be positive or -1, got ", count);
      int64_t room = (bytes - offset) / size;
      CHECK(count != -1 || (bytes - offset) % size == 0, ErrorKind::kValue,
            "frombuffer: buffer length (", bytes - offset, " bytes) after offset (", offset,
            " bytes) must be a multiple of element size (", size, ")");
      CHECK(count <= room, ErrorKind::kValue, "frombuffer: requested buffer length (", count,
            " elements) after offset (", offset,
            " bytes) must not be greater than actual buffer length (", bytes, " bytes)");
      int64_t n = count == -1 ? room : count;
      Tensor t =
          from_storage(wrap_buffer(view, static_cast<char*>(view->buf) + offset, size_t(n * size)),
                       Shape{n}, Shape{1}, dtype);
      if (requires_grad) set_requires_grad(t, true);
      return wrap(t);
    } catch (const Error&) {
      if (view->obj) release_context(view);
      throw;
    }
  });
}

PyObject* numpy(PyObject*, PyObject* self) {
  return guarded([&] { return tensor_to_array(expect_tensor(self, "self")); });
}

// ---- DLPack
// The structs of the DLPack 1.1 ABI (dmlc.github.io/dlpack).

struct DlDevice {
  int32_t type, id;
};
struct DlDataType {
  uint8_t code, bits;
  uint16_t lanes;
};
struct DlTensor {
  void* data;
  DlDevice device;
  int32_t ndim;
  DlDataType dtype;
  int64_t *shape, *strides;
  uint64_t byte_offset;
};
struct DlManaged {
  DlTensor tensor;
  void* context;
  void (*deleter)(DlManaged*);
};
struct DlManagedVersioned {
  uint32_t major, minor;
  void* context;
  void (*deleter)(DlManagedVersioned*);
  uint64_t flags;
  DlTensor tensor;
};
constexpr uint64_t kDlReadOnly = 1;
constexpr int32_t kDlCpu = 1;
enum DlCode : uint8_t {
  kDlInt = 0,
  kDlUInt = 1,
  kDlFloat = 2,
  kDlBfloat = 4,
  kDlComplex = 5,
  kDlBool = 6
};

DlDataType dl_type(DType t) {
  uint8_t code = is_bool(t)             ? kDlBool
                 : is_complex(t)        ? kDlComplex
                 : t == DType::bfloat16 ? kDlBfloat
                 : is_floating(t)       ? kDlFloat
                 : is_unsigned(t)       ? kDlUInt
                                        : kDlInt;
  return {code, uint8_t(dtype_size(t) * 8), 1};
}
bool read_dl_type(DlDataType type, DType& out) {
  for (int i = 0; i < kDTypeCount; ++i) {
    DlDataType t = dl_type(DType(i));
    if (t.code != type.code || t.bits != type.bits || type.lanes != 1) continue;
    out = DType(i);
    return true;
  }
  return false;
}

template <class Managed>
Managed* export_tensor(const Tensor& t) {
  auto* exported = new Exported(t);
  auto* managed = new Managed{};
  managed->tensor = {t.data(),
                     {kDlCpu, 0},
                     int32_t(t.dim()),
                     dl_type(t.dtype()),
                     exported->sizes.data(),
                     exported->strides.data(),
                     0};
  managed->context = exported;
  managed->deleter = [](Managed* m) {
    delete static_cast<Exported*>(m->context);
    delete m;
  };
  return managed;
}
// A capsule that nobody consumed frees its struct.
template <class Managed>
void free_capsule(PyObject* capsule) {
  const char* name = PyCapsule_GetName(capsule);
  if (!name || std::strncmp(name, "used_", 5) == 0) return;
  auto* managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule, name));
  if (managed && managed->deleter) managed->deleter(managed);
}

PyObject* to_dlpack(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject* self;
    int versioned, copy;
    if (!PyArg_ParseTuple(args, "Opp", &self, &versioned, &copy)) return nullptr;
    Tensor t = expect_tensor(self, "self");
    if (gradient_edge_exists(t)) {
      PyErr_SetString(PyExc_BufferError,
                      "Can't export tensors that require gradient, use tensor.detach()");
      return nullptr;
    }
    if (!t.device().is_cpu()) {
      PyErr_SetString(PyExc_BufferError,
                      "only tensors on the CPU can be exported; use tensor.cpu() first");
      return nullptr;
    }
    if (copy) t = clone_dense(t);
    if (versioned) {
      auto* managed = export_tensor<DlManagedVersioned>(t);
      managed->major = 1;
      managed->flags = t.storage()->readonly() ? kDlReadOnly : 0;
      return PyCapsule_New(managed, "dltensor_versioned", free_capsule<DlManagedVersioned>);
    }
    if (t.storage()->readonly()) {
      PyErr_SetString(PyExc_BufferError,
                      "read-only memory can only be exported to consumers of DLPack 1.0 or newer");
      return nullptr;
    }
    return PyCapsule_New(export_tensor<DlManaged>(t), "dltensor", free_capsule<DlManaged>);
  });
}

template <class Managed>
Tensor import_tensor(Managed* managed, bool readonly) {
  const DlTensor& dl = managed->tensor;
  DType dtype;
  CHECK(read_dl_type(dl.dtype, dtype), "from_dlpack: element type with code ", int(dl.dtype.code),
        " and ", int(dl.dtype.bits), " bits is not supported");
  CHECK(dl.device.type == kDlCpu, ErrorKind::kNotImplemented,
        "from_dlpack: only CPU memory is supported, got device type ", dl.device.type);
  CHECK(dl.ndim >= 0 && dl.ndim <= kMaxDims, "from_dlpack: ", dl.ndim, " dims are not supported");
  Shape sizes(dl.shape, dl.shape + dl.ndim);
  checked_numel(sizes);
  Shape strides = dl.strides ? Shape(dl.strides, dl.strides + dl.ndim) : contiguous_strides(sizes);
  int64_t bytes = storage_bytes_needed(sizes, strides, 0, dtype_size(dtype));
  auto release = [](void* context) {
    auto* m = static_cast<Managed*>(context);
    if (m->deleter) m->deleter(m);
  };
  Storage storage = StorageImpl::wrap(static_cast<char*>(dl.data) + dl.byte_offset, size_t(bytes),
                                      Device{}, release, managed, readonly);
  return from_storage(std::move(storage), sizes, strides, dtype);
}

PyObject* from_dlpack_capsule(PyObject*, PyObject* capsule) {
  return guarded([&]() -> PyObject* {
    if (PyCapsule_IsValid(capsule, "dltensor_versioned")) {
      auto* managed =
          static_cast<DlManagedVersioned*>(PyCapsule_GetPointer(capsule, "dltensor_versioned"));
      CHECK(managed->major == 1, "from_dlpack: DLPack version ", managed->major,
            " is not supported");
      Tensor t = import_tensor(managed, managed->flags & kDlReadOnly);
      checked(PyCapsule_SetName(capsule, "used_dltensor_versioned"));
      return wrap(t);
    }
    CHECK(PyCapsule_IsValid(capsule, "dltensor"),
          "from_dlpack: expected a DLPack capsule that was not consumed yet");
    Tensor t =
        import_tensor(static_cast<DlManaged*>(PyCapsule_GetPointer(capsule, "dltensor")), false);
    checked(PyCapsule_SetName(capsule, "used_dltensor"));
    return wrap(t);
  });
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
    {"_to_dlpack", to_dlpack, METH_VARARGS, "A DLPack capsule (tensor, versioned, copy)."},
    {"_from_dlpack", from_dlpack_capsule, METH_O, "Takes over a DLPack capsule."},
    {}};

}  // namespace

Tensor from_storage(Storage storage, ShapeRef sizes, ShapeRef strides, DType dtype) {
  Tensor seed = empty(Shape{0}, dtype);
  seed.impl()->storage = std::move(storage);
  return alias(seed, sizes, strides, 0);
}

Tensor tensor_from_array(PyObject* array, bool copy) {
  Py_buffer* view;
  try {
    view = acquire(array);
  } catch (const PythonError&) {
    PyErr_Clear();
    CHECK(false, ErrorKind::kType,
          "can't convert np.ndarray of this type. The supported types are: float64, float32, "
          "float16, complex64, complex128, int64, int32, int16, int8, uint64, uint32, uint16, "
          "uint8, and bool.");
    __builtin_unreachable();
  }
  Storage storage;  // owns the view from here on, also when a check fails
  Shape sizes(view->shape, view->shape + view->ndim), strides;
  int64_t item = view->itemsize;
  DType dtype = DType::uint8;
  bool known = read_format(view->format, size_t(item), dtype);
  std::string format = view->format ? view->format : "B";
  bool whole = true, forward = true;
  for (int d = 0; d < view->ndim; ++d) {
    forward &= view->strides[d] >= 0 || sizes[size_t(d)] <= 1;
    whole &= view->strides[d] % item == 0;
    strides.push_back(sizes[size_t(d)] <= 1 ? 1 : view->strides[d] / item);
  }
  int64_t bytes = forward && whole ? storage_bytes_needed(sizes, strides, 0, size_t(item)) : 0;
  storage = wrap_buffer(view, view->buf, size_t(bytes));
  CHECK(known, ErrorKind::kType, "can't convert np.ndarray of format '", format,
        "'. The supported types are: float64, float32, "
        "float16, complex64, complex128, int64, int32, int16, int8, uint64, uint32, uint16, uint8, "
        "and bool.");
  CHECK(forward, ErrorKind::kValue,
        "At least one stride in the given numpy array is negative, and tensors with negative "
        "strides are "
        "not supported. Make a copy with array.copy().");
  CHECK(
      whole, ErrorKind::kValue,
      "given numpy array strides not a multiple of the element byte size. Copy the numpy array to "
      "reallocate the memory.");
  Tensor tensor = from_storage(std::move(storage), sizes, strides, dtype);
  return copy ? clone_dense(tensor) : tensor;
}

PyObject* tensor_to_array(const Tensor& tensor) {
  CHECK(tensor.device().is_cpu(), ErrorKind::kType, "can't convert ", tensor.device(),
        " device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first.");
  CHECK(!gradient_edge_exists(tensor),
        "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.");
  CHECK(format_of(tensor.dtype()), ErrorKind::kType,
        "Got unsupported ScalarType BFloat16. Use tensor.float().numpy().");
  Ref module(checked(PyImport_ImportModule("numpy")));
  Ref object(wrap(tensor));
  Ref view(checked(PyMemoryView_FromObject(object.get())));
  return checked(PyObject_CallMethod(module.get(), "asarray", "O", view.get()));
}

void add_interchange(PyObject* module) {
  TensorBaseType.tp_as_buffer = &buffer_methods;
  checked(PyModule_AddFunctions(module, methods));
}

}  // namespace rushlight::python
