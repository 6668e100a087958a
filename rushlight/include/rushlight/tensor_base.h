// Owns TensorBase, a share of a tensor and what can be seen of it, and accessors to its elements.
#pragma once

#include <rushlight/options.h>

namespace at {

namespace abi = rushlight::abi;

// The elements of a tensor by their indices, as x[i][j], without checks.
template <class T, size_t n>
class TensorAccessor {
 public:
  using Inner = std::conditional_t<n == 1, T&, TensorAccessor<T, n - 1>>;
  TensorAccessor(T* data, const int64_t* sizes, const int64_t* strides)
      : data_(data), sizes_(sizes), strides_(strides) {}
  Inner operator[](int64_t i) const {
    if constexpr (n == 1) return data_[i * strides_[0]];
    else return Inner(data_ + i * strides_[0], sizes_ + 1, strides_ + 1);
  }
  int64_t size(size_t dim) const { return sizes_[dim]; }
  int64_t stride(size_t dim) const { return strides_[dim]; }
  IntArrayRef sizes() const { return {sizes_, n}; }
  IntArrayRef strides() const { return {strides_, n}; }
  T* data() const { return data_; }

 private:
  T* data_;
  const int64_t *sizes_, *strides_;
};

// A dtype and a device: what Tensor::type() returns.
class Type {
 public:
  Type(ScalarType dtype, Device device) : dtype_(dtype), device_(device) {}
  operator ScalarType() const { return dtype_; }
  operator TensorOptions() const { return TensorOptions(dtype_).device(device_); }
  ScalarType scalarType() const { return dtype_; }
  TypeMeta typeMeta() const { return dtype_; }
  DeviceType device_type() const { return device_.type(); }
  bool is_cuda() const { return device_.is_cuda(); }

 private:
  ScalarType dtype_;
  Device device_;
};

// A share of a tensor, and what can be seen of it.
class TensorBase {
 public:
  TensorBase() = default;
  // Takes over a share.
  explicit TensorBase(abi::Tensor* handle) : handle_(handle) {}
  TensorBase(const TensorBase& other) : handle_(other.handle_) {
    if (handle_) table().share(handle_);
  }
  TensorBase(TensorBase&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  TensorBase& operator=(TensorBase other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~TensorBase() {
    if (handle_) table().release(handle_);
  }

  abi::Tensor* handle() const { return handle_; }
  bool defined() const { return handle_ != nullptr; }
  void reset() { *this = TensorBase(); }
  bool is_same(const TensorBase& other) const { return handle_ == other.handle_; }

  int64_t dim() const { return look().dim; }
  int64_t ndimension() const { return dim(); }
  int64_t numel() const { return look().numel; }
  IntArrayRef sizes() const {
    abi::Look seen = look();
    return {seen.sizes, size_t(seen.dim)};
  }
  IntArrayRef strides() const {
    abi::Look seen = look();
    return {seen.strides, size_t(seen.dim)};
  }
  int64_t size(int64_t dim) const { return of_dim(sizes(), dim); }
  int64_t stride(int64_t dim) const { return of_dim(strides(), dim); }
  int64_t storage_offset() const { return look().offset; }
  ScalarType scalar_type() const { return ScalarType(int32_t(look().dtype)); }
  TypeMeta dtype() const { return scalar_type(); }
  Type type() const { return {scalar_type(), device()}; }
  size_t itemsize() const { return elementSize(scalar_type()); }
  int64_t element_size() const { return int64_t(itemsize()); }
  size_t nbytes() const { return size_t(numel()) * itemsize(); }
  Device device() const { return Device(look().device); }
  int64_t get_device() const { return device().index(); }
  bool is_cpu() const { return device().is_cpu(); }
  bool is_cuda() const { return device().is_cuda(); }
  bool is_meta() const { return device().is_meta(); }
  bool is_sparse() const { return look().is_sparse; }
  bool is_quantized() const { return false; }
  Layout layout() const { return is_sparse() ? kSparse : kStrided; }
  bool is_floating_point() const { return isFloatingType(scalar_type()); }
  bool is_complex() const { return isComplexType(scalar_type()); }
  bool requires_grad() const { return look().requires_grad; }
  bool is_leaf() const { return look().is_leaf; }
  bool is_contiguous() const { return look().is_contiguous; }
  TensorOptions options() const {
    abi::Look seen = look();
    return TensorOptions(ScalarType(int32_t(seen.dtype))).device(Device(seen.device));
  }

  void* data_ptr() const {
    void* data = nullptr;
    abi::Error* error = nullptr;
    if (!table().data(checked_handle(), &data, &error)) throw Error(error);
    return data;
  }
  template <class T>
  T* data_ptr() const {
    using Element = std::remove_const_t<T>;
    ScalarType wanted = CppTypeToScalarType<Element>::value;
    TORCH_CHECK(scalar_type() == wanted, "expected scalar type ", wanted, " but found ",
                scalar_type());
    return static_cast<T*>(data_ptr());
  }
  template <class T>
  T* mutable_data_ptr() const {
    return data_ptr<T>();
  }
  template <class T>
  const T* const_data_ptr() const {
    return data_ptr<const T>();
  }
  void* mutable_data_ptr() const { return data_ptr(); }
  const void* const_data_ptr() const { return data_ptr(); }
  template <class T>
  T* data() const {
    return data_ptr<T>();
  }
  template <class T, size_t n>
  TensorAccessor<T, n> accessor() const {
    TORCH_CHECK(dim() == int64_t(n), "expected ", n, " dims but the tensor has ", dim());
    return {data_ptr<T>(), sizes().data(), strides().data()};
  }

 protected:
  abi::Tensor* checked_handle() const {
    TORCH_CHECK(handle_, "the tensor is undefined: it has neither sizes nor elements");
    return handle_;
  }

 private:
  abi::Look look() const {
    abi::Look seen;
    table().look(checked_handle(), &seen);
    return seen;
  }
  int64_t of_dim(IntArrayRef items, int64_t dim) const {
    int64_t count = int64_t(items.size());
    TORCH_CHECK_INDEX(dim >= -count && dim < count,
                      "Dimension out of range (expected to be in range of [", -count, ", ",
                      count - 1, "], but got ", dim, ")");
    return items[size_t(dim < 0 ? dim + count : dim)];
  }

  abi::Tensor* handle_ = nullptr;
};

}  // namespace at
