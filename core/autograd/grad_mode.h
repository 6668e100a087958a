// Owns the switches that decide, per thread, whether ops are recorded.
#pragma once

namespace rushlight {

struct GradMode {
  bool enabled = true;
  bool inference = false;         // then never enabled
  bool keeps_grad_layout = true;  // a new .grad gets the strides of its leaf
  bool gradients_as_ops = false;
  bool saves_inference = false;  // see OwnTapeGuard
};

inline thread_local GradMode grad_mode;

inline bool is_grad_enabled() { return grad_mode.enabled; }

// Whether a gradient is made of ops rather than by a kernel of its own: when it may be
// differentiated again, and when what flows back is lifted, see Note [Lifted tensors].
inline bool gradients_as_ops() { return grad_mode.enabled || grad_mode.gradients_as_ops; }

class GradientsAsOpsGuard {
 public:
  explicit GradientsAsOpsGuard(bool as_ops) : previous_(grad_mode.gradients_as_ops) {
    grad_mode.gradients_as_ops = as_ops;
  }
  ~GradientsAsOpsGuard() { grad_mode.gradients_as_ops = previous_; }
  GradientsAsOpsGuard(const GradientsAsOpsGuard&) = delete;
  GradientsAsOpsGuard& operator=(const GradientsAsOpsGuard&) = delete;

 private:
  bool previous_;
};

// For a scope in which a transform makes a tape that nobody else sees: in inference mode it may be
// recorded too, and it may keep inference tensors.
class OwnTapeGuard {
 public:
  OwnTapeGuard() : previous_(grad_mode) { begin(); }
  ~OwnTapeGuard() { end(previous_); }
  OwnTapeGuard(const OwnTapeGuard&) = delete;
  OwnTapeGuard& operator=(const OwnTapeGuard&) = delete;

  static void begin() {
    grad_mode.inference = false;
    grad_mode.saves_inference = true;
  }
  static void end(const GradMode& previous) {
    grad_mode.inference = previous.inference;
    grad_mode.saves_inference = previous.saves_inference;
  }

 private:
  GradMode previous_;
};

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
