// Owns Tensor and its indices. The methods that are ops are in a file that tools/make_cpp_ops.py
// writes; those that are no ops here either are called in Python.
#pragma once

#include <rushlight/call.h>
#include <rushlight/to_python.h>

namespace at {

namespace indexing {

struct None_ {};
struct Ellipsis_ {};
inline constexpr None_ None;
inline constexpr Ellipsis_ Ellipsis;

struct Slice {
  optional<int64_t> start, stop, step;
  Slice(optional<int64_t> start_in = nullopt, optional<int64_t> stop_in = nullopt,
        optional<int64_t> step_in = nullopt)
      : start(start_in), stop(stop_in), step(step_in) {}
  Slice(None_, optional<int64_t> stop_in = nullopt, optional<int64_t> step_in = nullopt)
      : Slice(optional<int64_t>(), stop_in, step_in) {}
  Slice(int64_t start_in, None_, optional<int64_t> step_in = nullopt)
      : Slice(optional<int64_t>(start_in), nullopt, step_in) {}
  Slice(None_, None_, optional<int64_t> step_in = nullopt)
      : Slice(optional<int64_t>(), nullopt, step_in) {}
};

// What may stand between the brackets of x[...] in Python.
class TensorIndex {
 public:
  TensorIndex(None_) : object_(with_lock([] { return py::object(py::none()); })) {}
  TensorIndex(Ellipsis_) : object_(with_lock([] { return py::object(py::ellipsis()); })) {}
  TensorIndex(const char*) : TensorIndex(Ellipsis) {}  // "..."
  TensorIndex(bool value) : object_(with_lock([&] { return py::object(py::bool_(value)); })) {}
  TensorIndex(int64_t i) : object_(with_lock([&] { return py::object(py::int_(i)); })) {}
  TensorIndex(int i) : TensorIndex(int64_t(i)) {}
  TensorIndex(const Slice& s)
      : object_(with_lock([&] { return py::object(py::slice(s.start, s.stop, s.step)); })) {}
  inline TensorIndex(const Tensor& tensor);
  TensorIndex(const TensorIndex& other) : object_(with_lock([&] { return other.object_; })) {}
  TensorIndex& operator=(const TensorIndex&) = delete;
  ~TensorIndex() {
    py::gil_scoped_acquire gil;
    object_ = py::object();
  }
  const py::object& object() const { return object_; }

 private:
  template <class F>
  static py::object with_lock(F f) {
    py::gil_scoped_acquire gil;
    return f();
  }
  py::object object_;
};

}  // namespace indexing

class Tensor : public TensorBase {
 public:
  using TensorBase::TensorBase;
  Tensor() = default;
  Tensor(const Tensor&) = default;
  Tensor(Tensor&&) noexcept = default;
  // A variable becomes another tensor. What has no name, as x[0], is written to.
  Tensor& operator=(const Tensor&) & = default;
  Tensor& operator=(Tensor&&) & noexcept = default;
  Tensor& operator=(const Tensor& value) && { return copy_(value); }
  Tensor& operator=(Tensor&& value) && { return copy_(value); }
  Tensor& operator=(const Scalar& value) && { return fill_(value); }
  // From a Python object; undefined for None.
  static Tensor of(py::handle object) {
    if (object.is_none()) return {};
    abi::Tensor* handle = table().from_python(object.ptr());
    TORCH_CHECK_TYPE(handle, "expected a Tensor, not ", Py_TYPE(object.ptr())->tp_name);
    return Tensor(handle);
  }

#include <rushlight/op_methods.inc>

  // ---- conversions

