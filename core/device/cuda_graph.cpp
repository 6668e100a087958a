#include "core/device/cuda_graph.h"

#include <algorithm>
#include <array>
#include <mutex>

#include "core/base/error.h"
#include "core/device/cuda.h"
#include "core/device/cuda_kernel.h"
#include "core/device/cuda_memory.h"
#include "core/device/cuda_pinned.h"

namespace rushlight {

extern const char* const cuda_graph_cu;

namespace cuda {

// What belongs to a capture, and afterwards to its graph.
class Capture {
 public:
  struct Draws {
    DrawSource source;
    uint64_t counters = 0;  // of all draws so far
    // See CapturedDraw. The driver's, not the pool's, whose memory the graph may have written
    // before it draws.
    CUdeviceptr start = 0;
  };

  Capture(Stream stream, std::shared_ptr<PrivatePool> pool)
      : stream(stream), pool(std::move(pool)) {}
  ~Capture() {
    for (void* data : pinned) pinned_let_go(data);
    if (is_forked_child()) return;
    // Errors say nothing new here: at exit the driver may be gone, and a failed kernel fails all.
    try {
      RelaxedCapture relaxed;
      activate(stream.device);
      for (const Draws& each : draws) {
        if (each.start) driver().cuMemFree_v2(each.start);
      }
    } catch (const std::exception&) {
    }
  }

