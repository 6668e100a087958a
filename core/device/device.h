// Owns Device: where a tensor's bytes live. Parsing and printing follow PyTorch's device strings.
//
// Index -1 means "the current device of this type"; the CPU needs no index.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>

namespace rushlight {

enum class DeviceType : uint8_t { cpu, cuda, meta };

const char* device_type_name(DeviceType type);

struct Device {
  DeviceType type = DeviceType::cpu;
  int8_t index = -1;

  // Reads "cpu", "cuda", "cuda:1", "meta"; raises for everything else.
  static Device parse(std::string_view text);

  std::string to_string() const;

  bool is_cpu() const { return type == DeviceType::cpu; }
  bool is_cuda() const { return type == DeviceType::cuda; }
  bool is_meta() const { return type == DeviceType::meta; }
  bool has_index() const { return index >= 0; }

  friend bool operator==(Device a, Device b) = default;
};

inline std::ostream& operator<<(std::ostream& out, Device device) {
  return out << device.to_string();
}

}  // namespace rushlight
