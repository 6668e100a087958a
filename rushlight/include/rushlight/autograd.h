// Owns torch::autograd: functions with gradients of their own, written in C++. They are subclasses
// of rushlight.autograd.Function, whose forward and backward call here.
#pragma once

#include <pybind11/gil_safe_call_once.h>

#include <unordered_map>

#include <rushlight/containers.h>

namespace c10 {

// Anything that Python can hold; the caller has the interpreter lock.
class IValue {
 public:
  IValue() = default;
  template <class T, class = std::enable_if_t<!std::is_base_of_v<IValue, std::decay_t<T>>>>
  IValue(T&& value) : object_(pybind11::cast(std::forward<T>(value))) {}
  template <class T>
  T to() const {
    TORCH_CHECK(object_, "an IValue that holds nothing has no value");
    return pybind11::cast<T>(object_);
  }
  at::Tensor toTensor() const { return to<at::Tensor>(); }
  int64_t toInt() const { return to<int64_t>(); }
  double toDouble() const { return to<double>(); }
  bool toBool() const { return to<bool>(); }
  Scalar toScalar() const { return to<Scalar>(); }
  std::string toStringRef() const { return to<std::string>(); }
  std::vector<int64_t> toIntVector() const { return to<std::vector<int64_t>>(); }
  std::vector<double> toDoubleVector() const { return to<std::vector<double>>(); }
  List<int64_t> toIntList() const { return toIntVector(); }
  List<double> toDoubleList() const { return toDoubleVector(); }
  List<at::Tensor> toTensorList() const { return toTensorVector(); }
  std::vector<at::Tensor> toTensorVector() const { return to<std::vector<at::Tensor>>(); }
  bool isNone() const { return !object_ || object_.is_none(); }

 private:
  pybind11::object object_;
};

}  // namespace c10

namespace at {
using c10::IValue;
}

namespace torch::autograd {

using Variable = at::Tensor;
using variable_list = std::vector<at::Tensor>;

inline bool any_variable_requires_grad(const variable_list& tensors) {
  return std::any_of(tensors.begin(), tensors.end(),
                     [](const Variable& tensor) { return tensor.requires_grad(); });
}

namespace detail {
// Where Python has None, a tensor is undefined.
inline variable_list tensors_of(pybind11::handle objects) {
  variable_list tensors;
  for (pybind11::handle object : objects) tensors.push_back(at::Tensor::of(object));
  return tensors;
}
}  // namespace detail

// What forward keeps for backward.
class AutogradContext {
 public:
  std::unordered_map<std::string, at::IValue> saved_data;

  void save_for_backward(const variable_list& tensors) { tell("save_for_backward", tensors); }
  variable_list get_saved_variables() const {
    return detail::tensors_of(context_.attr("saved_tensors"));
  }
  void mark_dirty(const variable_list& tensors) { tell("mark_dirty", tensors); }
  void mark_non_differentiable(const variable_list& tensors) {
    tell("mark_non_differentiable", tensors);
  }
  void set_materialize_grads(bool value) { context_.attr("set_materialize_grads")(value); }
  bool needs_input_grad(size_t i) const {
    return pybind11::cast<pybind11::tuple>(context_.attr("needs_input_grad"))[i].cast<bool>();
  }

  // That of the Python object, which keeps it.
  static AutogradContext& of(pybind11::handle context) {
    constexpr const char* kName = "_cpp_context";
    if (!pybind11::hasattr(context, kName)) {
      auto free = [](void* made) { delete static_cast<AutogradContext*>(made); };
      context.attr(kName) = pybind11::capsule(new AutogradContext, free);
    }
    auto* found =
        pybind11::cast<pybind11::capsule>(context.attr(kName)).get_pointer<AutogradContext>();
    found->context_ = context;
    return *found;
  }

 private:
  void tell(const char* method, const variable_list& tensors) {
    context_.attr(method)(*pybind11::tuple(pybind11::cast(tensors)));
  }
  pybind11::handle context_;
};

// struct Scale : Function<Scale> {
//   static Tensor forward(AutogradContext* ctx, Tensor x, double factor);
//   static variable_list backward(AutogradContext* ctx, variable_list grads);
// };
// Tensor y = Scale::apply(x, 2.0);
template <class Derived>
struct Function {
  template <class... Args>
  static auto apply(Args&&... args) {
    return apply_to<std::decay_t<Args>...>(args...);
  }

 private:
  template <class... Args>
  static auto apply_to(const Args&... args) {
    using Result = decltype(Derived::forward(nullptr, args...));
    pybind11::gil_scoped_acquire gil;
    // A thread that waits for a static variable may hold the lock that its maker waits for.
    PYBIND11_CONSTINIT static pybind11::gil_safe_call_once_and_store<pybind11::object> made;
    pybind11::object result = made.call_once_and_store_result(make_class<Result, Args...>)
                                  .get_stored()
                                  .attr("apply")(args...);
    if constexpr (std::is_same_v<Result, variable_list>) return detail::tensors_of(result);
    else return at::Tensor::of(result);
  }
  template <class Result, class... Args>
  static pybind11::object make_class() {
    auto forward = [](pybind11::object context, Args... args) -> pybind11::object {
      Result result = Derived::forward(&AutogradContext::of(context), args...);
      if constexpr (std::is_same_v<Result, variable_list>)
        return pybind11::tuple(pybind11::cast(result));
      else return pybind11::cast(result);
    };
    auto backward = [](pybind11::object context, pybind11::args grads) {
      variable_list result =
          Derived::backward(&AutogradContext::of(context), detail::tensors_of(grads));
      return pybind11::tuple(pybind11::cast(result));
    };
    pybind11::object base = pybind11::module_::import("rushlight.autograd").attr("Function");
    pybind11::dict members;
    pybind11::object staticmethod = pybind11::module_::import("builtins").attr("staticmethod");
    members["forward"] = staticmethod(pybind11::cpp_function(forward));
    members["backward"] = staticmethod(pybind11::cpp_function(backward));
    return pybind11::type::of(base)("CppFunction", pybind11::make_tuple(base), members);
  }
};

}  // namespace torch::autograd
