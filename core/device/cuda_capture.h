// Owns the captures that go on: which streams record their work for a CUDA graph instead of doing
// it, and what must not happen to them meanwhile.
//
// Note [CUDA graphs]
// ~~~~~~~~~~~~~~~~~~
// Between Graph::capture_begin and capture_end a stream's work is recorded with its addresses and
// numbers; a replay does it again with the same ones.
// - Memory comes from a private pool (cuda_pool.h), which nobody else is given memory of before the
//   graph is reset. Memory of other streams that is freed meanwhile waits until captures are over.
// - Nothing may wait for the device, for nothing has been done. We refuse such calls before the
//   driver sees them, since it would spoil the whole capture: see refuse_capture.
// - Copies between host and device need pinned memory, which the graph keeps from being reused.
// - Random numbers: a kernel that draws reads the seed and the first counter from memory of the
//   graph, and only the distance from there is recorded. Each replay takes the counters of all
//   draws from the generator and writes there where they begin. So replays draw new numbers, those
//   that the same work would draw without a graph.
// - Indices are checked on the device (core/ops/index): a wrong one ends the kernel and, as any
//   failed kernel, makes the device unusable for the process.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

#include "core/device/cuda_stream.h"

namespace rushlight::cuda {

class Capture;
class PrivatePool;

inline std::atomic<int> captures_underway{0};
// Whether any thread captures anything; most often not, and then nothing here costs more.
inline bool any_capture() { return captures_underway.load(std::memory_order_relaxed) > 0; }

// The capture that work queued on the stream goes to; null when it goes to the device.
std::shared_ptr<Capture> capture_of(Stream stream);
inline bool is_capturing(Stream stream) { return any_capture() && capture_of(stream) != nullptr; }
// Whether a stream of the device captures.
bool is_capturing_on(int device);

// Raises where the stream captures. `what` goes on from "it", such as "waits for the GPU"; `op` is
// the name of what is not called through the dispatcher.
void refuse_capture(Stream stream, const char* what, const char* op = nullptr);
// The same for all streams of a device.
void refuse_captures_on(int device, const char* what, const char* op = nullptr);

// Where the private memory for work on a stream comes from: from the pool of its capture, or the
// one that use_pool named for this thread; null when it comes from no such pool.
std::shared_ptr<PrivatePool> private_pool_for(Stream stream);
// Makes a pool that of all memory which this thread allocates on a device; null ends it.
void use_pool(int device, std::shared_ptr<PrivatePool> pool);

// Keeps the pinned memory around an address for the graph that the stream's capture makes; false
// when the memory is not pinned.
bool keep_pinned(Stream stream, const void* data);

// Who draws random numbers in a graph: `take` returns the seed and the counter from which on so
// many counters are taken.
struct DrawSource {
  const void* id;
  std::function<std::array<uint64_t, 2>(uint64_t counters)> take;
};
struct CapturedDraw {
  const uint64_t* start;  // on the device: the seed, and the counter where the graph's draws begin
  uint64_t offset;        // how many counters after that one
};
// Takes counters in a capture; `source` is listed in it if it is not yet and `lists` is true.
CapturedDraw draw_in(Capture& capture, const DrawSource& source, bool lists, uint64_t counters);

// While it lives, the driver lets this thread call what it forbids near a capture, such as to
// allocate memory or to ask for an event; it does nothing while there is none.
class RelaxedCapture {
 public:
  RelaxedCapture();
  ~RelaxedCapture();
  RelaxedCapture(const RelaxedCapture&) = delete;
  RelaxedCapture& operator=(const RelaxedCapture&) = delete;

 private:
  bool changed_;
  int mode_before_;
};

}  // namespace rushlight::cuda
