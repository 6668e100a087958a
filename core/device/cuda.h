// Owns the question whether CUDA can be used, the devices, and the current one of each thread.
//
// Nothing of CUDA is opened before the first question. Device numbers of this namespace are plain
// ints from 0; Device{cuda, -1} means the current one. Work is queued on the device's current
// stream (cuda_stream.h). A process that used CUDA cannot go on with it in a forked child.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <utility>

#include "core/base/error.h"
#include "core/device/device.h"

namespace rushlight::cuda {

inline constexpr int kMaxDevices = 32;

// The place of a device in arrays of one entry each; raises for a number that cannot be one.
inline size_t slot_of(int device) {
  CHECK(device >= 0 && device < kMaxDevices,
        "CUDA error: invalid device ordinal: there is no cuda:", device);
  return size_t(device);
}

// Decided once, by opening the driver and NVRTC; false in a forked child of a process that used
// CUDA.
bool is_available() noexcept;
// 0 when CUDA is not available.
int device_count() noexcept;
// Raises what is missing, where it was looked for and what helps, unless CUDA is available.
void require();
// Whether a device was used already.
bool is_initialized() noexcept;
// Whether memory and handles of CUDA in this process belong to a parent.
bool is_forked_child() noexcept;

struct Properties {
  std::string name;
  std::array<unsigned char, 16> uuid;
  size_t total_memory;
  int major, minor;  // compute capability
  int multiprocessors;
  int warp_size;
  int max_threads_per_block;
  int max_threads_per_multiprocessor;
  int registers_per_multiprocessor;
  int shared_memory_per_block;        // without asking
  int shared_memory_per_block_optin;  // CudaKernel asks for it
  int shared_memory_per_multiprocessor;
  int l2_cache_size;
  bool is_integrated;

  // "sm_90", what the device's code is compiled for.
  std::string arch() const;
};
const Properties& properties(int device);

// Of this thread.
int current_device() noexcept;
// Raises when there is no such device.
void set_device(int device);
// The number of a CUDA device, which is checked; the current one when it has none.
int device_index(Device device);

// Another current device for the length of a scope.
class DeviceGuard {
 public:
  explicit DeviceGuard(int device) : before_(current_device()) { set_device(device); }
  ~DeviceGuard() { set_device(before_); }
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;

 private:
  int before_;
};

// Initializes a device at first use, and makes its context the driver's current one of this thread.
// Whatever calls driver functions does this first: other libraries may have changed it.
void activate(int device);

// Waits for all streams of a device.
void synchronize(int device);

// Free and total bytes of a device, as the driver sees them.
std::pair<size_t, size_t> memory_info(int device);

// Whether kernels of a device may read the memory of another.
bool can_access_peer(int device, int peer);

// What is called whenever an op, rather than the user, waits for a device; empty at first.
void set_wait_observer(void (*observer)());
void observe_wait();

// Copies between any two devices, in the order of their current streams. Returns when `to` may be
// read on its device's current stream; on the CPU that is when the copy is done, unless it is
// non_blocking and the CPU's memory is pinned: then the caller synchronizes.
void copy_bytes(void* to, Device to_device, const void* from, Device from_device, size_t bytes,
                bool non_blocking = false);
// Fills memory of a CUDA device with one byte, on its current stream.
void fill_bytes(void* to, Device device, unsigned char value, size_t bytes);

}  // namespace rushlight::cuda
