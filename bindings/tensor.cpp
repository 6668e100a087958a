// Owns the Python type of tensors: its lifetime, and its methods that are not ops.
//
// Ops come from the op table (op_function.cpp), operators are in operators.cpp.
// rushlight/_tensor.py subclasses this type with what reads better in Python.
//
// Note [One Python object per tensor]
// A TensorImpl has at most one Python object, so that `x.grad is x.grad`. While Python holds the
// object, the object holds the impl. When Python lets go of an object that carries state (a
// subclass such as Parameter, attributes, weak references) while C++ still holds the impl, the
// roles swap: the impl owns the object, whose handle no longer counts, until it is wrapped again
// or the impl dies. An object without state is simply freed and made anew when needed.
#include <algorithm>
#include <string>

#include "bindings/dispatch.h"
#include "bindings/hooks.h"
#include "bindings/override.h"
#include "bindings/tensor_attributes.h"
#include "core/autograd/call_watch.h"
#include "core/ops/ops.h"
#include "core/tensor/element.h"
#include "core/tensor/lift.h"
#include "core/tensor/memory_order.h"
#include "core/tensor/sparse.h"
#include "core/tensor/tile_loop.h"

namespace rushlight::python {

PyTypeObject* tensor_class = nullptr;

namespace {

PyTensor* object_of(PyObject* self) { return reinterpret_cast<PyTensor*>(self); }

// ---- lifetime -----------------------------------------------------------------------------------

bool has_state(PyObject* self) {
  PyTensor* object = object_of(self);
  return Py_TYPE(self) != tensor_class || object->dict || object->weakrefs;
}

// Called by the last owner of the impl. The Python object follows it, or takes its role back when
// Python has got hold of it again by a weak reference.
void release_py_object(void* py_object) {
  PyTensor* object = static_cast<PyTensor*>(py_object);
  TensorImpl* impl = object->tensor.impl();
  if (!Py_IsInitialized()) {
    impl->owns_py_object = false;
    object->tensor.forget();  // the last collections of Python still look at it
    return;
  }
  AcquireGil gil;
  if (!impl->owns_py_object) return;  // another thread has wrapped it meanwhile
  impl->owns_py_object = false;
  if (Py_REFCNT(object) > 1) impl->retain();
  else object->tensor.forget();
  Py_DECREF(reinterpret_cast<PyObject*>(object));
}

void tensor_dealloc(PyObject* self) {
  PyTensor* object = object_of(self);
  PyTypeObject* type = Py_TYPE(self);
  if (type->tp_finalize && PyObject_CallFinalizerFromDealloc(self) < 0) return;
  TensorImpl* impl = object->tensor.impl();
  if (impl && impl->py_object == self) {
    if (impl->use_count() > 1 && has_state(self)) {
      Py_SET_REFCNT(self, 1);  // the impl's reference
      impl->owns_py_object = true;
      if (impl->release()) TensorImpl::destroy(impl);  // the other owner went meanwhile
      return;
    }
    impl->py_object = nullptr;
  }
  PyObject_GC_UnTrack(self);
  if (object->weakrefs) PyObject_ClearWeakRefs(self);
  bool subclass = type->tp_flags & Py_TPFLAGS_HEAPTYPE;
  if (subclass && type->tp_clear) type->tp_clear(self);  // slots of the subclass
  Py_CLEAR(object->dict);
  object->tensor.~Tensor();
  type->tp_free(self);
  if (subclass) Py_DECREF(type);
}

int tensor_traverse(PyObject* self, visitproc visit, void* arg) {
  if (Py_TYPE(self)->tp_flags & Py_TPFLAGS_HEAPTYPE) Py_VISIT(Py_TYPE(self));
  const Tensor& tensor = unwrap(self);
  if (!tensor.defined() || is_alone(tensor)) Py_VISIT(object_of(self)->dict);
  return tensor.defined() ? visit_hooks(tensor, visit, arg) : 0;
}
int tensor_clear(PyObject* self) {
  const Tensor& tensor = unwrap(self);
  if (tensor.defined() && !is_alone(tensor)) return 0;
  if (tensor.defined()) drop_hooks(tensor);
  Py_CLEAR(object_of(self)->dict);
  return 0;
}

// Python gives every subclass a deallocator of its own, which knows nothing of the swap.
int meta_init(PyObject* object, PyObject* args, PyObject* kwargs) {
  if (PyType_Type.tp_init(object, args, kwargs) < 0) return -1;
  auto* type = reinterpret_cast<PyTypeObject*>(object);
  type->tp_dealloc = tensor_dealloc;
  note_dispatch(type);
  return guarded([&] {
    note_tensor_class(type);
    note_hearing(type);
    return 0;
  });
}

// ---- methods that are not ops -------------------------------------------------------------------

template <auto function>
PyObject* no_args(PyObject* self, PyObject*) {
  return guarded([&] { return function(unwrap(self)); });
}

// size() is the shape, size(dim) one of it; stride() likewise.
PyObject* shape_or_one(const char* name, PyObject* dim, const Shape& list,
                       PyObject* (*whole)(ShapeRef)) {
  if (!dim || dim == Py_None) return whole(list);
  try {
    int64_t d;
    CHECK(read_int(dim, d), ErrorKind::kType, "argument 'dim' must be int, not ",
          Py_TYPE(dim)->tp_name);
    return PyLong_FromLongLong(list[size_t(wrap_dim(d, int64_t(list.size())))]);
  } catch (Error& error) {
    error.name_op(name);
    throw;
  }
}
PyObject* stride_tuple(ShapeRef strides) {
  PyObject* tuple = checked(PyTuple_New(Py_ssize_t(strides.size())));
  for (size_t i = 0; i < strides.size(); ++i)
    PyTuple_SET_ITEM(tuple, Py_ssize_t(i), PyLong_FromLongLong(strides[i]));
  return tuple;
}
PyObject* one_argument(PyObject* args, PyObject* kwargs, const char* name) {
  PyObject* value = nullptr;
  const char* names[] = {name, nullptr};
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O", const_cast<char**>(names), &value))
    throw PythonError();
  return value;
}
PyObject* tensor_size(PyObject* self, PyObject* args, PyObject* kwargs) {
  return guarded([&] {
    PyObject* dim = one_argument(args, kwargs, "dim");
    return shape_or_one("size", dim, unwrap(self).sizes(), wrap_size);
  });
}
PyObject* tensor_stride(PyObject* self, PyObject* args, PyObject* kwargs) {
  return guarded([&] {
    PyObject* dim = one_argument(args, kwargs, "dim");
    return shape_or_one("stride", dim, unwrap(self).strides(), stride_tuple);
  });
}
PyObject* tensor_is_contiguous(PyObject* self, PyObject* args, PyObject* kwargs) {
  return guarded([&] {
    PyObject* value = one_argument(args, kwargs, "memory_format");
    MemoryFormat format = MemoryFormat::contiguous;
    CHECK(!value || read_memory_format(value, format), ErrorKind::kType,
          "is_contiguous(): argument 'memory_format' must be torch.memory_format");
    return PyBool_FromLong(unwrap(self).is_contiguous(format));
  });
}

PyObject* tensor_suggested_format(PyObject* self, PyObject*) {
  return guarded([&] { return wrap_memory_format(suggested_format(unwrap(self))); });
}

// The elements in the CPU's memory: from a GPU in one copy, so that there is one wait for all.
Tensor on_cpu(const Tensor& tensor) {
  if (!tensor.device().is_cuda() || tensor.is_hollow()) return tensor;
  Tensor source = tensor;  // other threads may exchange the object's
  Tensor here = empty(source.sizes(), source.dtype());
  ReleaseGil release;
  try {
    copy_into(here, source);
  } catch (Error& error) {
    error.name_op("tolist");
    throw;
  }
  return here;
}

template <class T>
PyObject* list_from(const T* data, ShapeRef sizes, ShapeRef strides) {
  if (sizes.empty()) return wrap_number(number_in<T>(data));
  Ref list(checked(PyList_New(Py_ssize_t(sizes[0]))));
  for (int64_t i = 0; i < sizes[0]; ++i)
    PyList_SET_ITEM(
        list.get(), Py_ssize_t(i),
        checked(list_from(data + i * strides[0], sizes.subspan(1), strides.subspan(1))));
  return list.release();
}

PyTypeObject* expect_tensor_class(PyObject* object) {
  CHECK(PyType_Check(object) &&
            PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(object), &TensorBaseType),
        ErrorKind::kType, "cls must be a subclass of Tensor");
  return reinterpret_cast<PyTypeObject*>(object);
}

PyObject* as_subclass(PyObject* self, PyObject* args, PyObject* kwargs) {
  return guarded([&] {
    static const char* names[] = {"cls", nullptr};
    PyObject* type;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O", const_cast<char**>(names), &type))
      throw PythonError();
    return wrap_in_class(expect_tensor_class(type), call<"alias", Tensor>(unwrap(self)));
  });
}

PyObject* make_subclass(PyObject*, PyObject* args, PyObject* kwargs) {
  return guarded([&] {
    static const char* names[] = {"cls", "data", "require_grad", nullptr};
    PyObject *type, *data;
    int requires_grad = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO|p", const_cast<char**>(names), &type, &data,
                                     &requires_grad))
      throw PythonError();
    PyTypeObject* cls = expect_tensor_class(type);
    Tensor tensor = detach(expect_tensor(data, "data"));
    if (requires_grad) set_requires_grad(tensor, true);
    return wrap_in_class(cls, tensor);
  });
}

