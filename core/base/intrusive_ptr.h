// Owns RefCounted and IntrusivePtr: shared ownership with the count inside the object.
//
// One word per handle, so a Tensor is as cheap to pass as a pointer. Counts are atomic.
#pragma once

#include <atomic>
#include <cstddef>
#include <utility>

namespace rushlight {

class RefCounted {
 public:
  RefCounted() = default;
  RefCounted(const RefCounted&) = delete;
  RefCounted& operator=(const RefCounted&) = delete;

  void retain() const { count_.fetch_add(1, std::memory_order_relaxed); }
  // Adds a reference unless the last one is gone and the object is being destroyed.
  bool try_retain() const {
    size_t count = count_.load(std::memory_order_relaxed);
    while (count != 0)
      if (count_.compare_exchange_weak(count, count + 1, std::memory_order_acquire)) return true;
    return false;
  }
  // True when the caller held the last reference and must destroy the object.
  bool release() const { return count_.fetch_sub(1, std::memory_order_acq_rel) == 1; }
  size_t use_count() const { return count_.load(std::memory_order_acquire); }

 protected:
  ~RefCounted() = default;

 private:
  mutable std::atomic<size_t> count_{1};
};

// T must provide `static void destroy(T*)`: called once, when the last reference goes.
template <class T>
class IntrusivePtr {
 public:
  IntrusivePtr() = default;
  IntrusivePtr(std::nullptr_t) {}
  // Takes over the reference that the object was born with.
  static IntrusivePtr adopt(T* object) {
    IntrusivePtr p;
    p.object_ = object;
    return p;
  }
  // Adds a reference to an object that somebody else keeps alive.
  static IntrusivePtr share(T* object) {
    if (object) object->retain();
    return adopt(object);
  }
  IntrusivePtr(const IntrusivePtr& other) : object_(other.object_) {
    if (object_) object_->retain();
  }
  IntrusivePtr(IntrusivePtr&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  IntrusivePtr& operator=(IntrusivePtr other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~IntrusivePtr() { reset(); }

  void reset() {
    T* object = std::exchange(object_, nullptr);
    if (object && object->release()) T::destroy(object);
  }
  // Gives up the reference without releasing it.
  T* detach() { return std::exchange(object_, nullptr); }

  T* get() const { return object_; }
  T* operator->() const { return object_; }
  T& operator*() const { return *object_; }
  explicit operator bool() const { return object_ != nullptr; }
  friend bool operator==(const IntrusivePtr& a, const IntrusivePtr& b) {
    return a.object_ == b.object_;
  }

 private:
  T* object_ = nullptr;
};

// Gives up a reference that is not held by an IntrusivePtr, as that of a LazyPtr.
template <class T>
struct ReleaseReference {
  void operator()(T* object) const { IntrusivePtr<T>::adopt(object); }
};

}  // namespace rushlight
