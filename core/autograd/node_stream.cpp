#include "core/autograd/node_stream.h"

#include <atomic>
#include <mutex>
#include <unordered_map>

#include "core/device/cuda.h"
#include "core/device/cuda_capture.h"
#include "core/device/cuda_memory.h"
#include "core/tensor/lift.h"

namespace rushlight {
namespace {

// Never destroyed, because nodes may die after static objects.
struct Noted {
  std::mutex mutex;
  std::unordered_map<const Node*, cuda::Stream> streams;
};
Noted& noted() {
  static auto* noted = new Noted;
  return *noted;
}
std::atomic<int64_t> noted_count{0};

cuda::Stream stream_of(const Node& node, int device) {
  if (noted_count.load(std::memory_order_relaxed) > 0) {
    std::lock_guard lock(noted().mutex);
    auto found = noted().streams.find(&node);
    if (found != noted().streams.end() && found->second.device == device) return found->second;
  }
  return cuda::default_stream(device);
}

// Memory that was allocated on one stream is used on another, which will wait for it.
void share(std::span<const Tensor> tensors, cuda::Stream stream) {
  for (const Tensor& tensor : tensors) {
    bool is_there = tensor.defined() && !is_lifted(tensor) && !tensor.is_sparse() &&
                    tensor.device().is_cuda() && tensor.device().index == stream.device;
    if (!is_there) continue;
    tensor.storage()->data();  // is queued now, if it was deferred
    cuda::record_stream(tensor.storage()->cuda_block(), stream);
  }
}

}  // namespace

void note_stream(const Node& node) {
  cuda::Stream stream = cuda::current_stream(cuda::current_device());
  if (!stream.handle) return;
  std::lock_guard lock(noted().mutex);
  noted().streams[&node] = stream;
  ++noted_count;
}

void forget_stream(const Node& node) {
  if (noted_count.load(std::memory_order_relaxed) == 0) return;
  std::lock_guard lock(noted().mutex);
  noted_count -= int64_t(noted().streams.erase(&node));
}

NodeStream::NodeStream(const Node& node, TensorList grads) {
  if (node.edges.empty() || node.results.empty() || !node.results[0].device.is_cuda()) return;
  int device = node.results[0].device.index;
  callers_ = cuda::current_stream(device);
  own_ = stream_of(node, device);
  // What is captured into a graph goes to the streams of the capture.
  if (own_ == callers_ || cuda::is_capturing(callers_)) return;
  share(grads, own_);
  cuda::order(callers_, own_);
  guard_.emplace(own_);
}

void NodeStream::finish(std::span<const Tensor> input_grads) {
  if (!guard_) return;
  guard_.reset();
  share(input_grads, callers_);
  cuda::order(own_, callers_);
}

}  // namespace rushlight
