// Owns devices, orders in memory, and what new tensors are to be.
#pragma once

#include <rushlight/scalar_type.h>

namespace c10 {

enum class DeviceType : int32_t {
  CPU = int32_t(abi::DeviceType::cpu),
  CUDA = int32_t(abi::DeviceType::cuda),
  Meta = int32_t(abi::DeviceType::meta),
  COMPILE_TIME_MAX_DEVICE_TYPES,  // more than any number of a type
};
inline constexpr DeviceType kCPU = DeviceType::CPU, kCUDA = DeviceType::CUDA;
inline constexpr DeviceType kMeta = DeviceType::Meta;
using DeviceIndex = int32_t;

inline std::string DeviceTypeName(DeviceType type, bool lower_case = false) {
  if (type == kCPU) return lower_case ? "cpu" : "CPU";
  if (type == kCUDA) return lower_case ? "cuda" : "CUDA";
  return lower_case ? "meta" : "META";
}
inline std::ostream& operator<<(std::ostream& out, DeviceType type) {
  return out << DeviceTypeName(type, true);
}

class Device {
 public:
  Device(DeviceType type, DeviceIndex index = -1) : type_(type), index_(index) {}
  explicit Device(const abi::Device& device)
      : Device(DeviceType(int32_t(device.type)), device.index) {}
  Device(const std::string& text) : Device(kCPU) {
    size_t colon = text.find(':');
    std::string type = text.substr(0, colon);
    TORCH_CHECK(type == "cpu" || type == "cuda" || type == "meta", "there is no device '", text,
                "': its type must be cpu, cuda or meta");
    type_ = type == "cpu" ? kCPU : type == "cuda" ? kCUDA : kMeta;
    if (colon != text.npos) index_ = std::stoi(text.substr(colon + 1));
  }
  Device(const char* text) : Device(std::string(text)) {}
  DeviceType type() const { return type_; }
  DeviceIndex index() const { return index_; }
  bool has_index() const { return index_ >= 0; }
  bool is_cpu() const { return type_ == kCPU; }
  bool is_cuda() const { return type_ == kCUDA; }
  bool is_meta() const { return type_ == kMeta; }
  std::string str() const { return has_index() ? c10::str(type_, ":", index_) : c10::str(type_); }
  bool operator==(const Device& other) const {
    return type_ == other.type_ && index_ == other.index_;
  }
  bool operator!=(const Device& other) const { return !(*this == other); }

 private:
  DeviceType type_;
  DeviceIndex index_ = -1;
};
inline std::ostream& operator<<(std::ostream& out, const Device& device) {
  return out << device.str();
}

enum class MemoryFormat : int32_t {
  Contiguous = int32_t(abi::MemoryFormat::contiguous),
  Preserve = int32_t(abi::MemoryFormat::preserve),
  ChannelsLast = int32_t(abi::MemoryFormat::channels_last),
  ChannelsLast3d = int32_t(abi::MemoryFormat::channels_last_3d),
};

enum class Layout : int8_t { Strided, Sparse };
inline constexpr Layout kStrided = Layout::Strided, kSparse = Layout::Sparse;

// What a new tensor is to be; what is not said is as usual.
class TensorOptions {
 public:
  TensorOptions() = default;
  TensorOptions(ScalarType dtype) : dtype_(dtype) {}
  TensorOptions(Device device) : device_(device) {}
  TensorOptions(DeviceType type) : device_(Device(type)) {}

  TensorOptions dtype(optional<ScalarType> dtype) const {
    return with(&TensorOptions::dtype_, dtype);
  }
  TypeMeta dtype() const { return dtype_or(kFloat); }
  template <class T>
  TensorOptions dtype() const {
    return dtype(CppTypeToScalarType<T>::value);
  }
  TensorOptions device(optional<Device> device) const {
    return with(&TensorOptions::device_, device);
  }
  TensorOptions device(DeviceType type, DeviceIndex index) const {
    return device(Device(type, index));
  }
  TensorOptions requires_grad(bool wanted) const {
    return with(&TensorOptions::requires_grad_, wanted);
  }
  TensorOptions layout(optional<Layout> layout) const {
    TORCH_CHECK_NOT_IMPLEMENTED(layout.value_or(kStrided) == kStrided,
                                "options of sparse tensors are not implemented");
    return *this;
  }
  TensorOptions pinned_memory(optional<bool> wanted) const {
    TORCH_CHECK_NOT_IMPLEMENTED(!wanted.value_or(false),
                                "pinned memory is not implemented: call pin_memory in Python");
    return *this;
  }
  optional<ScalarType> dtype_opt() const { return dtype_; }
  optional<Device> device_opt() const { return device_; }
  ScalarType dtype_or(ScalarType other) const { return dtype_.value_or(other); }
  Device device() const { return device_.value_or(Device(kCPU)); }
  bool requires_grad() const { return requires_grad_; }

 private:
  template <class Field, class Value>
  TensorOptions with(Field field, const Value& value) const {
    TensorOptions changed = *this;
    changed.*field = value;
    return changed;
  }

  optional<ScalarType> dtype_;
  optional<Device> device_;
  bool requires_grad_ = false;
};
inline TensorOptions dtype(ScalarType dtype) { return TensorOptions(dtype); }
inline TensorOptions device(Device device) { return TensorOptions(device); }
inline TensorOptions requires_grad(bool wanted = true) {
  return TensorOptions().requires_grad(wanted);
}

}  // namespace c10

namespace at {
using namespace c10;
}
namespace torch {
using namespace at;
}