PyObject* set_requires_grad_method(PyObject* self, PyObject* args, PyObject* kwargs) {
  return guarded([&] {
    PyObject* value = one_argument(args, kwargs, "requires_grad");
    CHECK(!value || PyBool_Check(value), ErrorKind::kType,
          "requires_grad_(): argument 'requires_grad' (position 1) must be bool, not ",
          Py_TYPE(value)->tp_name);
    set_requires_grad(unwrap(self), value != Py_False);
    return Py_NewRef(self);
  });
}

PyCFunction with_keywords(PyObject* (*function)(PyObject*, PyObject*, PyObject*)) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(function));
}

PyMethodDef tensor_methods[] = {
    {"size", with_keywords(tensor_size), METH_VARARGS | METH_KEYWORDS,
     "The shape, or the size of one dim."},
    {"stride", with_keywords(tensor_stride), METH_VARARGS | METH_KEYWORDS,
     "The steps in memory, in elements, or that of one dim."},
    {"is_contiguous", with_keywords(tensor_is_contiguous), METH_VARARGS | METH_KEYWORDS,
     "Whether the elements lie in row-major order without gaps."},
    {"_suggested_format", tensor_suggested_format, METH_NOARGS,
     "The memory format that the strides suggest."},
    {"dim", no_args<[](const Tensor& t) { return PyLong_FromLongLong(t.dim()); }>, METH_NOARGS,
     "The number of dims."},
    {"ndimension", no_args<[](const Tensor& t) { return PyLong_FromLongLong(t.dim()); }>,
     METH_NOARGS, "The number of dims."},
    {"numel", no_args<[](const Tensor& t) { return PyLong_FromLongLong(t.numel()); }>, METH_NOARGS,
     "The number of elements."},
    {"nelement", no_args<[](const Tensor& t) { return PyLong_FromLongLong(t.numel()); }>,
     METH_NOARGS, "The number of elements."},
    {"is_floating_point", no_args<[](const Tensor& t) {
       return PyBool_FromLong(is_floating(t.dtype()) || is_float8(t.dtype()));
     }>,
     METH_NOARGS, "Whether the elements are floating-point numbers."},
    {"is_complex", no_args<[](const Tensor& t) { return PyBool_FromLong(is_complex(t.dtype())); }>,
     METH_NOARGS, "Whether the elements are complex numbers."},
    {"element_size", no_args<[](const Tensor& t) { return PyLong_FromSize_t(t.itemsize()); }>,
     METH_NOARGS, "The number of bytes of an element."},
    {"storage_offset", no_args<[](const Tensor& t) { return PyLong_FromLongLong(t.offset()); }>,
     METH_NOARGS, "Where the first element lies in the storage, in elements."},
    {"untyped_storage", untyped_storage_of, METH_NOARGS, "The bytes behind the tensor."},
    {"data_ptr", no_args<[](const Tensor& t) {
       return PyLong_FromVoidPtr(t.numel() && t.has_elements() ? t.address() : nullptr);
     }>,
     METH_NOARGS, "The address of the first element."},
    {"item", no_args<[](const Tensor& t) { return wrap_number(item_of(t)); }>, METH_NOARGS,
     "The one element as a Python number."},
    {"tolist", no_args<[](const Tensor& t) {
       if (t.impl()->detours & kIsWrapper) throw NeedsElements(t);
       CHECK(!t.is_sparse(), ErrorKind::kNotImplemented,
             "tolist: not implemented for sparse tensors. Use to_dense() first.");
       Tensor here = on_cpu(t);
       while (is_lifted(here) && level_of(here).kind == LevelKind::dual)
         here = here.impl()->lift->value;
       const void* data = here.numel() ? here.data() : nullptr;
       return visit_stored_dtype(here.dtype(), [&]<class T>(Tag<T>) {
         return list_from(static_cast<const T*>(data), here.sizes(), here.strides());
       });
     }>,
     METH_NOARGS, "The elements as nested lists."},
    {"detach", no_args<[](const Tensor& t) {
       Ref result;
       bool is_watched = call_watch.watchers & kWatchedByModes || t.is_hollow();
       if (is_watched && dispatch_method("detach", t, result)) return result.release();
       return wrap(detach(t));
     }>,
     METH_NOARGS, "The same elements without history; shares memory."},
    {"requires_grad_", with_keywords(set_requires_grad_method), METH_VARARGS | METH_KEYWORDS,
     "Starts (or stops) collecting a gradient; returns the tensor."},
    {"_is_view", no_args<[](const Tensor& t) { return PyBool_FromLong(view_base(t).defined()); }>,
     METH_NOARGS, "Whether it looks into another tensor, its _base."},
    {"as_subclass", with_keywords(as_subclass), METH_VARARGS | METH_KEYWORDS,
     "The same elements and history as an instance of a subclass of Tensor."},
    {"_make_subclass", with_keywords(make_subclass), METH_VARARGS | METH_KEYWORDS | METH_STATIC,
     "The data as an instance of a subclass of Tensor."},
    {}};

}  // namespace

