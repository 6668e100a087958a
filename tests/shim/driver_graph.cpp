// Owns the entry points for captures and graphs.
#include <algorithm>
#include <cstdio>

#include "tests/shim/graph.h"

namespace shim {
namespace {

constexpr int kGlobal = 0, kRelaxed = 2;

struct Exec {
  Device* device;
  std::vector<Graph::Node> nodes;
};

std::set<Graph*> open_captures, graphs;
std::set<Exec*> execs;
thread_local int interaction_mode = kGlobal;
thread_local std::set<Graph*> captures_of_thread;

void merge(Clock& into, const Clock& other) {
  for (auto [stream, count] : other) into[stream] = std::max(into[stream], count);
}

// Whether a stream's last node comes before the origin's end.
bool is_joined(Graph& graph) {
  const Clock& end = graph.clocks[graph.origin];
  return std::ranges::all_of(graph.clocks, [&](const auto& entry) {
    auto own = entry.second.find(entry.first);
    if (own == entry.second.end()) return entry.first == graph.origin || end.contains(entry.first);
    auto seen = end.find(entry.first);
    return seen != end.end() && seen->second >= own->second;
  });
}

Result run(const std::vector<Graph::Node>& nodes) {
  for (const Graph::Node& node : nodes) {
    if (Result result = node.work(); result != kSuccess) {
      std::fprintf(stderr, "cuda shim: the node %s of a graph failed\n", node.what.c_str());
      return result;
    }
  }
  return kSuccess;
}

}  // namespace

Graph* capture_of(Stream* stream) { return stream->capture; }

Result record_node(Stream* stream, const char* what, std::function<Result()> work) {
  Graph* graph = stream->capture;
  if (graph->is_spoilt) return kCaptureInvalidated;
  ++graph->clocks[stream][stream];
  graph->nodes.push_back({what, std::move(work)});
  return kSuccess;
}

void record_in_capture(Stream* stream, Event& event) {
  event.capture = stream->capture;
  event.clock = stream->capture ? stream->capture->clocks[stream] : Clock();
}

Result wait_in_capture(Stream* stream, const Event& event) {
  if (stream->capture != event.capture) {
    if (!event.is_recorded) return kSuccess;
    if (stream->capture) {
      stream->capture->is_spoilt = true;
      return kCaptureIsolation;
    }
    if (!open_captures.contains(event.capture)) return kInvalidValue;
    stream->capture = event.capture;
    stream->capture->clocks[stream].try_emplace(stream, 0);
  }
  if (stream->capture) merge(stream->capture->clocks[stream], event.clock);
  return kSuccess;
}

bool is_forbidden() {
  if (interaction_mode == kRelaxed) return false;
  bool forbidden = false;
  for (Graph* graph : open_captures) {
    bool own = captures_of_thread.contains(graph) && graph->mode != kRelaxed;
    if (!own && !(interaction_mode == kGlobal && graph->mode == kGlobal)) continue;
    graph->is_spoilt = forbidden = true;
  }
  return forbidden;
}

bool spoils_capture(Stream* stream) {
  if (stream->capture) stream->capture->is_spoilt = true;
  return stream->capture != nullptr;
}

}  // namespace shim

using namespace shim;

SHIM_API int cuStreamBeginCapture_v2(void* handle, int mode) {
  SHIM_ENTER();
  static uint64_t last_id = 0;
  Stream* stream = find_stream(handle);
  if (!stream) return kInvalidHandle;
  if (mode < kGlobal || mode > kRelaxed) return kInvalidValue;
  if (stream == &current_device->default_stream) return kCaptureUnsupported;
  if (stream->capture) return kCaptureUnsupported;
  stream->capture = new Graph{++last_id, mode, stream, {}, {}};
  stream->capture->clocks[stream];
  open_captures.insert(stream->capture);
  captures_of_thread.insert(stream->capture);
  return kSuccess;
}

