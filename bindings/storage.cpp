// Owns what Python may do to the storage of a tensor, and the class of what holds one, of which
// rushlight/_storage.py makes UntypedStorage.
#include <new>

#include "bindings/python.h"
#include "core/autograd/node.h"
#include "core/base/alignment.h"
#include "core/tensor/lift.h"
#include "core/tensor/mapped_memory.h"
#include "core/tensor/sparse.h"

namespace rushlight::python {
namespace {

const Storage& storage_of(PyObject* object) {
  const Tensor& tensor = expect_tensor(object, "tensor");
  if (tensor.is_sparse()) refuse_sparse(tensor);
  if (is_lifted(tensor)) throw NeedsElements(tensor);
  return tensor.storage();
}

size_t read_size(PyObject* object) {
  int64_t bytes;
  CHECK(read_int(object, bytes), ErrorKind::kType, "a number of bytes must be int, not ",
        Py_TYPE(object)->tp_name);
  CHECK(bytes >= 0, "a storage cannot have ", bytes, " bytes. The number must not be negative.");
  return size_t(bytes);
}

Shape read_shape(PyObject* object) {
  Ref items(checked(PySequence_Fast(object, "expected a sequence of ints")));
  Shape shape;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i) {
    int64_t size;
    Ref item = Ref::borrow(PySequence_Fast_GET_ITEM(items.get(), i));
    CHECK(read_int(item.get(), size), ErrorKind::kType, "expected a sequence of ints");
    shape.push_back(size);
  }
  return shape;
}

Tensor all_bytes(const Storage& storage) {
  return from_storage(storage, Shape{int64_t(storage->bytes())}, Shape{1}, DType::uint8);
}

PyObject* storage_resize(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *tensor, *bytes;
    if (!PyArg_ParseTuple(args, "OO", &tensor, &bytes)) return nullptr;
    const Storage& storage = storage_of(tensor);
    size_t size = read_size(bytes);
    if (size != storage->bytes()) storage->resize(size);
    Py_RETURN_NONE;
  });
}

// set_(tensor, source, offset, size, stride): makes a tensor look at the storage of another.
PyObject* set_storage(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *tensor, *source, *size, *stride;
    long long offset;
    if (!PyArg_ParseTuple(args, "OOLOO", &tensor, &source, &offset, &size, &stride)) return nullptr;
    storage_of(tensor);  // refuses what has none
    const Tensor& to = unwrap(tensor);
    const Storage& storage = storage_of(source);
    CHECK(!gradient_edge_exists(to) || !is_grad_enabled(),
          "set_: the tensor requires grad, and its storage cannot be changed under the tape. Do it "
          "under torch.no_grad().");
    CHECK(storage->device() == to.device(), "set_: the tensor is on ", to.device(),
          ", but the storage is on ", storage->device());
    Shape sizes = read_shape(size), strides = read_shape(stride);
    if (to.device().is_cpu()) check_aligned(storage->data(), to.dtype());
    CHECK(offset >= 0, "set_: storage_offset must not be negative, got ", offset);
    CHECK(sizes.size() == strides.size(), "set_: size has ", sizes.size(), " dims, but stride has ",
          strides.size());
    checked_numel(sizes);
    // The window must lie inside, or the storage grow to hold it.
    int64_t needed = storage_bytes_needed(sizes, strides, offset, to.itemsize());
    if (needed > int64_t(storage->bytes())) storage->resize(size_t(needed));
    look_at(to, Storage(storage), offset, sizes, strides);
    return Py_NewRef(tensor);
  });
}

PyObject* storage_share(PyObject*, PyObject* tensor) {
  return guarded([&]() -> PyObject* {
    ReleaseGil::keep_while_running(share_memory(*storage_of(tensor)));
    Py_RETURN_NONE;
  });
}
PyObject* storage_is_shared(PyObject*, PyObject* tensor) {
  return guarded([&] { return PyBool_FromLong(is_shared(*storage_of(tensor))); });
}
PyObject* storage_shared_file(PyObject*, PyObject* tensor) {
  return guarded([&] { return PyLong_FromLong(shared_file(*storage_of(tensor))); });
}

PyObject* open_shared_bytes(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    int descriptor;
    PyObject* bytes;
    if (!PyArg_ParseTuple(args, "iO", &descriptor, &bytes)) return nullptr;
    return wrap(all_bytes(open_shared(descriptor, read_size(bytes))));
  });
}
PyObject* map_file_bytes(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *path, *bytes;
    int shared;
    if (!PyArg_ParseTuple(args, "O&pO", PyUnicode_FSConverter, &path, &shared, &bytes))
      return nullptr;
    Ref owner(path);
    return wrap(all_bytes(map_file(PyBytes_AS_STRING(path), shared, read_size(bytes))));
  });
}

PyMethodDef methods[] = {
    {"_storage_resize", storage_resize, METH_VARARGS, "Makes the storage longer or shorter."},
    {"_set_storage", set_storage, METH_VARARGS,
     "Makes a tensor look at the storage of another: (tensor, source, offset, size, stride)."},
    {"_storage_share", storage_share, METH_O, "Moves the storage to shared memory."},
    {"_storage_is_shared", storage_is_shared, METH_O, "Whether processes share the storage."},
    {"_storage_shared_file", storage_shared_file, METH_O, "The descriptor of shared memory."},
    {"_open_shared_bytes", open_shared_bytes, METH_VARARGS,
     "The bytes of shared memory by its descriptor, as uint8."},
    {"_map_file_bytes", map_file_bytes, METH_VARARGS,
     "The first bytes of a file as uint8: (path, shared, bytes)."},
    {}};

struct PyStorage {
  PyObject_HEAD Storage storage;  // null until __init__
};

