// Owns what Python may do to the storage of a tensor; rushlight/_storage.py makes classes of it.
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

PyObject* storage_bytes(PyObject*, PyObject* tensor) {
  return guarded([&] { return wrap(all_bytes(storage_of(tensor))); });
}

// What tells a storage from all others that live, wherever its bytes are.
PyObject* storage_id(PyObject*, PyObject* tensor) {
  return guarded([&] { return checked(PyLong_FromVoidPtr(storage_of(tensor).get())); });
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
    {"_storage_bytes", storage_bytes, METH_O, "The bytes of a tensor's storage, as uint8."},
    {"_storage_id", storage_id, METH_O, "A number of a tensor's storage alone."},
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

}  // namespace

void add_storage(PyObject* module) { checked(PyModule_AddFunctions(module, methods)); }

}  // namespace rushlight::python
