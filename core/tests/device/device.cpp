// Device strings: what parses, how it prints, and the texts of the errors.
#include "core/device/device.h"

#include "core/tests/expect.h"

using namespace rushlight;

int main() {
  for (const char* text : {"cpu", "cpu:0", "cuda", "cuda:0", "cuda:1", "cuda:127", "meta", "mps",
                           "xpu:1", "hpu", "xla:0", "mtia", "ipu"}) {
    expect(Device::parse(text).to_string() == text);
  }
  expect(Device::parse("cuda:1") == Device{DeviceType::cuda, 1});
  expect(Device::parse("cuda") != Device::parse("cuda:0"));
  expect(Device::parse("cpu").is_cpu() && !Device::parse("cpu").has_index());
  expect(Device::parse("cuda:3").is_cuda() && Device::parse("meta").is_meta());

  Device elsewhere = Device::parse("mps");
  expect(!elsewhere.is_cpu() && !elsewhere.is_cuda() && !elsewhere.is_meta());
  for (const char* text : {"cuda:", "cuda:x", "cuda:-1", "cuda:+1", "cuda:01", "cuda:1 ",
                           "cuda:128", "cuda:1:2", "cuda:99999999999999999999"}) {
    expect_error(ErrorKind::kRuntime, std::string("Invalid device string: '") + text + "'",
                 [&] { Device::parse(text); });
  }
  for (const char* text : {"", "gpu", "CUDA", " cpu", ":1"}) {
    expect_error(ErrorKind::kRuntime, "device type at start of device string",
                 [&] { Device::parse(text); });
  }
}
