// Defines saving, the version check and its message.
#include "core/autograd/saved_tensor.h"

#include "core/autograd/call_watch.h"
#include "core/autograd/needs.h"
#include "core/autograd/unpacked.h"
#include "core/tensor/tile_loop.h"

namespace rushlight {
namespace {

std::string at_line(CallSite site) {
  std::string line = describe_call_site(site);
  return line.empty() ? "" : " (" + line + ")";
}

// Says that backward alone reads this window, so that a deferred storage may stay so until then.
void mark_saved(const Tensor& window) {
  window.impl()->saved = true;
  window.storage()->saved_windows.fetch_add(1, std::memory_order_relaxed);
}

// Modes are shown the copy: a graph of the ops that they see computes gradients from it.
Tensor copy_of(const Tensor& tensor) {
  bool is_watched = call_watch.watchers & kWatchedByModes;
  if (!tensor.is_hollow() && !is_watched) return clone_dense(tensor, MemoryFormat::preserve);
  GradModeGuard unrecorded(false);
  return needs::clone(tensor);
}

// A program may give a tensor other .data, which is no write in place. Gradients then read the new
// data, if it has the old shape and dtype. So slot_ of an input holds which storage it had, in the
// low bits, and which shape and dtype, in the high ones. Two storages may have the same low bits;
// then versions are compared as if nothing had been replaced, and backward may refuse.
constexpr uint32_t kStorageBits = 0xFFFF;

uint32_t identity_of(const Tensor& t) {
  auto layout = static_cast<uint32_t>(t.dtype());
  for (int64_t size : t.sizes()) layout = (layout + uint32_t(size) + 1) * 0x9E3779B1u;
  auto address = reinterpret_cast<uintptr_t>(&*t.storage());
  return (layout & ~kStorageBits) | (uint32_t(address >> 4) & kStorageBits);
}

[[noreturn]] void refuse_backward(std::string why) {
  Error error(ErrorKind::kRuntime, std::move(why));
  error.name_op("backward");
  throw error;
}

[[noreturn]] void refuse_freed() {
  refuse_backward(
      "Trying to backward through the graph a second time (or directly access saved tensors "
      "after they have already been freed). Saved intermediate values of the graph are freed "
      "when you call .backward() or autograd.grad(). Specify retain_graph=True if you need to "
      "backward through the graph a second time or if you need to access saved tensors after "
      "calling backward.");
}

[[noreturn]] void refuse_replaced(const Node& owner) {
  refuse_backward(owner.op() + std::string(" saved its input") + at_line(owner.site) +
                  ", but its .data was replaced by a tensor of another shape or dtype "
                  "afterwards. Gradients read it as it was. Replace .data after backward.");
}

[[noreturn]] void refuse_changed(const Node& owner, const char* what, const StorageImpl& storage,
                                 uint32_t expected) {
  std::string op = owner.op();
  refuse_backward(
      op + " saved its " + what + at_line(owner.site) + ", but " + storage.last_writer() +
      " changed it in place afterwards" + at_line(storage.last_write_site()) +
      ". One of the variables needed for gradient computation has been modified by an "
      "inplace operation: it is at version " +
      std::to_string(storage.version()) + "; expected version " + std::to_string(expected) +
      " instead. Write y = y + 1 in place of y += 1, or clone before " + op + ".");
}

// Puts the window where the tensor was on the tape.
void tie(const Tensor& window, NodePtr node, uint32_t slot) {
  AutogradMeta& meta = get_meta(window);
  meta.grad_fn = std::move(node);
  meta.slot = slot;
  window.impl()->requires_grad = true;
}

}  // namespace

SavedTensor SavedTensor::input(const Tensor& tensor, bool overwritten) {
  SavedTensor saved;
  saved.kind_ = !tensor.defined() ? Kind::undefined : overwritten ? Kind::overwritten : Kind::input;
  if (!tensor.defined()) return saved;
  CHECK(!tensor.impl()->inference || grad_mode.saves_inference,
        "Inference tensors cannot be saved for backward. To work around you can "
        "make a clone to get a normal tensor and use it in autograd.");
  if (tensor.storage()->deferred() && !overwritten && !saving_hooks) [[unlikely]] {
    saved.kind_ = Kind::window;
    saved.tensor_ = shallow_copy(tensor);
    mark_saved(saved.tensor_);
  } else {
    saved.tensor_ = overwritten ? copy_of(tensor) : tensor;
  }
  if (saved.kind_ != Kind::input) saved.history_ = gradient_edge(tensor);
  saved.version_ = saved.tensor_.storage()->version();
  saved.slot_ = identity_of(saved.tensor_);
  if (saving_hooks) [[unlikely]]
    saved.pack_hooked(tensor);
  return saved;
}

SavedTensor SavedTensor::result(const Tensor& tensor, uint32_t slot) {
  SavedTensor saved;
  saved.kind_ = Kind::result;
  saved.tensor_ = detach(tensor);
  if (tensor.storage()->deferred() && !saving_hooks) [[unlikely]]
    mark_saved(saved.tensor_);
  saved.version_ = tensor.storage()->version();
  saved.slot_ = slot;
  if (saving_hooks) [[unlikely]]
    saved.pack_hooked(tensor);
  return saved;
}

void SavedTensor::pack_hooked(const Tensor& tensor) {
  pack_by([](const Tensor& t) { return saving_hooks->pack(t); }, tensor);
}

void SavedTensor::pack_by(const Pack& pack, const Tensor& tensor) {
  if (tensor.impl()->wrapped_number) return;
  if (kind_ == Kind::input) history_ = gradient_edge(tensor);
  const Storage storage = tensor_.storage();
  uint32_t version = storage->version();
  {
    GradModeGuard unrecorded(false);
    packed_ = pack(tensor_);
  }
  CHECK(storage->version() == version,
        "A saved tensor pack hook is modifying its input in place. Tensors provided as input to "
        "pack hook can not be modified by in-place operations. Write to a clone.");
  packed_->sizes = tensor_.sizes();
  packed_->dtype = tensor_.dtype();
  packed_->device = tensor_.device();
  tensor_ = {};
}

void SavedTensor::pack_now(const Pack& pack) {
  CHECK(kind_ != Kind::released && kind_ != Kind::none,
        "Calling register_hooks on a saved tensor after it has been freed. Saved intermediate "
        "values of the graph are freed when you call .backward() or autograd.grad(). Specify "
        "retain_graph=True if you need them afterwards.");
  CHECK(kind_ != Kind::undefined,
        "Calling register_hooks on a saved tensor with value None is forbidden.");
  CHECK(!packed_,
        "Calling register_hooks on a saved tensor whose hooks have already been set. Only one pair "
        "of hooks is allowed.");
  pack_by(pack, Tensor(tensor_));
}

Tensor SavedTensor::unpack_by_hooks(PackedTensor& packed) {
  Tensor tensor = UnpackedScope::unpack(packed);
  CHECK(tensor.sizes() == packed.sizes && tensor.dtype() == packed.dtype &&
            tensor.device() == packed.device,
        "a saved tensor unpack hook returned a ", dtype_name(tensor.dtype()), " tensor of shape ",
        tensor.sizes(), " on ", tensor.device(), ", but a ", dtype_name(packed.dtype),
        " tensor of shape ", packed.sizes, " on ", packed.device,
        " was saved. It must return a tensor like that.");
  return tensor;
}

Tensor SavedTensor::unpack(const Node& owner) const {
  std::unique_lock lock(lock_);
  Kind kind = kind_;
  Tensor tensor = tensor_;
  IntrusivePtr<PackedTensor> packed = packed_;
  Edge history = history_;
  lock.unlock();
  if (kind == Kind::undefined) return {};
  if (kind == Kind::released || kind == Kind::none) refuse_freed();
  if (kind == Kind::input && !packed)
    if (uint32_t changed = identity_of(tensor) ^ slot_; changed & kStorageBits) {
      if (changed & ~kStorageBits) refuse_replaced(owner);
      return tensor;
    }
  if (!packed && tensor.storage()->version() != version_)
    refuse_changed(owner, kind == Kind::result ? "result" : "input", *tensor.storage(), version_);
  if (kind == Kind::input && !packed) return tensor;
  Tensor window = shallow_copy(packed ? unpack_by_hooks(*packed) : tensor);
  if (kind == Kind::result) tie(window, NodePtr::share(const_cast<Node*>(&owner)), slot_);
  else if (history.node) tie(window, history.node, history.slot);
  return window;
}

void SavedTensor::reset() {
  Tensor tensor;  // these are freed without the lock
  IntrusivePtr<PackedTensor> packed;
  Edge history;
  std::lock_guard lock(lock_);
  if (kind_ == Kind::none) return;
  std::swap(tensor, tensor_);
  std::swap(packed, packed_);
  std::swap(history, history_);
  kind_ = Kind::released;
}

}  // namespace rushlight
