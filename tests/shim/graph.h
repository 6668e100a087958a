// Owns the pretended CUDA graphs: what streams record while they capture, and its replay.
//
// A node is a closure that does the work; nodes are replayed in the order in which they were
// recorded, which is one that the streams and events of the capture allow.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tests/shim/driver.h"

namespace shim {

// How many nodes of each stream a point in a capture comes after.
using Clock = std::map<Stream*, size_t>;

struct Graph {
  struct Node {
    std::string what;
    std::function<Result()> work;
  };
  uint64_t id;
  int mode;
  Stream* origin;
  std::vector<Node> nodes;
  std::map<Stream*, Clock> clocks;  // of the streams that capture
  bool is_spoilt = false;
};

// What a stream records to; null when it does its work.
Graph* capture_of(Stream* stream);

// Does the work, or puts it off, or records it while the stream captures.
Result submit(Stream* stream, const char* what, std::function<Result()> work);
Result record_node(Stream* stream, const char* what, std::function<Result()> work);

// Do what was put off: to a point of the stream, all of it, or that of all streams. The result is
// that of any work since it was last asked for.
Result finish(Stream* stream, uint64_t point);
Result finish(Stream* stream);
Result finish_all();
bool is_pending(const Stream* stream, uint64_t point);

// An event of a capturing stream takes others into the capture, which wait for it.
void record_in_capture(Stream* stream, Event& event);
Result wait_in_capture(Stream* stream, const Event& event);

// Whether the driver forbids this thread, near a capture, what may wait or change memory; it spoils
// captures of this thread.
bool is_forbidden();
// Spoils the capture of a stream that somebody waits for; whether there is one.
bool spoils_capture(Stream* stream);

}  // namespace shim
