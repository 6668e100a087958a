// Owns LazyPtr: an object that is made when it is first asked for. Threads that ask for it at once
// get the same one.
#pragma once

#include <atomic>
#include <memory>
#include <utility>

namespace rushlight {

template <class T, class Delete = std::default_delete<T>>
class LazyPtr {
 public:
  LazyPtr() = default;
  ~LazyPtr() {
    if (T* object = get()) Delete()(object);
  }
  // Only while nobody else asks.
  LazyPtr& operator=(LazyPtr&& other) noexcept {
    other.object_ = object_.exchange(other.object_);
    return *this;
  }

  // `make` returns a new object, which is deleted if another thread was faster.
  template <class Make>
  T& get_or(Make make) {
    T* there = get();
    if (there) return *there;
    std::unique_ptr<T, Delete> made(make());
    return object_.compare_exchange_strong(there, made.get()) ? *made.release() : *there;
  }

  T* get() const { return object_.load(std::memory_order_acquire); }
  T* operator->() const { return get(); }
  T& operator*() const { return *get(); }
  explicit operator bool() const { return get() != nullptr; }

 private:
  std::atomic<T*> object_{nullptr};
};

}  // namespace rushlight
