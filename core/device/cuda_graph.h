// Owns CUDA graphs: work of a stream that is recorded once and replayed as a whole.
//
// See Note [CUDA graphs]. A graph is used by one thread at a time; its replays run in the order of
// the streams that they are queued on, and two of them must not run at once, since they write the
// same memory.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "core/device/cuda_capture.h"
#include "core/device/cuda_pool.h"

namespace rushlight::cuda {

// CUstreamCaptureMode: which threads must not call what could disturb a capture.
enum class CaptureMode { global = 0, thread_local_ = 1, relaxed = 2 };

class Graph {
 public:
  Graph();
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  // A source whose numbers may be drawn in the capture; the default generator needs none.
  void register_source(DrawSource source);

  // The current stream of the current device records its work from now on; not the default stream.
  void capture_begin(std::optional<PoolId> pool, CaptureMode mode);
  // Ends it and makes the graph ready to be replayed, unless `keeps` leaves that to instantiate().
  void capture_end(bool keeps);
  // Ends a capture that failed, and forgets it; the stream can be used again.
  void abandon() noexcept;
  void instantiate();
  // Queues the work on the current stream.
  void replay();
  // Gives everything back; the memory of the pool can be reused when no graph uses it any more.
  void reset();

  // Writes the graph in the language of Graphviz.
  void debug_dump(const std::string& path) const;
  size_t nodes() const;
  PoolId pool() const;
  CUgraph handle() const { return graph_; }
  CUgraphExec exec_handle() const { return exec_; }

 private:
  void check_captured(const char* op) const;

  std::shared_ptr<Capture> capture_;  // while it goes on, and as long as its graph is kept
  bool is_open_ = false;              // it goes on
  std::vector<DrawSource> sources_;
  CUgraph graph_ = nullptr;
  CUgraphExec exec_ = nullptr;
};

}  // namespace rushlight::cuda
