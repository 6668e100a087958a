// Owns the work of streams that is put off. With RUSHLIGHT_SHIM_LAZY set, what is queued on a
// stream happens when somebody waits for it and not before, which is the latest that a device may
// do it. So work that relies on another stream's without an event, or on a copy that nobody waited
// for, finds poison.
#include <cstdlib>
#include <utility>

#include "tests/shim/graph.h"

namespace shim {
namespace {

bool is_lazy() {
  static const bool lazy = std::getenv("RUSHLIGHT_SHIM_LAZY") != nullptr;
  return lazy;
}

Result late_error = kSuccess;  // of work that was put off, for the next who waits

std::set<Stream*>& streams_with_work() {
  static std::set<Stream*> streams;
  return streams;
}

}  // namespace

Result submit(Stream* stream, const char* what, std::function<Result()> work) {
  if (stream->capture) return record_node(stream, what, std::move(work));
  if (!is_lazy()) return work();
  stream->queue.push_back(std::move(work));
  ++stream->queued;
  streams_with_work().insert(stream);
  return kSuccess;
}

Result finish(Stream* stream, uint64_t point) {
  Device* before = std::exchange(current_device, stream->device);
  while (!stream->queue.empty() && stream->queued - stream->queue.size() < point) {
    std::function<Result()> work = std::move(stream->queue.front());
    stream->queue.pop_front();
    if (Result result = work(); result != kSuccess) late_error = result;
  }
  if (stream->queue.empty()) streams_with_work().erase(stream);
  current_device = before;
  return std::exchange(late_error, kSuccess);
}

Result finish(Stream* stream) { return finish(stream, stream->queued); }

Result finish_all() {
  Result result = kSuccess;
  while (!streams_with_work().empty()) {
    if (Result each = finish(*streams_with_work().begin()); each != kSuccess) result = each;
  }
  return result;
}

bool is_pending(const Stream* stream, uint64_t point) {
  return !stream->queue.empty() && stream->queued - stream->queue.size() < point;
}

}  // namespace shim
