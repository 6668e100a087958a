// Defines the attributes of tensors, but for those that hold a gradient.
#include "bindings/tensor_attributes.h"

#include "bindings/dispatch.h"
#include "bindings/gradient.h"
#include "bindings/override.h"
#include "core/ops/ops.h"
#include "core/tensor/lift.h"
#include "core/tensor/sparse.h"

namespace rushlight::python {
namespace {

template <auto function>
PyObject* get(PyObject* self, void*) {
  return guarded([&] { return function(unwrap(self)); });
}
PyObject* to_bool(bool value) { return PyBool_FromLong(value); }

int set_requires_grad_attribute(PyObject* self, PyObject* value, void*) {
  return guarded([&] {
    CHECK(value && PyBool_Check(value), "requires_grad must be a bool");
    set_requires_grad(unwrap(self), value == Py_True);
    return 0;
  });
}

bool is_wrapper(const Tensor& tensor) { return tensor.impl()->detours & kIsWrapper; }

Tensor untracked_data(const Tensor& tensor) {
  Tensor data = detach(tensor);
  data.impl()->untracked = true;
  return data;
}

PyObject* get_data(PyObject* self, void*) {
  return guarded([&] {
    Tensor data = untracked_data(unwrap(self));
    bool is_made = data.impl()->py_object;  // by the class that detach() was dispatched to
    return stays_in_class(self) && !is_made ? wrap_in_class(Py_TYPE(self), data) : wrap(data);
  });
}

int set_data(PyObject* self, PyObject* value, void*) {
  return guarded([&] {
    CHECK(value, "the attribute data cannot be deleted");
    const Tensor& from = expect_tensor(value, "data");
    const Tensor& to = unwrap(self);
    CHECK(!is_wrapper(from) && !is_wrapper(to),
          "data cannot be set from or to a tensor made by _make_wrapper_subclass. Write with "
          "copy_(), or put a new tensor in its place.");
    CHECK(
        !is_lifted(from) && !is_lifted(to),
        "data cannot be set inside vmap or forward mode, where tensors have no memory. Write with "
        "copy_() instead.");
    CHECK(!to.requires_grad() || is_differentiable(from.dtype()),
          "data set to a tensor that requires gradients must be floating point or complex dtype");
    DType chosen = info_of_grad(to).dtype;
    bool is_chosen = chosen != to.dtype();
    to.impl()->dtype = from.dtype();
    to.impl()->sparse = from.impl()->sparse;
    to.impl()->parts_changed();
    look_at(to, from.storage(), from.offset(), from.sizes(), from.strides());
    if (is_chosen) accumulator_of(to).results[0].dtype = chosen;
    return 0;
  });
}

PyObject* dict_of(PyObject* self, void*) {
  PyObject*& dict = reinterpret_cast<PyTensor*>(self)->dict;
  if (!dict) dict = PyDict_New();
  return Py_XNewRef(dict);
}

int set_dict(PyObject* self, PyObject* value, void*) {
  if (!value || !PyDict_Check(value)) {
    PyErr_SetString(PyExc_TypeError, "__dict__ must be set to a dictionary.");
    return -1;
  }
  Py_XSETREF(reinterpret_cast<PyTensor*>(self)->dict, Py_NewRef(value));
  return 0;
}

PyObject* version_of(const Tensor& tensor) {
  CHECK(!tensor.impl()->inference,
        "Inference tensors do not track version counter. Clone it outside inference_mode first.");
  return PyLong_FromLong(tensor.impl()->untracked ? 0 : long(tensor.storage()->version()));
}

}  // namespace

#define RUSHLIGHT_READONLY(name, doc, ...) \
  {name, get<[]([[maybe_unused]] const Tensor& t) -> PyObject* { return __VA_ARGS__; }>,  \
   nullptr, doc, nullptr}

PyGetSetDef tensor_attributes[] = {
    RUSHLIGHT_READONLY("shape", "The sizes, one per dim.", wrap_size(t.sizes())),
    RUSHLIGHT_READONLY("dtype", "The type of the elements.", wrap_dtype(t.dtype())),
    RUSHLIGHT_READONLY("device", "Where the elements are.", wrap_device(t.device())),
    RUSHLIGHT_READONLY("ndim", "The number of dims.", PyLong_FromLongLong(t.dim())),
    RUSHLIGHT_READONLY("itemsize", "The number of bytes of an element.",
                       PyLong_FromSize_t(t.itemsize())),
    RUSHLIGHT_READONLY("nbytes", "The number of bytes of all elements.",
                       PyLong_FromLongLong(t.numel() * int64_t(t.itemsize()))),
    RUSHLIGHT_READONLY("is_leaf", "Whether no recorded op made it.", to_bool(is_leaf(t))),
    RUSHLIGHT_READONLY("is_cpu", "Whether it is on the CPU.", to_bool(t.device().is_cpu())),
    RUSHLIGHT_READONLY("is_cuda", "Whether it is on a GPU.", to_bool(t.device().is_cuda())),
    RUSHLIGHT_READONLY("is_meta", "Whether it has a shape but no data.",
                       to_bool(t.device().is_meta())),
    RUSHLIGHT_READONLY("is_sparse", "Whether its layout is sparse_coo.",
                       to_bool(layout_of(t) == Layout::sparse_coo)),
    RUSHLIGHT_READONLY("is_sparse_csr", "Whether its layout is sparse_csr.",
                       to_bool(layout_of(t) == Layout::sparse_csr)),
    RUSHLIGHT_READONLY("_layout", "The number of its layout.", PyLong_FromLong(long(layout_of(t)))),
    RUSHLIGHT_READONLY("is_quantized", "Always False.", to_bool(false)),
    RUSHLIGHT_READONLY("output_nr", "Which result of its node the tensor is.",
                       PyLong_FromLong(find_meta(t) ? long(find_meta(t)->slot) : 0)),
    RUSHLIGHT_READONLY("retains_grad", "Whether a computed tensor keeps its gradient.",
                       to_bool(find_meta(t) && find_meta(t)->retains)),
    RUSHLIGHT_READONLY("_version", "The number of in-place writes to its memory.", version_of(t)),
    RUSHLIGHT_READONLY("_base", "The tensor that a view looks into, or None.", wrap(view_base(t))),
    {"requires_grad", get<[](const Tensor& t) { return to_bool(gradient_edge_exists(bottom(t))); }>,
     set_requires_grad_attribute, "Whether backward computes its gradient.", nullptr},
    {"grad", get_grad, set_grad, "The gradient collected by backward, or None.", nullptr},
    {"_grad", get_grad, set_grad, "The same as grad.", nullptr},
    {"grad_dtype", get_grad_dtype, set_grad_dtype,
     "The dtype in which a leaf collects its gradient; None for whatever arrives.", nullptr},
    {"data", get_data, set_data, "The tensor without history; writes through it are not tracked.",
     nullptr},
    {"__dict__", dict_of, set_dict, nullptr, nullptr},
    {}};
#undef RUSHLIGHT_READONLY

}  // namespace rushlight::python