SHIM_API int cuStreamEndCapture(void* handle, void** result) {
  SHIM_ENTER();
  Stream* stream = find_stream(handle);
  if (!stream || !stream->capture) return kInvalidValue;
  Graph* graph = stream->capture;
  if (graph->origin != stream) return kCaptureUnmatched;
  *result = nullptr;
  bool joined = is_joined(*graph);
  for (auto& [each, clock] : graph->clocks) each->capture = nullptr;
  open_captures.erase(graph);
  captures_of_thread.erase(graph);
  if (graph->is_spoilt || !joined) {
    int error = graph->is_spoilt ? kCaptureInvalidated : kCaptureUnjoined;
    delete graph;
    return error;
  }
  graphs.insert(graph);
  *result = graph;
  return kSuccess;
}

SHIM_API int cuStreamGetCaptureInfo_v2(void* handle, int* status, uint64_t* id, void** graph,
                                       const void** nodes, size_t* node_count) {
  SHIM_ENTER();
  Stream* stream = find_stream(handle);
  if (!stream) return kInvalidHandle;
  if (graph || nodes || node_count) return kNotSupported;
  constexpr int kNone = 0, kActive = 1, kInvalidated = 2;
  *status = !stream->capture ? kNone : stream->capture->is_spoilt ? kInvalidated : kActive;
  if (id && stream->capture) *id = stream->capture->id;
  return kSuccess;
}

SHIM_API int cuStreamIsCapturing(void* handle, int* status) {
  return cuStreamGetCaptureInfo_v2(handle, status, nullptr, nullptr, nullptr, nullptr);
}

SHIM_API int cuThreadExchangeStreamCaptureMode(int* mode) {
  if (*mode < kGlobal || *mode > kRelaxed) return kInvalidValue;
  std::swap(*mode, interaction_mode);
  return kSuccess;
}

SHIM_API int cuGraphInstantiateWithFlags(void** exec, void* handle, unsigned long long flags) {
  SHIM_ENTER();
  Graph* graph = static_cast<Graph*>(handle);
  if (flags || !graphs.contains(graph)) return kInvalidValue;
  *exec = *execs.insert(new Exec{graph->origin->device, graph->nodes}).first;
  return kSuccess;
}

SHIM_API int cuGraphLaunch(void* handle, void* stream_handle) {
  SHIM_ENTER();
  Exec* exec = static_cast<Exec*>(handle);
  Stream* stream = find_stream(stream_handle);
  if (!execs.contains(exec) || !stream) return kInvalidValue;
  if (stream->capture) return kNotSupported;  // it would be a node of the other graph
  return submit(stream, "graph", [nodes = exec->nodes] { return run(nodes); });
}

SHIM_API int cuGraphExecDestroy(void* handle) {
  SHIM_ENTER();
  if (execs.erase(static_cast<Exec*>(handle)) == 0) return kInvalidValue;
  delete static_cast<Exec*>(handle);
  return kSuccess;
}

SHIM_API int cuGraphDestroy(void* handle) {
  SHIM_ENTER();
  if (graphs.erase(static_cast<Graph*>(handle)) == 0) return kInvalidValue;
  delete static_cast<Graph*>(handle);
  return kSuccess;
}

SHIM_API int cuGraphGetNodes(void* handle, void** nodes, size_t* count) {
  SHIM_ENTER();
  Graph* graph = static_cast<Graph*>(handle);
  if (!graphs.contains(graph)) return kInvalidValue;
  if (nodes) return kNotSupported;
  *count = graph->nodes.size();
  return kSuccess;
}

SHIM_API int cuGraphDebugDotPrint(void* handle, const char* path, unsigned) {
  SHIM_ENTER();
  Graph* graph = static_cast<Graph*>(handle);
  if (!graphs.contains(graph)) return kInvalidValue;
  std::FILE* file = std::fopen(path, "w");
  if (!file) return kInvalidValue;
  std::fputs("digraph {\n", file);
  for (size_t i = 0; i < graph->nodes.size(); ++i)
    std::fprintf(file, "  n%zu [label=\"%s\"];\n", i, graph->nodes[i].what.c_str());
  std::fputs("}\n", file);
  std::fclose(file);
  return kSuccess;
}
