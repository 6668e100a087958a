#include "core/device/device.h"

#include <charconv>
#include <limits>

#include "core/base/error.h"

namespace rushlight {

const char* device_type_name(DeviceType type) {
  switch (type) {
    case DeviceType::cpu: return "cpu";
    case DeviceType::cuda: return "cuda";
    case DeviceType::meta: return "meta";
  }
  __builtin_unreachable();
}

std::string Device::to_string() const {
  std::string text = device_type_name(type);
  if (has_index()) text += ":" + std::to_string(index);
  return text;
}

Device Device::parse(std::string_view text) {
  size_t colon = text.find(':');
  std::string_view name = text.substr(0, colon);
  Device device;
  if (name == "cpu") {
    device.type = DeviceType::cpu;
  } else if (name == "cuda") {
    device.type = DeviceType::cuda;
  } else if (name == "meta") {
    device.type = DeviceType::meta;
  } else {
    detail::fail("Expected one of cpu, cuda, meta device type at start of device string: ", text);
  }
  if (colon == std::string_view::npos) return device;

  // A plain decimal number: no sign, no leading zero, nothing after it.
  std::string_view digits = text.substr(colon + 1);
  bool plain = !digits.empty() && digits.front() >= '0' && digits.front() <= '9' &&
               (digits.front() != '0' || digits.size() == 1);
  const char* end = digits.data() + digits.size();
  auto [stop, error] = std::from_chars(digits.data(), end, device.index);
  CHECK(plain && error == std::errc() && stop == end, "Invalid device string: '", text,
        "'. The index after ':' must be a number from 0 to ",
        int(std::numeric_limits<int8_t>::max()), ".");
  return device;
}

}  // namespace rushlight
