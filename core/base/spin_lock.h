// Owns SpinLock, which guards a few instructions that another thread may run at the same time,
// like the copy of a handle. Never held while anything is called or freed.
#pragma once

#include <atomic>
#include <thread>

namespace rushlight {

class SpinLock {
 public:
  SpinLock() = default;
  // A copy has a lock of its own, and assignment leaves both locks as they are.
  SpinLock(const SpinLock&) noexcept {}
  SpinLock& operator=(const SpinLock&) noexcept { return *this; }

  void lock() {
    while (taken_.exchange(true, std::memory_order_acquire)) std::this_thread::yield();
  }
  void unlock() { taken_.store(false, std::memory_order_release); }

 private:
  std::atomic<bool> taken_{false};
};

}  // namespace rushlight
