// Owns the entry points for errors, devices and contexts.
#include "tests/shim/driver.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace shim {

std::mutex driver_mutex;
std::vector<std::unique_ptr<Device>> devices;
thread_local Device* current_device = nullptr;

namespace {

struct ResultText {
  Result code;
  const char *name, *text;
};
constexpr ResultText kResults[] = {
    {kSuccess, "CUDA_SUCCESS", "no error"},
    {kInvalidValue, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {kOutOfMemory, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {kNotInitialized, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {kNoDevice, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {kInvalidDevice, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {kInvalidImage, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {kInvalidContext, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {kInvalidHandle, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {kNotFound, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {kNotReady, "CUDA_ERROR_NOT_READY", "device not ready"},
    {kIllegalAddress, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {kLaunchOutOfResources, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES",
     "too many resources requested for launch"},
    {kMisalignedAddress, "CUDA_ERROR_MISALIGNED_ADDRESS", "misaligned address"},
    {kLaunchFailed, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {kNotSupported, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    {kCaptureUnsupported, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
     "operation not permitted when stream is capturing"},
    {kCaptureInvalidated, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
     "operation failed due to a previous error during capture"},
    {kCaptureUnmatched, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED",
     "capture was not ended in the same stream as it began"},
    {kCaptureUnjoined, "CUDA_ERROR_STREAM_CAPTURE_UNJOINED", "capturing stream has unjoined work"},
    {kCaptureIsolation, "CUDA_ERROR_STREAM_CAPTURE_ISOLATION",
     "dependency created on uncaptured work in another stream"},
    {kCapturedEvent, "CUDA_ERROR_CAPTURED_EVENT",
     "operation not permitted on an event last recorded in a capturing stream"},
};

const ResultText* find_result(int code) {
  const ResultText* found = std::find_if(std::begin(kResults), std::end(kResults),
                                         [&](const ResultText& r) { return r.code == code; });
  return found == std::end(kResults) ? nullptr : found;
}

// A small device, so that small tensors already need several rounds of a grid-stride loop.
struct Attribute {
  int key, value;
};
constexpr Attribute kAttributes[] = {
    {1, kMaxThreads},     // MAX_THREADS_PER_BLOCK
    {2, kMaxThreads},     // MAX_BLOCK_DIM_X
    {3, kMaxThreads},     // MAX_BLOCK_DIM_Y
    {4, kMaxBlockZ},      // MAX_BLOCK_DIM_Z
    {5, kMaxGridX},       // MAX_GRID_DIM_X
    {6, kMaxGridYZ},      // MAX_GRID_DIM_Y
    {7, kMaxGridYZ},      // MAX_GRID_DIM_Z
    {8, kDefaultShared},  // MAX_SHARED_MEMORY_PER_BLOCK
    {9, 64 << 10},        // TOTAL_CONSTANT_MEMORY
    {10, 32},             // WARP_SIZE
    {12, 64 << 10},       // MAX_REGISTERS_PER_BLOCK
    {13, 1000000},        // CLOCK_RATE, kHz
    {16, 4},              // MULTIPROCESSOR_COUNT
    {18, 0},              // INTEGRATED
    {20, 0},              // COMPUTE_MODE
    {31, 1},              // CONCURRENT_KERNELS
    {36, 1000000},        // MEMORY_CLOCK_RATE, kHz
    {37, 512},            // GLOBAL_MEMORY_BUS_WIDTH
    {38, 4 << 20},        // L2_CACHE_SIZE
    {39, 2048},           // MAX_THREADS_PER_MULTIPROCESSOR
    {40, 1},              // ASYNC_ENGINE_COUNT
    {41, 1},              // UNIFIED_ADDRESSING
    {75, 9},              // COMPUTE_CAPABILITY_MAJOR
    {76, 0},              // COMPUTE_CAPABILITY_MINOR
    {81, 228 << 10},      // MAX_SHARED_MEMORY_PER_MULTIPROCESSOR
    {82, 64 << 10},       // MAX_REGISTERS_PER_MULTIPROCESSOR
    {83, 0},              // MANAGED_MEMORY
    {95, 0},              // COOPERATIVE_LAUNCH
    {97, kMaxShared},     // MAX_SHARED_MEMORY_PER_BLOCK_OPTIN
    {106, 32},            // MAX_BLOCKS_PER_MULTIPROCESSOR
    {111, 1 << 10},       // RESERVED_SHARED_MEMORY_PER_BLOCK
    {115, 1},             // MEMORY_POOLS_SUPPORTED
};

bool is_device(int index) { return index >= 0 && size_t(index) < devices.size(); }

// For entry points that need a device but no context.
#define SHIM_ENTER_DEVICE(index)                      \
  std::lock_guard lock(driver_mutex);                 \
  if (devices.empty()) return kNotInitialized;        \
  if (!is_device(index)) return kInvalidDevice

}  // namespace
}  // namespace shim

using namespace shim;

SHIM_API int cuGetErrorName(int code, const char** name) {
  const ResultText* found = find_result(code);
  *name = found ? found->name : nullptr;
  return found ? kSuccess : kInvalidValue;
}

SHIM_API int cuGetErrorString(int code, const char** text) {
  const ResultText* found = find_result(code);
  *text = found ? found->text : nullptr;
  return found ? kSuccess : kInvalidValue;
}

SHIM_API int cuInit(unsigned flags) {
  std::lock_guard lock(driver_mutex);
  if (flags != 0) return kInvalidValue;
  const char* count = std::getenv("RUSHLIGHT_SHIM_DEVICES");
  int wanted = count ? std::atoi(count) : 2;
  while (int(devices.size()) < wanted) {
    devices.push_back(std::make_unique<Device>());
    devices.back()->index = int(devices.size()) - 1;
  }
  return devices.empty() ? kNoDevice : kSuccess;
}

SHIM_API int cuDriverGetVersion(int* version) {
  *version = 12080;
  return kSuccess;
}

SHIM_API int cuDeviceGetCount(int* count) {
  std::lock_guard lock(driver_mutex);
  *count = int(devices.size());
  return devices.empty() ? kNotInitialized : kSuccess;
}

SHIM_API int cuDeviceGet(int* device, int index) {
  SHIM_ENTER_DEVICE(index);
  *device = index;
  return kSuccess;
}

SHIM_API int cuDeviceGetName(char* name, int length, int device) {
  SHIM_ENTER_DEVICE(device);
  std::snprintf(name, length, "Rushlight CPU shim");
  return kSuccess;
}

SHIM_API int cuDeviceGetAttribute(int* value, int key, int device) {
  SHIM_ENTER_DEVICE(device);
  const Attribute* found = std::find_if(std::begin(kAttributes), std::end(kAttributes),
                                        [&](const Attribute& a) { return a.key == key; });
  if (found != std::end(kAttributes)) *value = found->value;
  // PCI_BUS_ID, which tells devices apart.
  if (key == 33) *value = device + 1;
  return found != std::end(kAttributes) || key == 33 ? kSuccess : kInvalidValue;
}

SHIM_API int cuDeviceTotalMem_v2(size_t* bytes, int device) {
  SHIM_ENTER_DEVICE(device);
  *bytes = kMemoryPerDevice;
  return kSuccess;
}

SHIM_API int cuDeviceGetUuid(char* uuid, int device) {
  SHIM_ENTER_DEVICE(device);
  std::memcpy(uuid, "Rushlight shim 0", 16);
  uuid[15] = char('0' + device);
  return kSuccess;
}

SHIM_API int cuDevicePrimaryCtxRetain(void** context, int device) {
  SHIM_ENTER_DEVICE(device);
  *context = devices[device].get();
  return kSuccess;
}

SHIM_API int cuCtxSetCurrent(void* context) {
  std::lock_guard lock(driver_mutex);
  if (devices.empty()) return kNotInitialized;
  auto found = std::find_if(devices.begin(), devices.end(),
                            [&](const auto& device) { return device.get() == context; });
  if (context && found == devices.end()) return kInvalidContext;
  current_device = static_cast<Device*>(context);
  return kSuccess;
}

SHIM_API int cuCtxGetCurrent(void** context) {
  std::lock_guard lock(driver_mutex);
  if (devices.empty()) return kNotInitialized;
  *context = current_device;
  return kSuccess;
}
