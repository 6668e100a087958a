// Owns the entry points that answer questions beside the work: peers, profilers, NVML and NVTX.
#include <cstdio>
#include <cstring>
#include <string>

#include "tests/shim/driver.h"

using namespace shim;

SHIM_API int cuDeviceCanAccessPeer(int* can, int device, int peer) {
  std::lock_guard lock(driver_mutex);
  for (int each : {device, peer}) {
    if (each < 0 || size_t(each) >= devices.size()) return kInvalidDevice;
  }
  *can = device != peer;
  return kSuccess;
}

SHIM_API int cuProfilerStart() { return kSuccess; }
SHIM_API int cuProfilerStop() { return kSuccess; }

// ---- NVML: a device is busy by 42 percent, and warmer the higher its number ---------------------

namespace {

constexpr int kNoSuchDevice = 6, kInsufficientSize = 7;  // of nvmlReturn_t

struct ProcessInfo {
  unsigned id;
  unsigned long long bytes;
  unsigned instances[2];
};

}  // namespace

SHIM_API int nvmlInit_v2() { return 0; }

SHIM_API const char* nvmlErrorString(int code) {
  return code == kNoSuchDevice ? "Not Found" : "Unknown Error";
}

// A handle is the number of the device, plus 1.
SHIM_API int nvmlDeviceGetHandleByUUID(const char* uuid, void** device) {
  std::string expected = "GPU-";
  const char* bytes = "Rushlight shim ";
  for (int i = 0; i < 15; ++i) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", bytes[i]);
    expected += digits;
    if (i == 3 || i == 5 || i == 7 || i == 9) expected += '-';
  }
  if (std::strncmp(uuid, expected.c_str(), expected.size()) != 0) return kNoSuchDevice;
  unsigned last = 0;
  std::sscanf(uuid + expected.size(), "%02x", &last);
  *device = reinterpret_cast<void*>(uintptr_t(last - '0' + 1));
  return 0;
}

SHIM_API int nvmlDeviceGetUtilizationRates(void*, unsigned* busy) {
  busy[0] = 42;
  busy[1] = 17;
  return 0;
}

SHIM_API int nvmlDeviceGetTemperature(void* device, int sensor, unsigned* degrees) {
  *degrees = 39 + unsigned(reinterpret_cast<uintptr_t>(device));
  return sensor == 0 ? 0 : 2;
}

SHIM_API int nvmlDeviceGetPowerUsage(void*, unsigned* milliwatts) {
  *milliwatts = 70000;
  return 0;
}

SHIM_API int nvmlDeviceGetClockInfo(void*, int kind, unsigned* mhz) {
  constexpr int kMultiprocessors = 1;
  *mhz = 1400;
  return kind == kMultiprocessors ? 0 : 2;
}

SHIM_API int nvmlDeviceGetMemoryInfo(void* device, unsigned long long* memory) {
  std::lock_guard lock(driver_mutex);
  size_t index = reinterpret_cast<uintptr_t>(device) - 1;
  memory[0] = kMemoryPerDevice;
  memory[2] = index < devices.size() ? devices[index]->pool.reserved : 0;
  memory[1] = memory[0] - memory[2];
  return 0;
}

SHIM_API int nvmlDeviceGetComputeRunningProcesses_v3(void*, unsigned* count, ProcessInfo* found) {
  constexpr unsigned kProcesses = 40;
  bool fits = *count >= kProcesses;
  *count = kProcesses;
  if (!fits) return kInsufficientSize;
  for (unsigned i = 0; i < kProcesses; ++i) found[i] = {1000 + i, (i + 1ull) << 20, {0, 0}};
  return 0;
}

// ---- NVTX: marks are printed, as "push epoch" ---------------------------------------------------

namespace {

thread_local int depth = 0;

void print(const char* what, const char* message) { std::printf("nvtx %s %s\n", what, message); }

}  // namespace

SHIM_API int nvtxRangePushA(const char* message) {
  print("push", message);
  return depth++;
}

SHIM_API int nvtxRangePop() {
  print("pop", "");
  return depth > 0 ? --depth : -2;
}

SHIM_API uint64_t nvtxRangeStartA(const char* message) {
  print("start", message);
  return 7;
}

SHIM_API void nvtxRangeEnd(uint64_t range) { print("end", std::to_string(range).c_str()); }

SHIM_API void nvtxMarkA(const char* message) { print("mark", message); }
