// Owns what pybind11 makes of arguments and results that are tensors, dtypes, devices or numbers.
#pragma once

#include <pybind11/stl.h>

#include <rushlight/operators.h>

namespace pybind11::detail {

template <>
struct type_caster<at::Tensor> {
  PYBIND11_TYPE_CASTER(at::Tensor, const_name("torch.Tensor"));
  bool load(handle source, bool) {
    at::abi::Tensor* found = c10::table().from_python(source.ptr());
    value = at::Tensor(found);
    return found != nullptr;
  }
  static handle cast(const at::Tensor& tensor, return_value_policy, handle) {
    return at::detail::to_python(tensor).release();
  }
};

template <>
struct type_caster<c10::ScalarType> {
  PYBIND11_TYPE_CASTER(c10::ScalarType, const_name("torch.dtype"));
  bool load(handle source, bool) {
    static constexpr c10::ScalarType all[] = {
#define RUSHLIGHT_CASE(type, name, dtype) c10::ScalarType::name,
        RUSHLIGHT_DTYPES(RUSHLIGHT_CASE)
#undef RUSHLIGHT_CASE
            c10::ScalarType::Float8_e5m2,
        c10::ScalarType::Float8_e4m3fn};
    for (c10::ScalarType type : all) {
      if (!source.is(at::detail::to_python(type))) continue;
      value = type;
      return true;
    }
    return false;
  }
  static handle cast(c10::ScalarType type, return_value_policy, handle) {
    return at::detail::to_python(type).release();
  }
};

template <>
struct type_caster<c10::Device> {
  c10::Device value = c10::kCPU;
  static constexpr auto name = const_name("torch.device");
  template <class T>
  using cast_op_type = c10::Device;
  operator c10::Device() { return value; }
  bool load(handle source, bool) {
    object type = module_::import("rushlight").attr("device");
    if (!isinstance(source, type) && !isinstance<str>(source)) return false;
    value = c10::Device(pybind11::cast<std::string>(str(type(source))));
    return true;
  }
  static handle cast(const c10::Device& device, return_value_policy, handle) {
    return at::detail::to_python(device).release();
  }
};

template <>
struct type_caster<c10::Scalar> {
  PYBIND11_TYPE_CASTER(c10::Scalar, const_name("Number"));
  bool load(handle source, bool) {
    if (isinstance<bool_>(source)) value = pybind11::cast<bool>(source);
    else if (make_caster<int64_t> whole; isinstance<int_>(source) && whole.load(source, false))
      value = cast_op<int64_t>(whole);
    else if (isinstance<float_>(source)) value = pybind11::cast<double>(source);
    else if (PyComplex_Check(source.ptr()))
      value = c10::complex<double>(PyComplex_RealAsDouble(source.ptr()),
                                   PyComplex_ImagAsDouble(source.ptr()));
    else return false;
    return true;
  }
  static handle cast(const c10::Scalar& number, return_value_policy, handle) {
    return at::detail::to_python(number).release();
  }
};

// Spans look at a vector that the caster keeps for the length of the call.
template <class T>
struct type_caster<c10::ArrayRef<T>> {
  static constexpr auto name = const_name("Sequence[") + make_caster<T>::name + const_name("]");
  template <class>
  using cast_op_type = c10::ArrayRef<T>;
  operator c10::ArrayRef<T>() { return items_; }
  bool load(handle source, bool convert) {
    make_caster<std::vector<T>> items;
    if (!items.load(source, convert)) return false;
    items_ = cast_op<std::vector<T>&&>(std::move(items));
    return true;
  }
  static handle cast(c10::ArrayRef<T> items, return_value_policy policy, handle parent) {
    return make_caster<std::vector<T>>::cast(items.vec(), policy, parent);
  }

 private:
  std::vector<T> items_;
};

}  // namespace pybind11::detail