  Tensor to(ScalarType dtype, bool non_blocking = false, bool copy = false) const {
    return moved(dtype, non_blocking, copy);
  }
  Tensor to(Device device, bool non_blocking = false, bool copy = false) const {
    return moved(device, non_blocking, copy);
  }
  Tensor to(DeviceType device) const { return to(Device(device)); }
  Tensor to(Device device, ScalarType dtype) const { return to(device).to(dtype); }
  Tensor to(const TensorOptions& options) const {
    Tensor there = options.device_opt() ? to(*options.device_opt()) : *this;
    return options.dtype_opt() ? there.to(*options.dtype_opt()) : there;
  }
  Tensor to(const Tensor& other) const { return to(other.options()); }
  Tensor toType(ScalarType dtype) const { return to(dtype); }
  Tensor cpu() const { return to(kCPU); }
  Tensor cuda() const { return to(kCUDA); }
  MemoryFormat suggest_memory_format() const {
    for (MemoryFormat format : {MemoryFormat::ChannelsLast, MemoryFormat::ChannelsLast3d})
      if (dim() == (format == MemoryFormat::ChannelsLast ? 4 : 5) && !is_contiguous() &&
          is_contiguous(format))
        return format;
    return MemoryFormat::Contiguous;
  }
  using TensorBase::is_contiguous;
  bool is_contiguous(MemoryFormat format) const {
    py::gil_scoped_acquire gil;
    return py::cast<bool>(object().attr("is_contiguous")(detail::to_python(format)));
  }
  Scalar item() const {
    py::gil_scoped_acquire gil;
    py::object number = object().attr("item")();
    if (py::isinstance<py::bool_>(number)) return py::cast<bool>(number);
    if (py::isinstance<py::int_>(number)) return py::cast<int64_t>(number);
    if (py::isinstance<py::float_>(number)) return py::cast<double>(number);
    Py_complex z = PyComplex_AsCComplex(number.ptr());
    return c10::complex<double>(z.real, z.imag);
  }
  template <class T>
  T item() const {
    return item().to<T>();
  }
  std::string toString() const { return str("torch.", scalar_type(), " on ", device()); }

  // ---- gradients

  const Tensor& set_requires_grad(bool value) const {
    detail::checked(table().set_requires_grad, checked_handle(), value);
    return *this;
  }
  const Tensor& requires_grad_(bool value = true) const { return set_requires_grad(value); }
  void backward(const Tensor& gradient = {}, optional<bool> retain_graph = nullopt,
                bool create_graph = false) const {
    py::gil_scoped_acquire gil;
    using namespace py::literals;
    py::object retain = retain_graph ? py::object(py::bool_(*retain_graph)) : py::none();
    object().attr("backward")(detail::to_python(gradient), "retain_graph"_a = retain,
                              "create_graph"_a = create_graph);
  }
  Tensor grad() const { return python_attribute("grad"); }
  Tensor data() const { return python_attribute("data"); }
  Tensor variable_data() const { return data(); }
  Tensor tensor_data() const { return data(); }
  using TensorBase::data;
  void retain_grad() const {
    py::gil_scoped_acquire gil;
    object().attr("retain_grad")();
  }

  // ---- parts

  Tensor slice(int64_t dim, optional<int64_t> start = nullopt, optional<int64_t> end = nullopt,
               int64_t step = 1) const {
    size(dim);  // refuses a dim that there is not
    std::vector<indexing::TensorIndex> indices(size_t(dim < 0 ? dim + this->dim() : dim),
                                               indexing::Slice());
    indices.emplace_back(indexing::Slice(start, end, step));
    return index(indices);
  }
  Tensor index(std::initializer_list<indexing::TensorIndex> indices) const {
    return index(ArrayRef<indexing::TensorIndex>(indices));
  }
  Tensor index(ArrayRef<indexing::TensorIndex> indices) const {
    py::gil_scoped_acquire gil;
    return of(object()[places(indices)]);
  }
  Tensor& index_put_(std::initializer_list<indexing::TensorIndex> indices, const Tensor& value) {
    return put(indices, value);
  }
  Tensor& index_put_(std::initializer_list<indexing::TensorIndex> indices, const Scalar& value) {
    return put(indices, value);
  }
  Tensor operator[](int64_t i) const { return select(0, i); }

