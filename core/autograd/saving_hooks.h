// Owns the switch that sends tensors through the user's functions when an op saves them, and the
// one that tells of writes in place. The bindings implement both; without them each costs one test.
#pragma once

#include "core/tensor/tensor.h"

namespace rushlight {

// A saved tensor in whatever form the user gave it.
class PackedTensor : public RefCounted {
 public:
  virtual ~PackedTensor() = default;
  static void destroy(PackedTensor* packed) { delete packed; }

  virtual Tensor unpack() = 0;

  // What was packed, and so what unpack() must give back.
  Shape sizes;
  DType dtype = DType::float32;
  Device device;
};

class SavingHooks {
 public:
  virtual ~SavingHooks() = default;
  virtual IntrusivePtr<PackedTensor> pack(const Tensor& tensor) = 0;
  // Called before an op writes `tensor` in place.
  virtual void before_write(const Tensor& tensor) = 0;
};

// Of this thread; null when tensors are saved as they are.
inline constinit thread_local SavingHooks* saving_hooks = nullptr;

}  // namespace rushlight
