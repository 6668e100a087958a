// Owns the functions of namespace at: the operators of tensors, ops, and what is no op.
#pragma once

#include <functional>
#include <mutex>

#include <rushlight/tensor.h>

namespace at {

#include <rushlight/op_functions.inc>

namespace detail {
// Whether T stands for a number, and not for a tensor.
template <class T>
inline constexpr bool is_number =
    std::is_constructible_v<Scalar, T> && !std::is_base_of_v<Tensor, T>;
}  // namespace detail

#define RUSHLIGHT_OPERATOR(symbol, name)                                                           \
  inline Tensor operator symbol(const Tensor& a, const Tensor& b) { return at::name(a, b); }      \
  template <class T, class = std::enable_if_t<detail::is_number<T>>>                               \
  Tensor operator symbol(const Tensor& a, T b) {                                                   \
    return at::name(a, b);                                                                         \
  }                                                                                                \
  template <class T, class = std::enable_if_t<detail::is_number<T>>>                               \
  Tensor operator symbol(T a, const Tensor& b) {                                                   \
    return at::name(a, b);                                                                         \
  }
RUSHLIGHT_OPERATOR(+, add)
RUSHLIGHT_OPERATOR(-, sub)
RUSHLIGHT_OPERATOR(*, mul)
RUSHLIGHT_OPERATOR(/, div)
RUSHLIGHT_OPERATOR(%, remainder)
RUSHLIGHT_OPERATOR(&, bitwise_and)
RUSHLIGHT_OPERATOR(|, bitwise_or)
RUSHLIGHT_OPERATOR(^, bitwise_xor)
RUSHLIGHT_OPERATOR(==, eq)
RUSHLIGHT_OPERATOR(!=, ne)
RUSHLIGHT_OPERATOR(<, lt)
RUSHLIGHT_OPERATOR(<=, le)
RUSHLIGHT_OPERATOR(>, gt)
RUSHLIGHT_OPERATOR(>=, ge)
#undef RUSHLIGHT_OPERATOR

// Memory of somebody else as a tensor; `deleter` is called with it when no tensor needs it.
inline Tensor from_blob(void* data, IntArrayRef sizes, IntArrayRef strides,
                        std::function<void(void*)> deleter, const TensorOptions& options = {}) {
  struct Owner {
    std::function<void(void*)> deleter;
    void* data;
  };
  TORCH_CHECK_VALUE(sizes.size() == strides.size(), "from_blob: ", sizes.size(), " sizes but ",
                    strides.size(), " strides");
  auto free = [](void* context) {
    auto* owner = static_cast<Owner*>(context);
    if (owner->deleter) owner->deleter(owner->data);
    delete owner;
  };
  Device device = options.device();
  auto owner = std::make_unique<Owner>(Owner{std::move(deleter), data});
  abi::Error* error = nullptr;
  abi::Tensor* made = table().from_memory(data, sizes.data(), strides.data(), int64_t(sizes.size()),
                                          abi::DType(int32_t(options.dtype_or(kFloat))),
                                          {abi::DeviceType(int32_t(device.type())), device.index()},
                                          free, owner.get(), &error);
  if (error) throw Error(error);
  owner.release();
  return detail::finished(Tensor(made), options);
}
inline Tensor from_blob(void* data, IntArrayRef sizes, std::function<void(void*)> deleter,
                        const TensorOptions& options = {}) {
  std::vector<int64_t> strides(sizes.size(), 1);
  for (size_t i = sizes.size(); i-- > 1;) strides[i - 1] = strides[i] * sizes[i];
  return from_blob(data, sizes, strides, std::move(deleter), options);
}
inline Tensor from_blob(void* data, IntArrayRef sizes, const TensorOptions& options = {}) {
  return from_blob(data, sizes, std::function<void(void*)>(), options);
}
inline Tensor from_blob(void* data, IntArrayRef sizes, IntArrayRef strides,
                        const TensorOptions& options = {}) {
  return from_blob(data, sizes, strides, std::function<void(void*)>(), options);
}

// A copy of numbers, in one dim.
template <class T>
Tensor tensor(ArrayRef<T> numbers, const TensorOptions& options = {}) {
  ScalarType natural = CppTypeToScalarType<T>::value;
  if (natural == kDouble && !options.dtype_opt()) {
    Tensor wide = at::empty({int64_t(numbers.size())}, kDouble);
    std::copy(numbers.begin(), numbers.end(), wide.template data_ptr<T>());
    return detail::finished(wide.to(at::empty({0}, options).scalar_type()), options);
  }
  Tensor made = at::empty({int64_t(numbers.size())}, natural);
  std::copy(numbers.begin(), numbers.end(), made.template data_ptr<T>());
  return detail::finished(made.to(options), options);
}
template <class T>
Tensor tensor(std::initializer_list<T> numbers, const TensorOptions& options = {}) {
  if constexpr (std::is_same_v<T, int>) {
    std::vector<int64_t> wide(numbers.begin(), numbers.end());
    return tensor(ArrayRef<int64_t>(wide), options);
  } else {
    return tensor(ArrayRef<T>(numbers), options);
  }
}
template <class T>
Tensor tensor(const std::vector<T>& numbers, const TensorOptions& options = {}) {
  return tensor(ArrayRef<T>(numbers), options);
}
template <class T, class = std::enable_if_t<std::is_arithmetic_v<T>>>
Tensor tensor(T number, const TensorOptions& options = {}) {
  ScalarType natural = std::is_same_v<T, bool> ? kBool : std::is_integral_v<T> ? kLong : kFloat;
  return at::full({}, number, options.dtype_opt() ? options : options.dtype(natural));
}

class AutoGradMode {
 public:
  explicit AutoGradMode(bool enabled) : before_(table().is_grad_enabled()) {
    table().set_grad_enabled(enabled);
  }
  ~AutoGradMode() { table().set_grad_enabled(before_); }
  AutoGradMode(const AutoGradMode&) = delete;

