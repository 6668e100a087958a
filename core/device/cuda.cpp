#include "core/device/cuda.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>

#include "core/base/error.h"
#include "core/device/cuda_capture.h"
#include "core/device/cuda_driver.h"
#include "core/device/cuda_pinned.h"
#include "core/device/cuda_report.h"
#include "core/device/cuda_stream.h"
#include "core/device/nvrtc.h"

namespace rushlight::cuda {
namespace {

constexpr const char* kForked =
    "Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, you must "
    "use the 'spawn' start method.";

[[gnu::tls_model("initial-exec")]] constinit thread_local int current = 0;

std::atomic<bool> forked{false};
std::atomic<bool> initialized{false};
std::atomic<void (*)()> wait_observer{nullptr};
// Of the devices that were used; they are kept until the process ends.
std::array<std::atomic<CUcontext>, kMaxDevices> contexts{};

struct Platform {
  int devices = 0;
  std::string problem;  // "" when CUDA can be used
};

Platform unusable(const std::string& why) { return {0, "CUDA cannot be used. " + why}; }

void after_fork() {
  forked = true;
  for (auto& context : contexts) context = nullptr;
}

Platform find_platform() {
  int version = 0;
  try {
    driver().cuDriverGetVersion(&version);
  } catch (const Error& error) {
    return unusable(std::string(error.what()) +
                    " Drivers for NVIDIA's GPUs are at https://www.nvidia.com/drivers; without a "
                    "GPU, use device='cpu'.");
  }
  // From here on the driver is in use, which a forked child cannot inherit.
  pthread_atfork(nullptr, nullptr, after_fork);
  int devices = 0;
  CUresult result = driver().cuInit(0);
  if (result == kSuccess) result = driver().cuDeviceGetCount(&devices);
  if (result == kSuccess && devices == 0) result = kErrorNoDevice;
  if (result != kSuccess) {
    const char* text = nullptr;
    driver().cuGetErrorString(result, &text);
    return unusable("NVIDIA driver: " + std::string(text ? text : "unknown error") +
                    ". Check the GPU with nvidia-smi, and CUDA_VISIBLE_DEVICES.");
  }
  try {
    nvrtc::limit_major_version(version / 1000);
    nvrtc::version();
  } catch (const Error& error) {
    return unusable(error.what());
  }
  return {std::min(devices, kMaxDevices), ""};
}

const Platform& platform() {
  static const Platform found = find_platform();
  return found;
}

int attribute(CUdevice device, int which) {
  int value = 0;
  check(driver().cuDeviceGetAttribute(&value, which, device), "cuDeviceGetAttribute");
  return value;
}

CUdevice handle_of(int device) {
  CUdevice handle;
  check(driver().cuDeviceGet(&handle, device), "cuDeviceGet");
  return handle;
}

Properties read_properties(int device) {
  CUdevice handle = handle_of(device);
  Properties p;
  char name[256] = "";
  check(driver().cuDeviceGetName(name, sizeof name, handle), "cuDeviceGetName");
  p.name = name;
  CUuuid uuid;
  check(driver().cuDeviceGetUuid(&uuid, handle), "cuDeviceGetUuid");
  std::copy(std::begin(uuid.bytes), std::end(uuid.bytes), p.uuid.begin());
  check(driver().cuDeviceTotalMem_v2(&p.total_memory, handle), "cuDeviceTotalMem");
  p.major = attribute(handle, kComputeCapabilityMajor);
  p.minor = attribute(handle, kComputeCapabilityMinor);
  p.multiprocessors = attribute(handle, kMultiprocessorCount);
  p.warp_size = attribute(handle, kWarpSize);
  p.max_threads_per_block = attribute(handle, kMaxThreadsPerBlock);
  p.max_threads_per_multiprocessor = attribute(handle, kMaxThreadsPerMultiprocessor);
  p.registers_per_multiprocessor = attribute(handle, kMaxRegistersPerMultiprocessor);
  p.shared_memory_per_block = attribute(handle, kMaxSharedMemoryPerBlock);
  p.shared_memory_per_block_optin = attribute(handle, kMaxSharedMemoryPerBlockOptin);
  p.shared_memory_per_multiprocessor = attribute(handle, kMaxSharedMemoryPerMultiprocessor);
  p.l2_cache_size = attribute(handle, kL2CacheSize);
  p.is_integrated = attribute(handle, kIntegrated) != 0;
  return p;
}

void check_device(int device) {
  require();
  CHECK(device >= 0 && device < device_count(), "CUDA error: invalid device ordinal: there is no ",
        "cuda:", device, ". This machine has ", device_count(), " CUDA device",
        device_count() == 1 ? "." : "s.");
}

CUcontext initialize(int device) {
  check_device(device);
  static std::mutex mutex;
  std::lock_guard lock(mutex);
  CUcontext context = contexts[size_t(device)];
  if (context) return context;
  check(driver().cuDevicePrimaryCtxRetain(&context, handle_of(device)), "cuDevicePrimaryCtxRetain");
  // Freed memory stays with the pool, as giving it back waits for the device.
  CUmemoryPool pool;
  uint64_t keep_everything = UINT64_MAX;
  check(driver().cuDeviceGetDefaultMemPool(&pool, handle_of(device)), "cuDeviceGetDefaultMemPool");
  check(driver().cuMemPoolSetAttribute(pool, kPoolReleaseThreshold, &keep_everything),
        "cuMemPoolSetAttribute");
  initialized = true;
  contexts[size_t(device)] = context;
  return context;
}

CUdeviceptr address(const void* data) { return reinterpret_cast<CUdeviceptr>(data); }

// Waits, unless the copy may go on by itself and the pinned memory remembers it.
void finish_host_copy(const void* host, Stream stream, bool non_blocking) {
  if (is_capturing(stream)) return;
  if (non_blocking && pinned_record(host, stream)) return;
  observe_wait();
  synchronize(stream);
}

// A graph repeats a copy with the same host memory, which it keeps.
void check_captured_copy(const void* host, Stream stream, bool to_gpu, bool non_blocking) {
  bool is_kept = non_blocking && keep_pinned(stream, host);
  if (is_kept) return;
  refuse_capture(stream, to_gpu ? "copies from the CPU to the GPU, without pinned memory and "
                                  "non_blocking=True"
                                : "copies from the GPU to the CPU and waits for the numbers");
}

void copy_between(void* to, int to_device, const void* from, int from_device, size_t bytes) {
  // The copy runs on the stream of the source, after what the other stream does with `to`.
  Stream source = current_stream(from_device), target = current_stream(to_device);
  order(target, source);
  activate(from_device);
  check(driver().cuMemcpyPeerAsync(address(to), contexts[size_t(to_device)], address(from),
                                   contexts[size_t(from_device)], bytes, source.handle),
        "cuMemcpyPeerAsync");
  order(source, target);
}

}  // namespace

bool is_available() noexcept {
  try {
    return !forked && platform().problem.empty();
  } catch (...) {  // no memory for the answer
    return false;
  }
}

int device_count() noexcept { return is_available() ? platform().devices : 0; }

void require() {
  CHECK(!forked, kForked);
  CHECK(platform().problem.empty(), platform().problem);
}

bool is_initialized() noexcept { return initialized && !forked; }

bool is_forked_child() noexcept { return forked.load(std::memory_order_relaxed); }

std::string Properties::arch() const {
  return "sm_" + std::to_string(major) + std::to_string(minor);
}

const Properties& properties(int device) {
  static std::array<Properties, kMaxDevices> known;
  static std::array<std::once_flag, kMaxDevices> once;
  check_device(device);
  std::call_once(once[size_t(device)], [&] { known[size_t(device)] = read_properties(device); });
  return known[size_t(device)];
}

int current_device() noexcept { return current; }

void set_device(int device) {
  if (device == current) return;
  check_device(device);
  current = device;
}

int device_index(Device device) {
  ASSERT(device.is_cuda());
  int index = device.has_index() ? device.index : current;
  check_device(index);
  return index;
}

void activate(int device) {
  CUcontext wanted = contexts[slot_of(device)].load(std::memory_order_acquire);
  if (!wanted) [[unlikely]]
    wanted = initialize(device);
  CUcontext bound;
  check(driver().cuCtxGetCurrent(&bound), "cuCtxGetCurrent");
  if (bound != wanted) check(driver().cuCtxSetCurrent(wanted), "cuCtxSetCurrent");
}

void synchronize(int device) {
  refuse_captures_on(device, "waits for the GPU", "synchronize");
  activate(device);
  check(driver().cuCtxSynchronize(), "cuCtxSynchronize");
  heed_report();
}

bool can_access_peer(int device, int peer) {
  check_device(device);
  check_device(peer);
  if (device == peer) return true;
  int can = 0;
  check(driver().cuDeviceCanAccessPeer(&can, handle_of(device), handle_of(peer)),
        "cuDeviceCanAccessPeer");
  return can != 0;
}

void set_wait_observer(void (*observer)()) { wait_observer = observer; }

void observe_wait() {
  if (auto observer = wait_observer.load(std::memory_order_relaxed)) observer();
}

std::pair<size_t, size_t> memory_info(int device) {
  activate(device);
  size_t free, total;
  check(driver().cuMemGetInfo_v2(&free, &total), "cuMemGetInfo");
  return {free, total};
}

void copy_bytes(void* to, Device to_device, const void* from, Device from_device, size_t bytes,
                bool non_blocking) {
  if (bytes == 0) return;
  if (to_device.is_cpu() && from_device.is_cpu()) {
    std::memcpy(to, from, bytes);
    return;
  }
  if (to_device.is_cuda() && from_device.is_cuda()) {
    int target = device_index(to_device), source = device_index(from_device);
    if (target != source) return copy_between(to, target, from, source, bytes);
    activate(target);
    check(driver().cuMemcpyDtoDAsync_v2(address(to), address(from), bytes,
                                        current_stream(target).handle),
          "cuMemcpyDtoDAsync");
    return;
  }
  ASSERT(to_device.is_cpu() || from_device.is_cpu());
  Stream stream = current_stream(device_index(to_device.is_cuda() ? to_device : from_device));
  if (is_capturing(stream)) [[unlikely]]
    check_captured_copy(to_device.is_cuda() ? from : to, stream, to_device.is_cuda(), non_blocking);
  activate(stream.device);
  if (to_device.is_cuda()) {
    check(driver().cuMemcpyHtoDAsync_v2(address(to), from, bytes, stream.handle),
          "cuMemcpyHtoDAsync");
    finish_host_copy(from, stream, non_blocking);
  } else {
    check(driver().cuMemcpyDtoHAsync_v2(to, address(from), bytes, stream.handle),
          "cuMemcpyDtoHAsync");
    finish_host_copy(to, stream, non_blocking);
  }
}

void fill_bytes(void* to, Device device, unsigned char value, size_t bytes) {
  if (bytes == 0) return;
  int index = device_index(device);
  activate(index);
  check(driver().cuMemsetD8Async(address(to), value, bytes, current_stream(index).handle),
        "cuMemsetD8Async");
}

}  // namespace rushlight::cuda
