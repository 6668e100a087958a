// Owns CUDA streams and events, and the current stream of each thread and device.
//
// Work on one stream runs in order; work on two runs in any order unless an event orders it. The
// default stream is the driver's null stream; the others come from a pool that lives as long as the
// process, so a Stream never dangles.
#pragma once

#include "core/device/cuda_driver.h"

namespace rushlight::cuda {

struct Stream {
  int device = 0;
  CUstream handle = nullptr;

  friend bool operator==(Stream a, Stream b) = default;
};

inline Stream default_stream(int device) { return {device, nullptr}; }
// One of 32 streams per device and priority, in turn. A negative priority is a high one.
Stream pool_stream(int device, int priority = 0);

// Of this thread; the default stream until another is set.
Stream current_stream(int device) noexcept;
// Makes a stream the current one of its device.
void set_current_stream(Stream stream);

// Another current stream and device for the length of a scope.
class StreamGuard {
 public:
  explicit StreamGuard(Stream stream);
  ~StreamGuard();
  StreamGuard(const StreamGuard&) = delete;
  StreamGuard& operator=(const StreamGuard&) = delete;

 private:
  int device_before_;
  Stream stream_before_;
};

void synchronize(Stream stream);
// Whether all work queued so far is done.
bool is_done(Stream stream);

// A point in a stream's work. It belongs to the device that first records it.
class Event {
 public:
  explicit Event(bool enable_timing = false, bool blocking = false)
      : enable_timing_(enable_timing), blocking_(blocking) {}
  ~Event();
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  void record(Stream stream);
  // The stream's later work waits for the recorded point; without one, nothing waits.
  void block(Stream stream) const;
  void synchronize() const;
  bool is_done() const;
  // Milliseconds up to a later event; both must be recorded, done and with timing.
  float elapsed_time(const Event& end) const;

  CUevent handle() const { return handle_; }
  int device() const { return device_; }  // -1 before it is recorded

 private:
  void check_not_captured(const char* op) const;

  CUevent handle_ = nullptr;
  int device_ = -1;
  bool enable_timing_;
  bool blocking_;
  bool captured_ = false;  // recorded last in a capture, which nobody can wait for
};

// All later work of `later` waits for what is queued on `earlier` now.
void order(Stream earlier, Stream later);

}  // namespace rushlight::cuda