 private:
  bool before_;
};
// Ops of this scope are not recorded.
class NoGradGuard : public AutoGradMode {
 public:
  NoGradGuard() : AutoGradMode(false) {}
};
using AutoNonVariableTypeMode = NoGradGuard;
using AutoDispatchBelowADInplaceOrView = NoGradGuard;
using AutoDispatchBelowAutograd = NoGradGuard;

struct GradMode {
  static bool is_enabled() { return table().is_grad_enabled(); }
  static void set_enabled(bool enabled) { table().set_grad_enabled(enabled); }
};

namespace internal {
inline constexpr int64_t GRAIN_SIZE = 32768;  // that pays for a simple loop
}

inline int get_num_threads() { return table().num_threads(); }

// Calls f(begin, end) on ranges that cover [begin, end), on several threads if there are more than
// `grain_size` items. The first exception is thrown here. No thread holds the interpreter lock.
template <class F>
void parallel_for(int64_t begin, int64_t end, int64_t grain_size, const F& f) {
  struct Work {
    const F& f;
    std::mutex mutex;
    std::exception_ptr failure;
  } work{f, {}, {}};
  auto body = [](void* context, int64_t from, int64_t to) {
    auto* work = static_cast<Work*>(context);
    try {
      work->f(from, to);
    } catch (...) {
      std::lock_guard<std::mutex> lock(work->mutex);
      if (!work->failure) work->failure = std::current_exception();
    }
  };
  table().parallel_for(begin, end, grain_size, body, &work);
  if (work.failure) std::rethrow_exception(work.failure);
}

inline void manual_seed(uint64_t seed) {
  py::gil_scoped_acquire gil;
  py::module_::import("rushlight").attr("manual_seed")(seed);
}

}  // namespace at

namespace c10 {
using at::AutoGradMode;
using at::GradMode;
}  // namespace c10
