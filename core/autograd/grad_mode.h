// Owns the switches that decide, per thread, whether ops are recorded.
#pragma once

namespace rushlight {

struct GradMode {
  bool enabled = true;
  bool inference = false;         // then never enabled
  bool keeps_grad_layout = true;  // a new .grad gets the strides of its leaf
};

inline thread_local GradMode grad_mode;

inline bool is_grad_enabled() { return grad_mode.enabled; }

// Turns recording off (or on) for a scope.
class GradModeGuard {
 public:
  explicit GradModeGuard(bool enabled) : previous_(grad_mode.enabled) {
    grad_mode.enabled = enabled && !grad_mode.inference;
  }
  ~GradModeGuard() { grad_mode.enabled = previous_; }
  GradModeGuard(const GradModeGuard&) = delete;
  GradModeGuard& operator=(const GradModeGuard&) = delete;

 private:
  bool previous_;
};

}  // namespace rushlight
