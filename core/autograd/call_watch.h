// Owns the switches, per thread, under which an op is not simply called: autocast, which changes
// the dtype of what it gets, the profiler, which notes when it ran, and modes, which run in its
// place; see Note [Dispatch to Python] in core/tensor/dispatch.h.
//
// An op tests one byte; see Invoke::plain in core/ops/record.h and core/ops/watched_call.h.
#pragma once

#include <cstdint>

#include "core/base/dtype.h"
#include "core/device/device.h"

namespace rushlight {

enum CallWatcher : uint8_t { kWatchedByAutocast = 1, kWatchedByProfiler = 2, kWatchedByModes = 4 };

// Who may watch a call of an op that autocast does or does not know.
constexpr uint8_t watchers_of(bool autocasts) {
  return kWatchedByProfiler | kWatchedByModes | (autocasts ? kWatchedByAutocast : 0);
}

struct CallWatch {
  uint8_t watchers = 0;
  bool passes = false;  // the next call has been seen already

  // Whether watchers are to see a call.
  bool sees_call() {
    if (!passes) return true;
    passes = false;
    return false;
  }
};
[[gnu::tls_model("initial-exec")]] inline constinit thread_local CallWatch call_watch;

// What autocast does, per device; see Note [Autocast] in core/ops/watched_call.h.
struct AutocastMode {
  struct OnDevice {
    bool enabled = false;
    DType dtype;
  };
  OnDevice cpu{false, DType::bfloat16}, cuda{false, DType::float16};
  bool keeps_casts = true;
  int depth = 0;  // of contexts; casts are forgotten at the end of the outermost one
};
inline constinit thread_local AutocastMode autocast_mode;

inline AutocastMode::OnDevice* find_autocast(DeviceType device) {
  return device == DeviceType::cpu    ? &autocast_mode.cpu
         : device == DeviceType::cuda ? &autocast_mode.cuda
                                      : nullptr;
}

// Sets whether autocast watches calls, by what is enabled.
inline void update_autocast_watch() {
  bool watches = autocast_mode.cpu.enabled || autocast_mode.cuda.enabled;
  call_watch.watchers =
      uint8_t((call_watch.watchers & ~kWatchedByAutocast) | (watches ? kWatchedByAutocast : 0));
}

// Turns autocast off for a scope.
class NoAutocastGuard {
 public:
  NoAutocastGuard() : cpu_(autocast_mode.cpu.enabled), cuda_(autocast_mode.cuda.enabled) {
    set(false, false);
  }
  ~NoAutocastGuard() { set(cpu_, cuda_); }
  NoAutocastGuard(const NoAutocastGuard&) = delete;
  NoAutocastGuard& operator=(const NoAutocastGuard&) = delete;

 private:
  static void set(bool cpu, bool cuda) {
    autocast_mode.cpu.enabled = cpu;
    autocast_mode.cuda.enabled = cuda;
    update_autocast_watch();
  }
  bool cpu_, cuda_;
};

}  // namespace rushlight
