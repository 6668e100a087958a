#include "core/device/device.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <limits>

#include "core/base/error.h"

namespace rushlight {

namespace {

// By DeviceType. Programs name and compare those after meta, too, but no tensor can be there.
constexpr std::string_view kNames[] = {"cpu", "cuda", "meta", "mps", "xpu",
                                       "hpu", "xla",  "mtia", "ipu"};

}  // namespace

const char* device_type_name(DeviceType type) { return kNames[size_t(type)].data(); }

std::string Device::to_string() const {
  std::string text = device_type_name(type);
  if (has_index()) text += ":" + std::to_string(index);
  return text;
}

Device Device::parse(std::string_view text) {
  size_t colon = text.find(':');
  std::string_view name = text.substr(0, colon);
  Device device;
  auto found = std::find(std::begin(kNames), std::end(kNames), name);
  CHECK(found != std::end(kNames),
        "Expected one of cpu, cuda, meta, mps, xpu, hpu, xla, mtia, ipu device type at start of "
        "device string: ",
        text);
  device.type = DeviceType(found - std::begin(kNames));
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
