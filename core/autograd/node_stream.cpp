#include "core/autograd/node_stream.h"

#include "core/device/cuda_capture.h"
#include "core/device/cuda_memory.h"
#include "core/tensor/lift.h"

namespace rushlight {
namespace {

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

NodeStream::NodeStream(const Node& node, TensorList grads) {
  if (node.edges.empty() || node.results.empty() || !node.results[0].device.is_cuda()) return;
  int device = node.results[0].device.index;
  callers_ = cuda::current_stream(device);
  own_ = node.stream.device == device ? node.stream : cuda::default_stream(device);
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