  template <class T>
  Tensor& operator+=(const T& other) {
    return add_(other);
  }
  template <class T>
  Tensor& operator-=(const T& other) {
    return sub_(other);
  }
  template <class T>
  Tensor& operator*=(const T& other) {
    return mul_(other);
  }
  template <class T>
  Tensor& operator/=(const T& other) {
    return div_(other);
  }
  Tensor operator-() const { return neg(); }
  Tensor operator~() const { return bitwise_not(); }

 private:
  py::object object() const {
    checked_handle();
    return detail::to_python(*this);
  }
  template <class Target>
  Tensor moved(const Target& target, bool non_blocking, bool copy) const {
    using namespace py::literals;
    py::gil_scoped_acquire gil;
    return of(object().attr("to")(detail::to_python(target), "non_blocking"_a = non_blocking,
                                  "copy"_a = copy));
  }
  Tensor python_attribute(const char* name) const {
    py::gil_scoped_acquire gil;
    return of(object().attr(name));
  }
  static py::tuple places(ArrayRef<indexing::TensorIndex> indices) {
    py::tuple all(indices.size());
    for (size_t i = 0; i < indices.size(); ++i) all[i] = indices[i].object();
    return all;
  }
  template <class Value>
  Tensor& put(ArrayRef<indexing::TensorIndex> indices, const Value& value) {
    py::gil_scoped_acquire gil;
    object()[places(indices)] = detail::to_python(value);
    return *this;
  }
};

static_assert(sizeof(Tensor) == sizeof(abi::Tensor*));

inline Operand::Operand(const Tensor& tensor) : value_(detail::value_of(tensor)) {}

namespace detail {

template <class... Args>
void Op::call_inplace(const Args&... args) const {
  run<Tensor>(true, args...);
}

// A new tensor, with those of its options that ops do not take.
inline Tensor finished(Tensor made, const TensorOptions& options) {
  if (options.requires_grad()) made.set_requires_grad(true);
  return made;
}

template <>
struct FromResults<Tensor> {
  static Tensor get(const Results& results) { return Tensor(results.at(0).tensor); }
};
template <>
struct FromResults<std::vector<Tensor>> {
  static std::vector<Tensor> get(const Results& results) {
    std::vector<Tensor> tensors;
    for (const abi::Value& result : results) tensors.emplace_back(result.tensor);
    return tensors;
  }
};
template <class... Tensors>
struct FromResults<std::tuple<Tensors...>> {
  static std::tuple<Tensors...> get(const Results& results) {
    return get(results, std::index_sequence_for<Tensors...>());
  }
  template <size_t... k>
  static std::tuple<Tensors...> get(const Results& results, std::index_sequence<k...>) {
    return {Tensor(results.at(k).tensor)...};
  }
};
template <>
struct FromResults<bool> {
  static bool get(const Results& results) { return results.at(0).integer != 0; }
};
template <>
struct FromResults<int64_t> {
  static int64_t get(const Results& results) { return results.at(0).integer; }
};
template <>
struct FromResults<double> {
  static double get(const Results& results) { return results.at(0).real[0]; }
};
template <>
struct FromResults<Scalar> {
  static Scalar get(const Results& results) { return Scalar(results.at(0)); }
};
template <>
struct FromResults<ScalarType> {
  static ScalarType get(const Results& results) { return ScalarType(int32_t(results.at(0).dtype)); }
};

}  // namespace detail

inline indexing::TensorIndex::TensorIndex(const Tensor& tensor)
    : object_(with_lock([&] { return detail::to_python(tensor); })) {}

inline std::ostream& operator<<(std::ostream& out, const Tensor& tensor) {
  py::gil_scoped_acquire gil;
  return out << py::cast<std::string>(py::str(detail::to_python(tensor)));
}

}  // namespace at