Storage& held_by(PyObject* self) { return reinterpret_cast<PyStorage*>(self)->storage; }

const Storage& storage_in(PyObject* self) {
  const Storage& storage = held_by(self);
  CHECK(storage, Py_TYPE(self)->tp_name, ": __init__() was not called");
  return storage;
}

PyObject* holder(PyTypeObject* type, const Storage& storage) {
  PyObject* self = checked(type->tp_alloc(type, 0));
  new (&held_by(self)) Storage(storage);
  return self;
}
PyObject* holder_new(PyTypeObject* type, PyObject*, PyObject*) {
  return guarded([&] { return holder(type, Storage()); });
}
void holder_dealloc(PyObject* self) {
  held_by(self).~Storage();
  Py_TYPE(self)->tp_free(self);
}

PyObject* hold_that_of(PyObject* type, PyObject* tensor) {
  return guarded([&] { return holder(reinterpret_cast<PyTypeObject*>(type), storage_of(tensor)); });
}
PyObject* hold(PyObject* self, PyObject* tensor) {
  return guarded([&]() -> PyObject* {
    held_by(self) = storage_of(tensor);
    Py_RETURN_NONE;
  });
}

template <auto function>
PyObject* no_args(PyObject* self, PyObject*) {
  return guarded([&] { return function(storage_in(self)); });
}
template <auto function>
PyObject* attribute(PyObject* self, void*) {
  return guarded([&] { return function(storage_in(self)); });
}

PyObject* bytes_of(const Storage& storage) { return PyLong_FromSize_t(storage->bytes()); }
PyObject* id_of(const Storage& storage) { return PyLong_FromVoidPtr(storage.get()); }
PyObject* address_of(const Storage& storage) {
  return PyLong_FromVoidPtr(storage->bytes() ? storage->data() : nullptr);
}

// Holders are equal when they hold the same storage.
PyTypeObject& holder_type();
Py_hash_t holder_hash(PyObject* self) { return _Py_HashPointer(held_by(self).get()); }
PyObject* holder_compare(PyObject* self, PyObject* other, int op) {
  if (!PyObject_TypeCheck(other, &holder_type()) || (op != Py_EQ && op != Py_NE))
    Py_RETURN_NOTIMPLEMENTED;
  return PyBool_FromLong((held_by(self).get() == held_by(other).get()) == (op == Py_EQ));
}

PyMethodDef holder_methods[] = {
    {"_of", hold_that_of, METH_O | METH_CLASS, "The storage of a tensor."},
    {"_hold", hold, METH_O, "Takes the storage of a tensor instead of its own."},
    {"_values", no_args<[](const Storage& storage) { return wrap(all_bytes(storage)); }>,
     METH_NOARGS, "The bytes as a tensor that shares the memory."},
    {"size", no_args<bytes_of>, METH_NOARGS, "The number of bytes."},
    {"nbytes", no_args<bytes_of>, METH_NOARGS, "The number of bytes."},
    {"element_size", no_args<[](const Storage&) { return PyLong_FromLong(1); }>, METH_NOARGS,
     "The number of bytes of an element, 1."},
    {"data_ptr", no_args<address_of>, METH_NOARGS, "The address of the first byte."},
    {"is_shared",
     no_args<[](const Storage& storage) { return PyBool_FromLong(is_shared(*storage)); }>,
     METH_NOARGS, "Whether processes share the memory."},
    {"resizable",
     no_args<[](const Storage& storage) { return PyBool_FromLong(!storage->others_may_write()); }>,
     METH_NOARGS, "Whether the memory is our own and lent to nobody, so that resize_ works."},
    {}};
PyGetSetDef holder_attributes[] = {
    {"_cdata", attribute<id_of>, nullptr, "A number that no other storage has while this lives.",
     nullptr},
    {"device", attribute<[](const Storage& storage) { return wrap_device(storage->device()); }>,
     nullptr, "The device whose memory it is.", nullptr},
    {"is_cuda",
     attribute<[](const Storage& storage) { return PyBool_FromLong(storage->device().is_cuda()); }>,
     nullptr, "Whether it is on a GPU.", nullptr},
    {}};

PySequenceMethods holder_sequence = {.sq_length = [](PyObject* self) {
  return guarded([&] { return Py_ssize_t(storage_in(self)->bytes()); });
}};

PyTypeObject HolderType = {.ob_base = {PyObject_HEAD_INIT(nullptr) 0},
                           .tp_name = "rushlight._C.StorageHolder",
                           .tp_basicsize = sizeof(PyStorage),
                           .tp_dealloc = holder_dealloc,
                           .tp_as_sequence = &holder_sequence,
                           .tp_hash = holder_hash,
                           .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
                           .tp_doc = "What holds the storage of a tensor.",
                           .tp_richcompare = holder_compare,
                           .tp_methods = holder_methods,
                           .tp_getset = holder_attributes,
                           .tp_new = holder_new};

PyTypeObject& holder_type() { return HolderType; }

}  // namespace

PyObject* untyped_storage_of(PyObject* tensor, PyObject*) {
  return guarded([&] {
    static PyObject* type = nullptr;
    if (!type) {
      Ref module(checked(PyImport_ImportModule("rushlight._storage")));
      type = checked(PyObject_GetAttrString(module.get(), "UntypedStorage"));
    }
    return holder(reinterpret_cast<PyTypeObject*>(type), storage_of(tensor));
  });
}

void add_storage(PyObject* module) {
  checked(PyModule_AddFunctions(module, methods));
  checked(PyType_Ready(&HolderType));
  checked(PyModule_AddObjectRef(module, "StorageHolder", reinterpret_cast<PyObject*>(&HolderType)));
}

}  // namespace rushlight::python