  const Stream stream;
  const std::shared_ptr<PrivatePool> pool;
  uint64_t id = 0;  // the driver's
  std::mutex mutex;
  std::vector<Draws> draws;
  std::vector<void*> pinned;
};

namespace {

CudaModule draws_module("cuda_graph", cuda_graph_cu);
CudaKernel set_start(draws_module, "set_start");

struct Captures {
  std::mutex mutex;
  std::vector<std::shared_ptr<Capture>> open;
};
Captures& captures() {
  static auto* captures = new Captures;
  return *captures;
}

// The pools that use_pool named for this thread, by device; behind a pointer by Note [Static TLS].
struct ThreadPools;
[[gnu::tls_model("initial-exec")]] constinit thread_local ThreadPools* thread_pools = nullptr;
struct ThreadPools {
  ThreadPools() { thread_pools = this; }
  ~ThreadPools() { thread_pools = nullptr; }
  std::array<std::shared_ptr<PrivatePool>, kMaxDevices> of;
};

void close(const std::shared_ptr<Capture>& capture) {
  std::lock_guard lock(captures().mutex);
  if (std::erase(captures().open, capture)) --captures_underway;
}

}  // namespace

std::shared_ptr<Capture> capture_of(Stream stream) {
  if (!any_capture()) return nullptr;
  activate(stream.device);
  int status = 0;
  uint64_t id = 0;
  // The default stream never captures; where another library captures a stream that waits for it,
  // the driver refuses to answer.
  CUresult result =
      driver().cuStreamGetCaptureInfo_v2(stream.handle, &status, &id, nullptr, nullptr, nullptr);
  if (result != kSuccess || status != kCaptureActive) return nullptr;
  std::lock_guard lock(captures().mutex);
  for (const auto& capture : captures().open) {
    if (capture->id == id) return capture;
  }
  return nullptr;
}

bool is_capturing_on(int device) {
  if (!any_capture()) return false;
  std::lock_guard lock(captures().mutex);
  return std::ranges::any_of(captures().open,
                             [&](const auto& capture) { return capture->stream.device == device; });
}

namespace {

[[noreturn, gnu::cold]] void refuse(const char* what, const char* op) {
  Error error(ErrorKind::kRuntime,
              std::string("it ") + what +
                  ", which is not possible while work is captured into a CUDA graph: nothing of "
                  "it has been done yet. Do this before or after the capture.");
  if (op) error.name_op(op);
  throw error;
}

}  // namespace

void refuse_capture(Stream stream, const char* what, const char* op) {
  if (is_capturing(stream)) refuse(what, op);
}

void refuse_captures_on(int device, const char* what, const char* op) {
  if (is_capturing_on(device)) refuse(what, op);
}

std::shared_ptr<PrivatePool> private_pool_for(Stream stream) {
  if (std::shared_ptr<Capture> capture = capture_of(stream)) return capture->pool;
  return thread_pools ? thread_pools->of[size_t(stream.device)] : nullptr;
}

void use_pool(int device, std::shared_ptr<PrivatePool> pool) {
  size_t slot = slot_of(device);
  thread_local auto pools = std::make_unique<ThreadPools>();
  pools->of[slot] = std::move(pool);
}

bool keep_pinned(Stream stream, const void* data) {
  std::shared_ptr<Capture> capture = capture_of(stream);
  void* block = pinned_keep(data);
  if (!block) return false;
  std::lock_guard lock(capture->mutex);
  capture->pinned.push_back(block);
  return true;
}

CapturedDraw draw_in(Capture& capture, const DrawSource& source, bool lists, uint64_t counters) {
  std::lock_guard lock(capture.mutex);
  auto found = std::ranges::find_if(
      capture.draws, [&](const Capture::Draws& each) { return each.source.id == source.id; });
  if (found == capture.draws.end()) {
    CHECK(lists,
          "a CUDA graph draws from a generator that it does not know. Call "
          "graph.register_generator_state(generator) before the capture.");
    found = capture.draws.insert(found, {source});
  }
  if (!found->start) {
    activate(capture.stream.device);
    RelaxedCapture relaxed;
    check(driver().cuMemAlloc_v2(&found->start, 2 * sizeof(uint64_t)), "cuMemAlloc");
  }
  CapturedDraw draw{reinterpret_cast<const uint64_t*>(found->start), found->counters};
  found->counters += counters;
  return draw;
}

RelaxedCapture::RelaxedCapture() : changed_(any_capture()), mode_before_(kCaptureRelaxed) {
  if (changed_)
    check(driver().cuThreadExchangeStreamCaptureMode(&mode_before_),
          "cuThreadExchangeStreamCaptureMode");
}

RelaxedCapture::~RelaxedCapture() {
  if (changed_) driver().cuThreadExchangeStreamCaptureMode(&mode_before_);
}

// ---- graphs ------------------------------------------------------------------------------------

Graph::Graph() { require(); }

Graph::~Graph() {
  abandon();
  try {
    reset();
  } catch (const std::exception&) {
    // At exit the driver may be gone; then its error says nothing new.
  }
}

void Graph::register_source(DrawSource source) { sources_.push_back(std::move(source)); }

void Graph::capture_begin(std::optional<PoolId> pool, CaptureMode mode) {
  CHECK(!is_open_ && !graph_ && !exec_,
        "CUDAGraph.capture_begin: this graph holds a capture already. Call reset() first, or make "
        "another CUDAGraph.");
  Stream stream = current_stream(current_device());
  CHECK(stream != default_stream(stream.device),
        "CUDAGraph.capture_begin: CUDA graphs must be captured on a non-default stream. Enter one "
        "with torch.cuda.stream(torch.cuda.Stream()), or use torch.cuda.graph(), which does.");
  CHECK(!is_capturing(stream),
        "CUDAGraph.capture_begin: the stream captures another graph already. End that first.");
  auto capture =
      std::make_shared<Capture>(stream, PrivatePool::named(pool.value_or(new_pool_id(false))));
  for (const DrawSource& source : sources_) capture->draws.push_back({source});
  activate(stream.device);
  check(driver().cuStreamBeginCapture_v2(stream.handle, int(mode)), "cuStreamBeginCapture");
  capture_ = capture;
  is_open_ = true;
  try {
    int status = 0;
    check(driver().cuStreamGetCaptureInfo_v2(stream.handle, &status, &capture->id, nullptr, nullptr,
                                             nullptr),
          "cuStreamGetCaptureInfo");
    std::lock_guard lock(captures().mutex);
    captures().open.push_back(capture);
    ++captures_underway;
  } catch (...) {
    abandon();
    throw;
  }
}

void Graph::capture_end(bool keeps) {
  CHECK(is_open_, "CUDAGraph.capture_end: no capture goes on. Call capture_begin() first.");
  Stream stream = capture_->stream;
  CHECK(current_stream(current_device()) == stream,
        "CUDAGraph.capture_end: capture must end on the same stream it began on.");
  is_open_ = false;
  activate(stream.device);
  CUresult result = driver().cuStreamEndCapture(stream.handle, &graph_);
  close(capture_);
  if (result != kSuccess || !graph_) {
    capture_.reset();
    check(result, "cuStreamEndCapture");
    detail::fail("CUDAGraph.capture_end: the capture was spoilt by an earlier error.");
  }
  if (!keeps) instantiate();
}

void Graph::abandon() noexcept {
  if (!is_open_) return;
  is_open_ = false;
  if (!is_forked_child()) {
    CUgraph graph = nullptr;
    driver().cuStreamEndCapture(capture_->stream.handle, &graph);
    if (graph) driver().cuGraphDestroy(graph);
  }
  close(capture_);
  capture_.reset();
}

void Graph::instantiate() {
  CHECK(graph_,
        "CUDAGraph.instantiate: there is no captured graph to make ready. Capture one "
        "first, with keep_graph=True.");
  activate(capture_->stream.device);
  if (exec_)
    check(driver().cuGraphExecDestroy(std::exchange(exec_, nullptr)), "cuGraphExecDestroy");
  check(driver().cuGraphInstantiateWithFlags(&exec_, graph_, 0), "cuGraphInstantiate");
}

void Graph::check_captured(const char* op) const {
  CHECK(capture_ && !is_open_, "CUDAGraph.", op, ": Called CUDAGraph::", op,
        " without a preceding successful capture. Capture work into "
        "the graph first, with torch.cuda.graph().");
}

void Graph::replay() {
  check_captured("replay");
  if (!exec_) instantiate();
  int device = capture_->stream.device;
  DeviceGuard guard(device);
  refuse_capture(current_stream(device), "replays a graph", "CUDAGraph.replay");
  for (Capture::Draws& each : capture_->draws) {
    if (!each.start) continue;
    std::array<uint64_t, 2> begin = each.source.take(each.counters);
    set_start.launch({1}, {1}, 0, reinterpret_cast<uint64_t*>(each.start), begin[0], begin[1]);
  }
  activate(device);
  check(driver().cuGraphLaunch(exec_, current_stream(device).handle), "cuGraphLaunch");
}

void Graph::reset() {
  CHECK(!is_open_, "CUDAGraph.reset: the graph is being captured. End the capture first.");
  if (!is_forked_child()) {
    // What still runs goes on; its memory is waited for when the pool is given back.
    if (exec_)
      check(driver().cuGraphExecDestroy(std::exchange(exec_, nullptr)), "cuGraphExecDestroy");
    if (graph_) check(driver().cuGraphDestroy(std::exchange(graph_, nullptr)), "cuGraphDestroy");
  }
  capture_.reset();
}

void Graph::debug_dump(const std::string& path) const {
  CHECK(graph_, "CUDAGraph.debug_dump: there is no captured graph to write.");
  constexpr unsigned kVerbose = 1;
  check(driver().cuGraphDebugDotPrint(graph_, path.c_str(), kVerbose), "cuGraphDebugDotPrint");
}

size_t Graph::nodes() const {
  size_t count = 0;
  if (graph_) check(driver().cuGraphGetNodes(graph_, nullptr, &count), "cuGraphGetNodes");
  return count;
}

PoolId Graph::pool() const {
  CHECK(capture_,
        "CUDAGraph.pool: Called CUDAGraph::pool() without a preceding successful "
        "capture.");
  return capture_->pool->id();
}

}  // namespace cuda
}  // namespace rushlight
