// Owns memory shared by DLPack, both ways: versioned capsules and those from before version 1.0.
//
// A capsule comes from anybody, so that all of it is checked before it is taken over; from then on
// its struct belongs to the storage.
#include <cstring>

#include "bindings/python.h"
#include "core/autograd/node.h"
#include "core/device/cuda.h"
#include "core/tensor/tile_loop.h"

namespace rushlight::python {
namespace {

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

  static constexpr const char* kName = "dltensor";
  static constexpr const char* kUsed = "used_dltensor";
};
struct DlManagedVersioned {
  uint32_t major, minor;
  void* context;
  void (*deleter)(DlManagedVersioned*);
  uint64_t flags;
  DlTensor tensor;

  static constexpr const char* kName = "dltensor_versioned";
  static constexpr const char* kUsed = "used_dltensor_versioned";
};
constexpr uint64_t kDlReadOnly = 1, kDlIsCopied = 2;
enum DlDeviceType : int32_t { kDlCpu = 1, kDlCuda = 2, kDlCudaHost = 3 };
enum DlCode : uint8_t {
  kDlInt = 0,
  kDlUInt = 1,
  kDlFloat = 2,
  kDlBfloat = 4,
  kDlComplex = 5,
  kDlBool = 6,
  kDlFloat8E4M3Fn = 10,
  kDlFloat8E5M2 = 12
};

DlDataType dl_type(DType t) {
  uint8_t code = is_bool(t)                  ? kDlBool
                 : is_complex(t)             ? kDlComplex
                 : t == DType::bfloat16      ? kDlBfloat
                 : t == DType::float8_e4m3fn ? kDlFloat8E4M3Fn
                 : t == DType::float8_e5m2   ? kDlFloat8E5M2
                 : is_floating(t)            ? kDlFloat
                 : is_unsigned(t)            ? kDlUInt
                                             : kDlInt;
  return {code, uint8_t(dtype_size(t) * 8), 1};
}
DType read_dl_type(DlDataType type) {
  for (int i = 0; i < kDTypeCount; ++i) {
    DlDataType t = dl_type(DType(i));
    if (t.code == type.code && t.bits == type.bits && type.lanes == 1) return DType(i);
  }
  CHECK(false, "from_dlpack: elements of type code ", int(type.code), ", ", int(type.bits),
        " bits and ", type.lanes, " lanes have no dtype here.");
  __builtin_unreachable();
}

DlDevice dl_device(Device device) {
  if (device.is_cuda()) return {kDlCuda, device.index};
  return {kDlCpu, 0};
}
Device read_dl_device(DlDevice device) {
  if (device.type == kDlCpu || device.type == kDlCudaHost) return {};
  CHECK(device.type == kDlCuda, ErrorKind::kNotImplemented, "from_dlpack: memory of device type ",
        device.type, " is not supported. It must be the CPU's (1) or CUDA's (2).");
  CHECK(device.id >= 0 && device.id < cuda::device_count(), "from_dlpack: there is no CUDA device ",
        device.id, "; there are ", cuda::device_count(), ".");
  return {DeviceType::cuda, int8_t(device.id)};
}

// ---- out ----------------------------------------------------------------------------------------

template <class Managed>
Managed* export_tensor(const Tensor& t) {
  auto* exported = new Exported(t);
  auto* managed = new Managed{};
  managed->tensor = {t.address(),
                     dl_device(t.device()),
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
PyObject* capsule_of(Managed* managed) {
  return PyCapsule_New(managed, Managed::kName, [](PyObject* capsule) {
    if (!PyCapsule_IsValid(capsule, Managed::kName)) return;
    auto* m = static_cast<Managed*>(PyCapsule_GetPointer(capsule, Managed::kName));
    m->deleter(m);
  });
}

PyObject* refuse(const char* why) {
  PyErr_SetString(PyExc_BufferError, why);
  return nullptr;
}

PyObject* to_dlpack(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject* self;
    int versioned, copy, readonly;
    if (!PyArg_ParseTuple(args, "Oppp", &self, &versioned, &copy, &readonly)) return nullptr;
    Tensor t = expect_tensor(self, "self");
    if (gradient_edge_exists(t))
      return refuse("Can't export tensors that require gradient, use tensor.detach()");
    if (t.device().is_meta()) return refuse("Cannot pack tensors on meta, which have no data.");
    if (const char* why = why_without_memory(t)) return refuse(why);
    if (copy) t = clone_dense(t);
    readonly |= t.storage()->readonly();
    if (versioned) {
      auto* managed = export_tensor<DlManagedVersioned>(t);
      managed->major = 1;
      managed->flags = (readonly ? kDlReadOnly : 0) | (copy ? kDlIsCopied : uint64_t(0));
      return capsule_of(managed);
    }
    if (readonly)
      return refuse("read-only memory can only be exported to consumers of DLPack 1.0 or newer");
    return capsule_of(export_tensor<DlManaged>(t));
  });
}

// ---- in -----------------------------------------------------------------------------------------

// The layout that a struct describes, checked.
struct Described {
  DType dtype;
  Device device;
  Shape sizes, strides;
  char* data;
  size_t bytes;

