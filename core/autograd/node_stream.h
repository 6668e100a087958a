// Owns that the backward of a node is queued on the CUDA stream on which its op was.
//
// What an op saves is written on the stream of the op, and whoever calls backward may have another
// current one. So a node runs on its own stream, after what the caller's stream does by then, and
// the caller's stream waits for it. Leaves, which save nothing, run on the caller's stream.
#pragma once

#include <optional>
#include <span>

#include "core/autograd/node.h"
#include "core/device/cuda_stream.h"

namespace rushlight {

// While it lives, the current stream is that of a node.
class NodeStream {
 public:
  NodeStream(const Node& node, TensorList grads);
  // Lets the caller's stream wait for what was computed.
  void finish(std::span<const Tensor> input_grads);

 private:
  std::optional<cuda::StreamGuard> guard_;
  cuda::Stream own_, callers_;
};

}  // namespace rushlight
