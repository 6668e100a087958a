// Owns SavedTensor: a tensor kept for backward, with the version it had.
//
// Note [Saved tensors and versions]
// Storage counts in-place writes. A saved tensor remembers the count; unpack() compares and, when
// they differ, names the op that saved, the op that wrote, and both lines of the user's program.
// A saved result would own the node that owns it, so only its detached window is kept, and unpack
// ties it to the node again. The input that an in-place op is about to overwrite is cloned.
// Several threads may walk one tape: one may free what another unpacks, which then raises or not.
// While the saving hooks of the user are active (saving_hooks.h), what they packed is kept in its
// place; unpack() ties what they return to the history of the tensor, and checks no version.
#pragma once

#include "core/autograd/node.h"
#include "core/autograd/saving_hooks.h"
#include "core/base/spin_lock.h"

namespace rushlight {

class SavedTensor {
 public:
  SavedTensor() = default;

  // Keeps an input of the op; `overwritten` when the op is about to write it in place.
  static SavedTensor input(const Tensor& tensor, bool overwritten);
  // Keeps result `slot` of the op.
  static SavedTensor result(const Tensor& tensor, uint32_t slot);

  // The tensor as it was; `owner` is the node that saved it, for the message and for results.
  Tensor unpack(const Node& owner) const;
  void reset();
  // Keeps what `pack` makes of it from now on, as if saving hooks had been active.
  using Pack = std::function<IntrusivePtr<PackedTensor>(const Tensor&)>;
  void pack_now(const Pack& pack);
  // Whether it was kept at all, which it is not when no gradient reads it.
  bool is_kept() const { return kind_ != Kind::none; }

 private:
  // Sends what is kept of `tensor` through the saving hooks, or through `pack`.
  void pack_hooked(const Tensor& tensor);
  void pack_by(const Pack& pack, const Tensor& tensor);
  static Tensor unpack_by_hooks(PackedTensor& packed);

  // What is kept: `overwritten` a clone of an input, `window` a window on one that is deferred.
  enum class Kind : uint8_t { none, undefined, input, overwritten, window, result, released };

  Tensor tensor_;
  IntrusivePtr<PackedTensor> packed_;  // in place of tensor_
  Edge history_;                       // of an input that is not kept itself
  uint32_t version_ = 0;
  uint32_t slot_ = 0;  // of a result; of an input what identity_of() gives
  Kind kind_ = Kind::none;
  mutable SpinLock lock_;  // of tensor_, packed_, history_ and kind_, once others can see them
};

}  // namespace rushlight
