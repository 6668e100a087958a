#include "core/device/cuda_stream.h"

#include <array>
#include <memory>
#include <mutex>
#include <utility>

#include "core/base/error.h"
#include "core/device/cuda.h"
#include "core/device/cuda_capture.h"
#include "core/device/cuda_report.h"

namespace rushlight::cuda {
namespace {

constexpr size_t kStreamsPerPool = 32;  // PyTorch's number

// The current streams of this thread by device, or null while they are the default ones; behind a
// pointer by Note [Static TLS].
struct CurrentStreams;
[[gnu::tls_model("initial-exec")]] constinit thread_local CurrentStreams* current_streams = nullptr;
struct CurrentStreams {
  CurrentStreams() { current_streams = this; }
  ~CurrentStreams() { current_streams = nullptr; }
  std::array<CUstream, kMaxDevices> handles{};
};

// The streams of one device and priority, made when their turn first comes.
class Pool {
 public:
  Stream next(int device, int priority) {
    std::lock_guard lock(mutex_);
    CUstream& stream = streams_[turn_++ % kStreamsPerPool];
    if (!stream) {
      activate(device);
      check(driver().cuStreamCreateWithPriority(&stream, kStreamNonBlocking, priority),
            "cuStreamCreateWithPriority");
    }
    return {device, stream};
  }

 private:
  std::mutex mutex_;
  std::array<CUstream, kStreamsPerPool> streams_{};
  size_t turn_ = 0;
};

// Asks whether something is done; other results are errors.
bool is_ready(CUresult result, const char* what) {
  if (result == kErrorNotReady) return false;
  check(result, what);
  return true;
}

}  // namespace

Stream pool_stream(int device, int priority) {
  static std::array<std::array<Pool, 2>, kMaxDevices> pools;
  bool is_high = priority < 0;
  // The driver takes the nearest priority that it has.
  return pools[size_t(device_index({DeviceType::cuda, int8_t(slot_of(device))}))][is_high].next(
      device, is_high ? -1 : 0);
}

Stream current_stream(int device) noexcept {
  return {device, current_streams ? current_streams->handles[size_t(device)] : CUstream()};
}

void set_current_stream(Stream stream) {
  thread_local auto streams = std::make_unique<CurrentStreams>();
  streams->handles[size_t(stream.device)] = stream.handle;
}

StreamGuard::StreamGuard(Stream stream)
    : device_before_(current_device()), stream_before_(current_stream(stream.device)) {
  set_device(stream.device);
  set_current_stream(stream);
}

StreamGuard::~StreamGuard() {
  set_current_stream(stream_before_);
  set_device(device_before_);
}

void synchronize(Stream stream) {
  refuse_capture(stream, "waits for the GPU", "Stream.synchronize");
  activate(stream.device);
  check(driver().cuStreamSynchronize(stream.handle), "cuStreamSynchronize");
  heed_report();
}

bool is_done(Stream stream) {
  refuse_capture(stream, "asks whether the GPU is done", "Stream.query");
  activate(stream.device);
  RelaxedCapture relaxed;
  return is_ready(driver().cuStreamQuery(stream.handle), "cuStreamQuery");
}

Event::~Event() {
  if (!handle_ || is_forked_child()) return;
  try {
    activate(device_);  // this thread may not have used the device
    driver().cuEventDestroy_v2(handle_);
  } catch (const std::exception&) {
    // At exit the driver may be gone; then its error says nothing new.
  }
}

void Event::record(Stream stream) {
  activate(stream.device);
  if (!handle_) {
    unsigned flags =
        (enable_timing_ ? 0 : kEventDisableTiming) | (blocking_ ? kEventBlockingSync : 0);
    check(driver().cuEventCreate(&handle_, flags), "cuEventCreate");
    device_ = stream.device;
  }
  CHECK(device_ == stream.device, "Event.record: the event belongs to cuda:", device_,
        ", but the stream to cuda:", stream.device, ". Use an event per device.");
  check(driver().cuEventRecord(handle_, stream.handle), "cuEventRecord");
  captured_ = is_capturing(stream);
}

void Event::block(Stream stream) const {
  if (!handle_) return;
  activate(stream.device);
  check(driver().cuStreamWaitEvent(stream.handle, handle_, 0), "cuStreamWaitEvent");
}

void Event::check_not_captured(const char* op) const {
  CHECK(!captured_, "Event.", op,
        ": the event was recorded while work was captured into a CUDA "
        "graph, so there is nothing to wait for. Record it outside of the capture.");
}

void Event::synchronize() const {
  if (!handle_) return;
  check_not_captured("synchronize");
  activate(device_);
  RelaxedCapture relaxed;
  check(driver().cuEventSynchronize(handle_), "cuEventSynchronize");
  heed_report();
}

bool Event::is_done() const {
  if (!handle_) return true;
  check_not_captured("query");
  activate(device_);
  RelaxedCapture relaxed;
  return is_ready(driver().cuEventQuery(handle_), "cuEventQuery");
}

float Event::elapsed_time(const Event& end) const {
  CHECK(enable_timing_ && end.enable_timing_, ErrorKind::kValue,
        "Both events must be created with argument 'enable_timing=True'.");
  CHECK(handle_ && end.handle_, ErrorKind::kValue,
        "Both events must be recorded before calculating elapsed time.");
  CHECK(is_done() && end.is_done(), ErrorKind::kValue,
        "Both events must be completed before calculating elapsed time.");
  activate(device_);
  float milliseconds = 0;
  check(driver().cuEventElapsedTime(&milliseconds, handle_, end.handle_), "cuEventElapsedTime");
  return milliseconds;
}

void order(Stream earlier, Stream later) {
  if (earlier == later) return;
  Event event;
  event.record(earlier);
  event.block(later);
}

}  // namespace rushlight::cuda
