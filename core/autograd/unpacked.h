// Owns what the saving hooks gave back for the node that runs.
//
// Several gradients of one op may read the same saved tensor. Its hook, which may compute it anew
// or fetch it from elsewhere, is called once for all of them.
#pragma once

#include <utility>
#include <vector>

#include "core/autograd/saving_hooks.h"

namespace rushlight {

class UnpackedScope {
 public:
  UnpackedScope() : outer_(std::exchange(innermost_, this)) {}
  ~UnpackedScope() { innermost_ = outer_; }
  UnpackedScope(const UnpackedScope&) = delete;
  UnpackedScope& operator=(const UnpackedScope&) = delete;

  // What `packed` gives, from the innermost scope of this thread if that has it.
  static Tensor unpack(PackedTensor& packed) {
    if (!innermost_) return packed.unpack();
    for (const auto& [seen, tensor] : innermost_->tensors_)
      if (seen.get() == &packed) return tensor;
    UnpackedScope* scope = innermost_;
    Tensor tensor = packed.unpack();
    scope->tensors_.push_back({IntrusivePtr<PackedTensor>::share(&packed), tensor});
    return tensor;
  }

 private:
  static inline constinit thread_local UnpackedScope* innermost_ = nullptr;

  UnpackedScope* outer_;
  std::vector<std::pair<IntrusivePtr<PackedTensor>, Tensor>> tensors_;
};

}  // namespace rushlight
