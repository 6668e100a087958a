// Owns calls of ops: what their arguments and results are in the table of functions.
#pragma once

#include <atomic>

#include <rushlight/tensor_base.h>

namespace at {

class Tensor;
using TensorList = ArrayRef<Tensor>;

// A tensor, or a number in its place.
class Operand {
 public:
  Operand(const Tensor& tensor);
  template <class T, class = std::enable_if_t<std::is_constructible_v<Scalar, T>>>
  Operand(T number) : value_(Scalar(number).value()) {}
  const abi::Value& value() const { return value_; }

 private:
  abi::Value value_;
};

namespace detail {

// ---- calls of ops

inline constexpr nullopt_t left_out = nullopt;  // an argument that C++ does not have

inline abi::Value value_of(nullopt_t) { return {}; }
inline abi::Value value_of(const TensorBase& tensor) {
  abi::Value out{};
  out.kind = abi::Kind::tensor;
  out.tensor = tensor.handle();
  return out;
}
inline abi::Value value_of(const Operand& operand) { return operand.value(); }
inline abi::Value value_of(TensorList tensors) {
  abi::Value out{};
  out.kind = abi::Kind::tensors;
  out.count = int64_t(tensors.size());
  // A tensor is its handle.
  out.tensors = reinterpret_cast<abi::Tensor* const*>(tensors.data());
  return out;
}
inline abi::Value value_of(const Scalar& number) { return number.value(); }
template <class T, class = std::enable_if_t<std::is_arithmetic_v<T>>>
abi::Value value_of(T number) {
  return Scalar(number).value();
}
inline abi::Value value_of(IntArrayRef items) {
  abi::Value out{};
  out.kind = abi::Kind::integers;
  out.count = int64_t(items.size());
  out.integers = items.data();
  return out;
}
inline abi::Value value_of(const OptionalIntArrayRef& items) {
  return items.has_value() ? value_of(items.value()) : abi::Value{};
}
inline abi::Value value_of(string_view text) {
  abi::Value out{};
  out.kind = abi::Kind::text;
  out.count = int64_t(text.size());
  out.text = text.data();
  return out;
}
inline abi::Value value_of(ScalarType dtype) {
  abi::Value out{};
  out.kind = abi::Kind::dtype;
  out.dtype = abi::DType(int32_t(dtype));
  return out;
}
inline abi::Value value_of(const Device& device) {
  abi::Value out{};
  out.kind = abi::Kind::device;
  out.device = {abi::DeviceType(int32_t(device.type())), device.index()};
  return out;
}
inline abi::Value value_of(MemoryFormat format) {
  abi::Value out{};
  out.kind = abi::Kind::memory_format;
  out.integer = int64_t(format);
  return out;
}
template <class T>
abi::Value value_of(const optional<T>& value) {
  return value ? value_of(*value) : abi::Value{};
}

using Results = std::vector<abi::Value>;

template <class T>
struct FromResults;

inline Tensor finished(Tensor made, const TensorOptions& options);

// Its first call looks it up, so that it is a constant until then, which needs no guard.
class Op {
 public:
  constexpr Op(const char* module, const char* name, const char* overload)
      : module_(module), name_(name), overload_(overload) {}
  template <class Out, class... Args>
  Out call(const Args&... args) const {
    return run<Out>(false, args...);
  }
  template <class... Args>
  void call_inplace(const Args&... args) const;

 private:
  template <class Out, class... Args>
  Out run(bool inplace, const Args&... args) const {
    abi::Value values[] = {value_of(args)..., {}};
    Results results;
    abi::Error* error = nullptr;
    auto take = [](void* context, abi::Value result) {
      static_cast<Results*>(context)->push_back(result);
    };
    if (!table().call(found(), values, int(sizeof...(args)), inplace, take, &results, &error))
      throw Error(error);
    return FromResults<Out>::get(results);
  }

  const abi::Op* found() const {
    const abi::Op* op = found_.load(std::memory_order_acquire);
    if (!op) {
      op = table().find_op(module_, name_, overload_);
      TORCH_CHECK_NOT_IMPLEMENTED(op, "this Rushlight has no op ", module_, ".", name_, " ",
                                  overload_);
      found_.store(op, std::memory_order_release);
    }
    return op;
  }

  const char *module_, *name_, *overload_;
  mutable std::atomic<const abi::Op*> found_ = nullptr;
};

}  // namespace detail

}  // namespace at