  explicit Described(const DlTensor& dl)
      : dtype(read_dl_type(dl.dtype)), device(read_dl_device(dl.device)) {
    CHECK(dl.ndim >= 0 && dl.ndim <= kMaxDims, "from_dlpack: ", dl.ndim,
          " dims are not supported. There may be 0 to ", kMaxDims, ".");
    CHECK(dl.ndim == 0 || dl.shape, "from_dlpack: the capsule has ", dl.ndim,
          " dims, but no shape");
    sizes = Shape(dl.shape, dl.shape + dl.ndim);
    int64_t numel = checked_numel(sizes);
    strides = contiguous_strides(sizes);
    for (size_t d = 0; d < sizes.size() && dl.strides && numel > 0; ++d)
      if (sizes[d] != 1) strides[d] = dl.strides[d];  // others are never taken
    bytes = size_t(storage_bytes_needed(sizes, strides, 0, dtype_size(dtype)));
    CHECK(bytes == 0 || dl.data, "from_dlpack: the capsule has ", numel, " elements, but no data");
    data = static_cast<char*>(dl.data) + dl.byte_offset;
  }
};

template <class Managed>
PyObject* take_over(PyObject* capsule, Managed* managed, bool readonly) {
  Described described(managed->tensor);
  checked(PyCapsule_SetName(capsule, Managed::kUsed));
  auto release = [](void* context) {
    auto* m = static_cast<Managed*>(context);
    if (!m->deleter || !Py_IsInitialized()) return;
    AcquireGil gil;  // a deleter may be Python
    AsideError aside;
    m->deleter(m);
  };
  Storage storage = StorageImpl::wrap(described.data, described.bytes, described.device, release,
                                      managed, readonly);
  return wrap(
      from_storage(std::move(storage), described.sizes, described.strides, described.dtype));
}

PyObject* from_dlpack(PyObject*, PyObject* capsule) {
  return guarded([&]() -> PyObject* {
    if (PyCapsule_IsValid(capsule, DlManagedVersioned::kName)) {
      auto* managed = static_cast<DlManagedVersioned*>(
          PyCapsule_GetPointer(capsule, DlManagedVersioned::kName));
      CHECK(managed->major == 1, "from_dlpack: the capsule is of DLPack version ", managed->major,
            ", which is not supported. It must be 1.");
      return take_over(capsule, managed, managed->flags & kDlReadOnly);
    }
    CHECK(PyCapsule_IsValid(capsule, DlManaged::kName),
          "from_dlpack received an invalid capsule. Note that DLTensor capsules can be consumed "
          "only once, so you might have already constructed a tensor from it once.");
    return take_over(
        capsule, static_cast<DlManaged*>(PyCapsule_GetPointer(capsule, DlManaged::kName)), false);
  });
}

PyMethodDef methods[] = {{"_to_dlpack", to_dlpack, METH_VARARGS,
                          "A DLPack capsule (tensor, versioned, copy, readonly)."},
                         {"_from_dlpack", from_dlpack, METH_O, "Takes over a DLPack capsule."},
                         {}};

}  // namespace

void add_dlpack(PyObject* module) { checked(PyModule_AddFunctions(module, methods)); }

}  // namespace rushlight::python