PyTypeObject TensorMetaType = {.ob_base = {PyObject_HEAD_INIT(nullptr) 0},
                               .tp_name = "rushlight._C._TensorMeta",
                               .tp_basicsize = sizeof(TensorMeta),
                               .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
                               .tp_doc = "The class of tensor classes.",
                               .tp_base = &PyType_Type,
                               .tp_init = meta_init};

PyTypeObject TensorBaseType = {
    .ob_base = {PyObject_HEAD_INIT(nullptr) 0},
    .tp_name = "rushlight._C.TensorBase",
    .tp_basicsize = sizeof(PyTensor),
    .tp_dealloc = tensor_dealloc,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .tp_doc = "The native part of Tensor.",
    .tp_traverse = tensor_traverse,
    .tp_clear = tensor_clear,
    .tp_weaklistoffset = offsetof(PyTensor, weakrefs),
    .tp_methods = tensor_methods,
    .tp_getset = tensor_attributes,
    .tp_dictoffset = offsetof(PyTensor, dict)};

PyObject* wrap_as(PyTypeObject* type, const Tensor& tensor) {
  PyObject* object = checked(type->tp_alloc(type, 0));
  new (&object_of(object)->tensor) Tensor(tensor);
  tensor.impl()->py_object = object;
  return object;
}

