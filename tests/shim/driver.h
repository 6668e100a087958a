// Owns what the entry points of the pretended driver share: its types, written down from CUDA's
// documentation, the lock, and the devices, whose addresses are their contexts.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#define SHIM_API extern "C" __attribute__((visibility("default")))

namespace shim {

// CUresult: each code with its name and what it means. The table is in driver.cpp.
enum Result : int {
  kSuccess = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kNotInitialized = 3,
  kNoDevice = 100,
  kInvalidDevice = 101,
  kInvalidImage = 200,
  kInvalidContext = 201,
  kInvalidHandle = 400,
  kNotFound = 500,
  kNotReady = 600,
  kIllegalAddress = 700,
  kLaunchOutOfResources = 701,
  kMisalignedAddress = 716,
  kLaunchFailed = 719,
  kNotSupported = 801,
  kCaptureUnsupported = 900,
  kCaptureInvalidated = 901,
  kCaptureUnmatched = 903,
  kCaptureUnjoined = 904,
  kCaptureIsolation = 905,
  kCapturedEvent = 907,
};

using DevicePointer = uint64_t;

constexpr size_t kMemoryPerDevice = size_t(2) << 30;
constexpr unsigned kMaxThreads = 1024, kMaxBlockZ = 64, kMaxGridX = 2147483647, kMaxGridYZ = 65535;
constexpr size_t kDefaultShared = 48 << 10, kMaxShared = 227 << 10;
constexpr size_t kMaxArguments = 4096;  // in all GPUs that we support

struct Device;

struct Graph;

struct Stream {
  Device* device;
  Graph* capture = nullptr;
  std::deque<std::function<Result()>> queue = {};  // what was put off
  uint64_t queued = 0;                             // ever
};

struct Event {
  Device* device;
  bool measures_time = false, is_recorded = false;
  std::chrono::steady_clock::time_point time = {};
  Graph* capture = nullptr;              // recorded last in this capture
  std::map<Stream*, size_t> clock = {};  // the point there, see graph.h
  Stream* stream = nullptr;              // recorded last in this one, after so much
  uint64_t point = 0;
};

// Numbers as cuMemPoolGetAttribute knows them. Memory that was freed stays reserved until the next
// synchronization finds more than the threshold.
struct Pool {
  uint64_t threshold = 0, reserved = 0, reserved_high = 0, used = 0, used_high = 0;
};

struct Device {
  int index;
  Pool pool;
  Stream default_stream{.device = this};
};

// Every entry point holds it; the pretended driver does one thing at a time.
extern std::mutex driver_mutex;

extern std::vector<std::unique_ptr<Device>> devices;  // empty before cuInit
extern thread_local Device* current_device;

// What most entry points begin with.
#define SHIM_ENTER()                                        \
  std::lock_guard shim_lock(shim::driver_mutex);            \
  if (shim::devices.empty()) return shim::kNotInitialized;  \
  if (!shim::current_device) return shim::kInvalidContext

// The stream behind the handle, whose zero is the default stream; null if it is none of the current
// device.
Stream* find_stream(void* handle);

}  // namespace shim
