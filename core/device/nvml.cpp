#include "core/device/nvml.h"

#include <cstdio>

#include "core/base/error.h"
#include "core/device/cuda.h"
#include "core/device/cuda_library.h"

namespace rushlight::nvml {
namespace {

// ---- the library's types, by nvml.h ------------------------------------------------------------

using Status = int;  // nvmlReturn_t
constexpr Status kSuccess = 0, kInsufficientSize = 7;
using Handle = struct nvmlDevice_st*;
struct Utilization {
  unsigned gpu, memory;
};
struct Memory {
  unsigned long long total, free, used;
};
struct ProcessInfo {
  unsigned id;
  unsigned long long bytes;  // all bits set: not known
  unsigned instances[2];
};
constexpr int kSensorOfChip = 0, kClockOfMultiprocessors = 1;

// _(name, type)
#define NVML_FUNCTIONS(_)                                                                     \
  _(nvmlInit_v2, Status())                                                                    \
  _(nvmlErrorString, const char*(Status status))                                              \
  _(nvmlDeviceGetHandleByUUID, Status(const char* uuid, Handle* device))                      \
  _(nvmlDeviceGetUtilizationRates, Status(Handle device, Utilization* busy))                  \
  _(nvmlDeviceGetTemperature, Status(Handle device, int sensor, unsigned* degrees))           \
  _(nvmlDeviceGetPowerUsage, Status(Handle device, unsigned* milliwatts))                     \
  _(nvmlDeviceGetClockInfo, Status(Handle device, int kind, unsigned* mhz))                   \
  _(nvmlDeviceGetMemoryInfo, Status(Handle device, Memory* memory))                           \
  _(nvmlDeviceGetComputeRunningProcesses_v3,                                                  \
    Status(Handle device, unsigned* count, ProcessInfo* processes))

struct Functions {
  DynamicLibrary library;
  NVML_FUNCTIONS(LIBRARY_FUNCTION)
};

const Functions& functions() {
  static const Functions table = [] {
    std::string_view file = cuda::setting("RUSHLIGHT_NVML");
    Functions loaded{DynamicLibrary(
        file.empty() ? LibrarySpec{"NVML", {"libnvidia-ml.so.1"}, {"/usr/lib/wsl/lib"}, ""}
                     : LibrarySpec{"NVML", {std::string(file)}, {}, ""})};
    Status status = loaded.nvmlInit_v2();
    CHECK(status == kSuccess, "NVML: ", loaded.nvmlErrorString(status), " (from nvmlInit).");
    return loaded;
  }();
  return table;
}

void check(Status status, const char* what) {
  CHECK(status == kSuccess, "NVML: ", functions().nvmlErrorString(status), " (from ", what, ").");
}

// NVML numbers devices in its own way, so they are found by their UUID.
Handle handle_of(int device) {
  const auto& uuid = cuda::properties(device).uuid;
  std::string text = "GPU-";
  for (size_t i = 0; i < uuid.size(); ++i) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", uuid[i]);
    text += digits;
    if (i == 3 || i == 5 || i == 7 || i == 9) text += '-';
  }
  Handle handle = nullptr;
  check(functions().nvmlDeviceGetHandleByUUID(text.c_str(), &handle), "nvmlDeviceGetHandleByUUID");
  return handle;
}

}  // namespace

int64_t read(int device, Reading reading) {
  const Functions& f = functions();
  Handle handle = handle_of(device);
  unsigned number = 0;
  Utilization busy{};
  Memory memory{};
  switch (reading) {
    case Reading::gpu_busy:
    case Reading::memory_busy:
      check(f.nvmlDeviceGetUtilizationRates(handle, &busy), "nvmlDeviceGetUtilizationRates");
      return reading == Reading::gpu_busy ? busy.gpu : busy.memory;
    case Reading::temperature:
      check(f.nvmlDeviceGetTemperature(handle, kSensorOfChip, &number), "nvmlDeviceGetTemperature");
      return number;
    case Reading::power:
      check(f.nvmlDeviceGetPowerUsage(handle, &number), "nvmlDeviceGetPowerUsage");
      return number;
    case Reading::clock:
      check(f.nvmlDeviceGetClockInfo(handle, kClockOfMultiprocessors, &number),
            "nvmlDeviceGetClockInfo");
      return number;
    case Reading::memory_used: break;
  }
  check(f.nvmlDeviceGetMemoryInfo(handle, &memory), "nvmlDeviceGetMemoryInfo");
  return int64_t(memory.used);
}

std::vector<Process> processes(int device) {
  const Functions& f = functions();
  Handle handle = handle_of(device);
  std::vector<ProcessInfo> found(32);
  for (;;) {
    unsigned count = unsigned(found.size());
    Status status = f.nvmlDeviceGetComputeRunningProcesses_v3(handle, &count, found.data());
    if (status == kInsufficientSize) {
      found.resize(count + 8);  // others may have started since
      continue;
    }
    check(status, "nvmlDeviceGetComputeRunningProcesses");
    found.resize(count);
    break;
  }
  std::vector<Process> all;
  for (const ProcessInfo& each : found) all.push_back({each.id, int64_t(each.bytes)});
  return all;
}

}  // namespace rushlight::nvml