// (a, b): each object gets the other's tensor, with its history and gradient.
PyObject* swap_tensors(PyObject*, PyObject* all) {
  return guarded([&]() -> PyObject* {
    PyObject *a, *b;
    if (!PyArg_ParseTuple(all, "OO", &a, &b)) return nullptr;
    expect_tensor(a, "t1");
    expect_tensor(b, "t2");
    for (PyObject* object : {a, b})
      CHECK(object_of(object)->tensor.impl()->use_count() == 1, "a graph or another owner uses t",
            object == a ? 1 : 2, ". Swap tensors before they are used, or after backward.");
    std::swap(object_of(a)->tensor, object_of(b)->tensor);
    for (PyObject* object : {a, b}) object_of(object)->tensor.impl()->py_object = object;
    Py_RETURN_NONE;
  });
}

void look_at(const Tensor& tensor, const Storage& storage, int64_t offset, const Shape& sizes,
             const Shape& strides) {
  TensorImpl& impl = *tensor.impl();
  impl.storage = storage;
  impl.offset = offset;
  impl.sizes = sizes;
  impl.strides = strides;
  impl.layout_changed();
  AutogradMeta* meta = find_meta(tensor);
  if (!meta || !meta->accumulator) return;
  ResultInfo& info = meta->accumulator->results[0];
  info = {sizes, tensor.dtype(), tensor.device(), info.any_dtype};
}

