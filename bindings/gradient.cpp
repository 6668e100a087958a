// Owns Tensor.grad and Tensor.grad_dtype.
#include "bindings/gradient.h"

namespace rushlight::python {

ResultInfo info_of_grad(const Tensor& tensor) {
  AutogradMeta* meta = find_meta(tensor);
  if (meta && meta->accumulator) return meta->accumulator->results[0];
  return {tensor.sizes(), tensor.dtype(), tensor.device()};
}

int set_grad(PyObject* self, PyObject* value, void*) {
  return guarded([&] {
    const Tensor& tensor = unwrap(self);
    if (!value || value == Py_None) {
      if (AutogradMeta* meta = find_meta(tensor)) meta->set_grad({});
      return 0;
    }
    const Tensor& grad = expect_tensor(value, "assigned grad");
    CHECK(!grad.is(tensor), "can't assign Variable as its own grad");
    CHECK(grad.sizes() == tensor.sizes(),
          "assigned grad has data of a different size: ", grad.sizes(), ", the tensor has ",
          tensor.sizes());
    const ResultInfo wanted = info_of_grad(tensor);
    CHECK(grad.dtype() == wanted.dtype || wanted.any_dtype,
          "assigned grad has data of a different type: ", dtype_name(grad.dtype()),
          ", the tensor takes ", dtype_name(wanted.dtype), ". See Tensor.grad_dtype.");
    CHECK(grad.device() == tensor.device(),
          "assigned grad has data located on a different device: ", grad.device(),
          ", the tensor is on ", tensor.device());
    get_meta(tensor).set_grad(grad);
    return 0;
  });
}

PyObject* get_grad(PyObject* self, void*) {
  return guarded([&]() -> PyObject* {
    const Tensor& tensor = unwrap(self);
    AutogradMeta* meta = find_meta(tensor);
    Tensor grad = meta ? meta->grad() : Tensor();
    if (grad.defined()) return wrap(grad);
    if (meta && !meta->retains && !is_leaf(tensor))
      checked(warn_program(
          "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad "
          "attribute won't be populated during autograd.backward(). If you indeed want the .grad "
          "field to be populated for a non-leaf Tensor, use .retain_grad() on it before backward. "
          "If this is a mistake, access the leaf instead."));
    Py_RETURN_NONE;
  });
}

PyObject* get_grad_dtype(PyObject* self, void*) {
  return guarded([&]() -> PyObject* {
    const Tensor& tensor = unwrap(self);
    CHECK(is_leaf(tensor), "grad_dtype can only be accessed on leaf tensors.");
    const ResultInfo info = info_of_grad(tensor);
    return info.any_dtype ? Py_NewRef(Py_None) : wrap_dtype(info.dtype);
  });
}

int set_grad_dtype(PyObject* self, PyObject* value, void*) {
  return guarded([&] {
    CHECK(value, "the attribute grad_dtype cannot be deleted");
    const Tensor& tensor = unwrap(self);
    CHECK(is_leaf(tensor), "grad_dtype can only be set on leaf tensors.");
    bool any = value == Py_None;
    DType dtype = tensor.dtype();
    CHECK(any || read_dtype(value, dtype), ErrorKind::kType,
          "grad_dtype must be a dtype or None, not ", Py_TYPE(value)->tp_name);
    Tensor grad = get_meta(tensor).grad();
    CHECK(any || !grad.defined() || grad.dtype() == dtype, "Cannot set grad_dtype to ",
          dtype_name(dtype), " because there is already a gradient of ", dtype_name(grad.dtype()),
          ". Clear it first: .grad = None.");
    ResultInfo& info = accumulator_of(tensor).results[0];
    info.dtype = dtype;
    info.any_dtype = any;
    return 0;
  });
}

}  // namespace rushlight::python
