// Owns Storage: the bytes behind tensors on any device, shared by all their views.
//
// The version counts in-place writes, so that backward can tell whether a saved tensor changed;
// the storage also remembers who wrote last, for the message. See Note [Saved tensors and
// versions]. A deferred storage has no memory until somebody asks for it, see Note [Fusion].
#pragma once

#include <atomic>
#include <cstddef>

#include "core/base/call_site.h"
#include "core/base/intrusive_ptr.h"
#include "core/device/device.h"

namespace rushlight {
namespace cuda {
struct Block;
}

// What computes the elements of a deferred storage; defined in tensor/fusion.cpp.
class DeferredOp;

class StorageImpl : public RefCounted {
 public:
  // Frees memory that came from elsewhere, e.g. a NumPy array: called with `context`.
  using Deleter = void (*)(void* context);

  // Uninitialized memory of our own allocators; small blocks of the CPU live behind the header
  // itself. A CUDA device without an index is the current one; on meta there is no memory.
  static IntrusivePtr<StorageImpl> allocate(size_t bytes, Device device = {});
  // No memory, for a tensor whose elements are not in its storage.
  static IntrusivePtr<StorageImpl> none(Device device);
  // Memory that is allocated and filled when somebody asks for it.
  static IntrusivePtr<StorageImpl> defer(size_t bytes, Device device, DeferredOp* op);
  // Foreign memory; `readonly` refuses in-place writes.
  static IntrusivePtr<StorageImpl> wrap(void* data, size_t bytes, Device device, Deleter deleter,
                                        void* context, bool readonly);
  static void destroy(StorageImpl* storage);

  void* data() const {
    if (deferred()) [[unlikely]]
      settle();
    return data_;
  }
  // Null when the memory is there.
  DeferredOp* deferred() const { return deferred_.load(std::memory_order_acquire); }
  // How many tensors are windows on this that only backward will read, see Note [Fusion].
  std::atomic<int32_t> saved_windows{0};
  // Takes the memory of another storage, which holds the elements; there are no deferred ones then.
  void settle_with(StorageImpl& filled);
  size_t bytes() const { return bytes_; }
  Device device() const { return device_; }
  // The memory on a CUDA device, to tell which streams use it; null elsewhere, and when foreign.
  cuda::Block* cuda_block() const { return block_; }
  // Whether the elements lie here in the memory of the CPU.
  bool on_cpu() const { return on_cpu_; }
  bool readonly() const { return readonly_; }
  // Refuses in-place writes from now on.
  void freeze() { readonly_ = true; }
  bool is_foreign() const { return deleter_ != nullptr; }
  // Whether others may write the elements and tell nobody.
  bool others_may_write() const {
    return is_foreign() || borrowers_.load(std::memory_order_acquire);
  }
  // What frees foreign memory, and so what kind of memory it is; null for our own.
  Deleter deleter() const { return deleter_; }
  void* context() const { return context_; }
  // Copies the bytes to foreign memory of the same size, which takes the place of the present one.
  // Returns what holds that one, which kernels of other threads may still read. Refuses while
  // somebody borrows this.
  [[nodiscard]] IntrusivePtr<StorageImpl> move_to(void* data, Deleter deleter, void* context);
  // Grows or shrinks our own memory, keeping the common part. What it shrinks by is not given back,
  // since tensors may look there. Foreign memory cannot be resized, nor can memory that somebody
  // borrows grow.
  void resize(size_t bytes);

  uint32_t version() const { return version_.load(std::memory_order_relaxed); }
  const char* last_writer() const { return last_writer_; }
  CallSite last_write_site() const { return last_write_site_; }
  // `writer` is the name of an op: a string that lives as long as the process.
  void bump_version(const char* writer) {
    version_.fetch_add(1, std::memory_order_relaxed);
    last_writer_ = writer;
    last_write_site_ = current_call_site;
  }

 private:
  friend class BorrowedStorage;
  static IntrusivePtr<StorageImpl> allocate_elsewhere(size_t bytes, Device device);
  StorageImpl() = default;
  ~StorageImpl() = default;
  void free_data();
  void check_not_borrowed() const;
  void settle() const;

  void* data_ = nullptr;
  size_t bytes_ = 0;
  size_t capacity_ = 0;      // of our own memory; bytes_ may be less
  size_t inline_bytes_ = 0;  // the room behind the header, for life
  Deleter deleter_ = nullptr;
  void* context_ = nullptr;
  cuda::Block* block_ = nullptr;
  std::atomic<DeferredOp*> deferred_{nullptr};
  const char* last_writer_ = "";
  CallSite last_write_site_;
  std::atomic<uint32_t> version_{0};
  std::atomic<int32_t> borrowers_{0};
  Device device_;
  bool on_cpu_ = false;
  bool readonly_ = false;
};

using Storage = IntrusivePtr<StorageImpl>;

// While it lives, the memory stays alive and where it is: others have its address.
class BorrowedStorage {
 public:
  explicit BorrowedStorage(Storage storage);
  ~BorrowedStorage() { storage_->borrowers_.fetch_sub(1, std::memory_order_release); }
  BorrowedStorage(const BorrowedStorage&) = delete;

 private:
  Storage storage_;
};

}  // namespace rushlight