PyObject* wrap(const Tensor& tensor) {
  TensorImpl* impl = tensor.impl();
  if (!impl) Py_RETURN_NONE;
  auto* object = static_cast<PyObject*>(impl->py_object);
  if (!object) return wrap_as(tensor_class, tensor);
  if (impl->owns_py_object) {  // the object takes its role back, with the impl's reference to it
    impl->owns_py_object = false;
    impl->retain();
    return object;
  }
  return Py_NewRef(object);
}

PyObject* wrap_tuple(TensorList tensors) {
  Ref tuple(checked(PyTuple_New(Py_ssize_t(tensors.size()))));
  for (size_t i = 0; i < tensors.size(); ++i)
    PyTuple_SET_ITEM(tuple.get(), Py_ssize_t(i), wrap(tensors[i]));
  return tuple.release();
}

namespace {

PyObject* set_tensor_class(PyObject*, PyObject* type) {
  return guarded([&] {
    PyTypeObject* cls = expect_tensor_class(type);
    Py_INCREF(cls);
    tensor_class = cls;
    return Py_NewRef(Py_None);
  });
}

// What modes and the tensor's class make of item(); false when nobody is asked.
[[gnu::cold]] bool dispatch_item(const Tensor& tensor, Scalar& value) {
  Ref number;
  if (!dispatch_method("_local_scalar_dense", tensor, number)) return false;
  CHECK(read_number(number.get(), value), ErrorKind::kType, "item: __torch_dispatch__ returned ",
        Py_TYPE(number.get())->tp_name, ". It returns a number for _local_scalar_dense.");
  return true;
}

}  // namespace

Scalar item_of(const Tensor& tensor) {
  if (call_watch.watchers & kWatchedByModes || tensor.is_hollow()) [[unlikely]]
    if (Scalar value; dispatch_item(tensor, value)) return value;
  if (tensor.is_sparse() && tensor.numel() == 1) [[unlikely]]
    return item(call<"to_dense", Tensor>(tensor, std::optional<DType>(), std::optional<bool>()));
  if (!tensor.device().is_cuda()) return item(tensor);
  Tensor own = tensor;  // other threads may exchange the object's
  ReleaseGil release;
  return item(own);
}

const Tensor& expect_tensor(PyObject* object, const char* what) {
  CHECK(is_tensor(object), ErrorKind::kType, what, " must be Tensor, not ",
        Py_TYPE(object)->tp_name);
  return unwrap(object);
}

void add_tensor(PyObject* module) {
  TensorImpl::release_py_object = release_py_object;
  checked(PyType_Ready(&TensorMetaType));
  TensorBaseType.tp_hash = PyBaseObject_Type.tp_hash;  // by identity, although == is elementwise
  install_operators(TensorBaseType);
  install_buffer(TensorBaseType);
  Py_SET_TYPE(&TensorBaseType, &TensorMetaType);
  checked(PyType_Ready(&TensorBaseType));
  checked(
      PyModule_AddObjectRef(module, "_TensorMeta", reinterpret_cast<PyObject*>(&TensorMetaType)));
  checked(
      PyModule_AddObjectRef(module, "TensorBase", reinterpret_cast<PyObject*>(&TensorBaseType)));
  static PyMethodDef set_class = {"_set_tensor_class", set_tensor_class, METH_O,
                                  "Names the class that results are made of."};
  checked(
      PyModule_AddObject(module, set_class.ml_name, checked(PyCFunction_New(&set_class, nullptr))));
  static PyMethodDef swap[] = {
      {"_swap_tensors", swap_tensors, METH_VARARGS, "Lets two objects change their tensors."}, {}};
  checked(PyModule_AddFunctions(module, swap));
}

}  // namespace rushlight::python
