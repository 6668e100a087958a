#include "core/device/cuda_memory.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <deque>
#include <iomanip>
#include <memory>
#include <mutex>
#include <sstream>
#include <string_view>
#include <vector>

#include "core/base/ceil_div.h"
#include "core/base/error.h"
#include "core/device/cuda.h"
#include "core/device/cuda_capture.h"
#include "core/device/cuda_pinned.h"
#include "core/device/cuda_pool.h"

namespace rushlight::cuda {

struct Block {
  CUdeviceptr data;
  size_t bytes;
  Stream stream;
  int size_class;                     // -1: too large to be kept here
  Block* next;                        // of the free list, or of those in use
  std::vector<Stream> others;         // that use it too
  std::shared_ptr<PrivatePool> pool;  // null: the driver's
  Block* previous = nullptr;          // of those in use
};

namespace {

// Small blocks are kept in lists, because the driver takes 1 us to hand one out, as long as to
// launch a kernel. What is larger keeps the GPU busy for longer than that.
constexpr size_t kLargestKept = size_t(8) << 20;
constexpr size_t kMostKept = size_t(256) << 20;  // per device; the driver reuses the rest better
constexpr size_t kAlignment = 512;

// RUSHLIGHT_CUDA_CACHING=off: each block comes from the driver at its exact size and goes back at
// once, so that tools that watch memory see every mistake.
bool is_caching() {
  static const bool caching = [] {
    const char* setting = std::getenv("RUSHLIGHT_CUDA_CACHING");
    return !setting || std::string_view(setting) != "off";
  }();
  return caching;
}

// 512, 1024, 1536, 2048, then four sizes per power of two, so at most 20 % is unused.
constexpr int size_class_of(size_t bytes) {
  if (bytes > kLargestKept) return -1;
  size_t last = bytes - 1;
  int width = std::bit_width(last | 2048);
  return (width - 12) * 4 + int(last >> (width - 3));
}
constexpr size_t class_bytes(int size_class) {
  if (size_class < 4) return size_t(size_class + 1) * kAlignment;
  return size_t(size_class % 4 + 5) << (size_class / 4 + 8);
}
static_assert(size_class_of(1) == 0 && size_class_of(512) == 0 && size_class_of(513) == 1);
static_assert(size_class_of(2049) == 4 && class_bytes(4) == 2560 && size_class_of(2560) == 4);
constexpr int kClasses = size_class_of(kLargestKept) + 1;
static_assert(class_bytes(kClasses - 1) == kLargestKept);

struct MiB {
  int64_t bytes;
};
std::ostream& operator<<(std::ostream& out, MiB size) {
  return out << std::fixed << std::setprecision(2) << std::setw(12)
             << double(size.bytes) / double(1 << 20) << " MiB";
}

// The free blocks and the counts of one device.
class DeviceMemory {
 public:
  // Never destroyed, because tensors may die after static objects.
  static DeviceMemory& of(int device) {
    static auto* all = [] {
      auto* made = new std::array<DeviceMemory, kMaxDevices>;
      for (int i = 0; i < kMaxDevices; ++i) (*made)[size_t(i)].device_ = i;
      return made;
    }();
    return (*all)[slot_of(device)];
  }

  Block* allocate(size_t bytes) {
    Stream stream = current_stream(device_);
    if (std::shared_ptr<PrivatePool> pool = private_pool_for(stream)) [[unlikely]]
      return allocate_privately(bytes, stream, std::move(pool));
    int size_class = is_caching() ? size_class_of(bytes) : -1;
    {
      std::lock_guard lock(mutex_);
      if (!pending_.empty() || !deferred_.empty()) [[unlikely]]
        take_back_pending();
      if (size_class >= 0) {
        Block*& list = list_of(stream.handle)[size_t(size_class)];
        if (Block* block = list) {
          list = block->next;
          stats_.cached -= int64_t(block->bytes);
          count(int64_t(block->bytes), 1);
          return hand_out(block);
        }
      }
    }
    size_t whole = size_class >= 0 ? class_bytes(size_class) : whole_bytes(bytes);
    auto block = std::make_unique<Block>(Block{0, whole, stream, size_class, nullptr, {}, {}});
    block->data = allocate_from_driver(whole, bytes, stream);
    std::lock_guard lock(mutex_);
    count(int64_t(whole), 1);
    return hand_out(block.release());
  }

  void free(Block* block) {
    std::lock_guard lock(mutex_);
    count(-int64_t(block->bytes), -1);
    (block->previous ? block->previous->next : used_blocks_) = block->next;
    if (block->next) block->next->previous = block->previous;
    give_back(block);
  }

  std::vector<BlockInfo> blocks() {
    std::lock_guard lock(mutex_);
    std::vector<BlockInfo> all;
    auto add_chain = [&](const Block* block, bool is_used) {
      for (; block; block = block->next) {
        PoolId pool = block->pool ? block->pool->id() : PoolId{};
        all.push_back({uintptr_t(block->data),
                       block->bytes,
                       block->stream,
                       is_used,
                       {pool.first, pool.second}});
      }
    };
    add_chain(used_blocks_, true);
    for (const auto& [stream, lists] : lists_) {
      for (const Block* list : *lists) add_chain(list, false);
    }
    return all;
  }

  void limit(size_t bytes) { limit_ = bytes; }

  void reset_accumulated() {
    std::lock_guard lock(mutex_);
    for (MemoryCount* each : {&stats_.allocated, &stats_.allocations}) each->total = each->current;
    stats_.retries = stats_.out_of_memory = 0;
  }

  // Whoever uses it is told by `others`.
  void give_back(Block* block) {
    if (block->others.empty()) return keep(block);
    // An event that is recorded in a capture says nothing of the work before it.
    if (any_capture()) return deferred_.push_back(block);
    Pending& pending = pending_.emplace_back();
    pending.block = block;
    for (Stream other : block->others) {
      pending.uses.push_back(std::make_unique<Event>());
      pending.uses.back()->record(other);
    }
    block->others.clear();
  }

  void record_stream(Block* block, Stream stream) {
    std::lock_guard lock(mutex_);
    auto& others = block->others;
    if (stream == block->stream) return;
    if (std::find(others.begin(), others.end(), stream) == others.end()) others.push_back(stream);
  }

  void empty() {
    if (!used_) return;
    refuse_captures_on(device_, "gives memory back to the driver", "empty_cache");
    synchronize(device_);  // other streams may use what is pending
    {
      std::lock_guard lock(mutex_);
      take_back_pending();
      for (auto& [stream, lists] : lists_) {
        for (Block*& list : *lists) {
          while (Block* block = list) {
            list = block->next;
            stats_.cached -= int64_t(block->bytes);
            release(block);
          }
        }
      }
    }
    synchronize(device_);  // only what is freed by then can be given back
    check(driver().cuMemPoolTrimTo(pool(), 0), "cuMemPoolTrimTo");
  }

  MemoryStats stats() {
    std::lock_guard lock(mutex_);
    MemoryStats now = stats_;
    if (used_) {
      std::lock_guard reserved_lock(reserved_mutex_);
      now.reserved.current = reserved_.current + pool_attribute(kPoolReservedCurrent);
      now.reserved.peak = reserved_.peak + pool_attribute(kPoolReservedHigh);
    }
    return now;
  }

  void count_reserved(int64_t bytes) {
    std::lock_guard lock(reserved_mutex_);
    reserved_.change(bytes);
  }

  void reset_peak() {
    std::lock_guard lock(mutex_);
    stats_.allocated.peak = stats_.allocated.current;
    stats_.allocations.peak = stats_.allocations.current;
    {
      std::lock_guard reserved_lock(reserved_mutex_);
      reserved_.peak = reserved_.current;
    }
    uint64_t now = 0;  // the driver takes 0 for the current value
    if (used_)
      check(driver().cuMemPoolSetAttribute(pool(), kPoolReservedHigh, &now),
            "cuMemPoolSetAttribute");
  }

 private:
  // Freed, but other streams may still use it.
  struct Pending {
    Block* block;
    std::vector<std::unique_ptr<Event>> uses;
  };
  using Lists = std::array<Block*, kClasses>;

  void count(int64_t bytes, int64_t blocks) {
    stats_.allocated.change(bytes);
    stats_.allocations.change(blocks);
  }

  // Few streams are in use, most often one.
  Lists& list_of(CUstream stream) {
    for (auto& [known, lists] : lists_) {
      if (known == stream) return *lists;
    }
    return *lists_.emplace_back(stream, std::make_unique<Lists>()).second;
  }

  void keep(Block* block) {
    if (block->pool) {
      block->pool->give_back(block->data, block->bytes, block->stream);
      delete block;
      return;
    }
    if (block->size_class < 0 || size_t(stats_.cached) + block->bytes > kMostKept) {
      return release(block);
    }
    Block*& list = list_of(block->stream.handle)[size_t(block->size_class)];
    block->next = list;
    list = block;
    stats_.cached += int64_t(block->bytes);
  }

  // Errors say nothing new here: at exit the driver may be gone, and a failed kernel fails all.
  void release(Block* block) {
    // Its stream may be one that captures, whose graph must not free it.
    if (any_capture()) return deferred_.push_back(block);
    activate(device_);
    driver().cuMemFreeAsync(block->data, block->stream.handle);
    delete block;
  }

  void take_back_pending() {
    if (any_capture()) return;
    for (Block* block : std::exchange(deferred_, {})) give_back(block);
    auto is_done = [](const auto& use) { return use->is_done(); };
    while (!pending_.empty() && std::ranges::all_of(pending_.front().uses, is_done)) {
      keep(pending_.front().block);
      pending_.pop_front();
    }
  }

  Block* hand_out(Block* block) {
    block->previous = nullptr;
    block->next = used_blocks_;
    if (used_blocks_) used_blocks_->previous = block;
    return used_blocks_ = block;
  }

  bool is_beyond_limit(size_t bytes) {
    if (limit_ == SIZE_MAX) return false;
    std::lock_guard lock(mutex_);
    return size_t(stats_.allocated.current + stats_.cached) + bytes > limit_;
  }

  static size_t whole_bytes(size_t bytes) {
    return is_caching() ? round_up(bytes, kAlignment) : bytes;
  }

  Block* allocate_privately(size_t bytes, Stream stream, std::shared_ptr<PrivatePool> pool) {
    used_ = true;
    size_t whole = whole_bytes(bytes);
    CUdeviceptr data = pool->take(whole, stream, !is_caching());
    if (!data) {
      if (!is_capturing_on(device_)) empty();
      data = pool->take(whole, stream, !is_caching());
      if (!data) raise_out_of_memory(bytes);
    }
    auto block = std::make_unique<Block>(Block{data, whole, stream, -1, nullptr, {}, {}});
    block->pool = std::move(pool);
    std::lock_guard lock(mutex_);
    count(int64_t(whole), 1);
    return hand_out(block.release());
  }

  CUdeviceptr allocate_from_driver(size_t bytes, size_t wanted, Stream stream) {
    activate(device_);
    used_ = true;
    CUdeviceptr data = 0;
    auto ask = [&] {
      if (is_beyond_limit(bytes)) return kErrorOutOfMemory;
      return driver().cuMemAllocAsync(&data, bytes, stream.handle);
    };
    CUresult result = ask();
    if (result == kErrorOutOfMemory && !is_capturing_on(device_)) {
      empty();
      {
        std::lock_guard lock(mutex_);
        ++stats_.retries;
      }
      result = ask();
    }
    if (result == kErrorOutOfMemory) raise_out_of_memory(wanted);
    check(result, "cuMemAllocAsync");
    return data;
  }

  // Programs look for the phrases "CUDA out of memory" and "Tried to allocate".
  [[noreturn]] void raise_out_of_memory(size_t wanted) {
    {
      std::lock_guard lock(mutex_);
      ++stats_.out_of_memory;
    }
    MemoryStats now = stats();
    auto [free, total] = memory_info(device_);
    detail::fail(ErrorKind::kOutOfMemory, "CUDA out of memory. Tried to allocate ",
                 MiB{int64_t(wanted)}, " on cuda:", device_, ".\n",  //
                 "  tensors in use            ", MiB{now.allocated.current}, "\n",
                 "  at their peak             ", MiB{now.allocated.peak}, "\n",
                 "  reserved by this process  ", MiB{now.reserved.current}, "\n",
                 "  free on the device        ", MiB{int64_t(free)}, "\n",
                 "  the device has            ", MiB{int64_t(total)}, "\n",
                 "Use a smaller batch or dtype, or free tensors first.");
  }

  CUmemoryPool pool() {
    CUdevice device;
    check(driver().cuDeviceGet(&device, device_), "cuDeviceGet");
    CUmemoryPool pool;
    check(driver().cuDeviceGetDefaultMemPool(&pool, device), "cuDeviceGetDefaultMemPool");
    return pool;
  }

  int64_t pool_attribute(int which) {
    uint64_t value = 0;
    check(driver().cuMemPoolGetAttribute(pool(), which, &value), "cuMemPoolGetAttribute");
    return int64_t(value);
  }

  int device_ = 0;
  std::atomic<bool> used_{false};
  std::atomic<size_t> limit_{SIZE_MAX};
  std::mutex mutex_;
  Block* used_blocks_ = nullptr;
  std::vector<std::pair<CUstream, std::unique_ptr<Lists>>> lists_;
  std::deque<Pending> pending_;
  std::vector<Block*> deferred_;  // freed during a capture, see Note [CUDA graphs]
  MemoryStats stats_;
  std::mutex reserved_mutex_;  // a pool may die while mutex_ is held, with its last block
  MemoryCount reserved_;
};

}  // namespace

Block* allocate(size_t bytes, int device) {
  if (is_forked_child()) require();  // what is cached is the parent's
  return bytes == 0 ? nullptr : DeviceMemory::of(device).allocate(bytes);
}

void free(Block* block) noexcept {
  // A forked child has neither the memory nor, perhaps, the lock.
  if (!block || is_forked_child()) return;
  try {
    DeviceMemory::of(block->stream.device).free(block);
  } catch (const std::exception&) {
    // The device failed or is gone, and its memory with it.
  }
}

void* data(const Block* block) noexcept {
  return block ? reinterpret_cast<void*>(block->data) : nullptr;
}

void record_stream(Block* block, Stream stream) {
  if (block) DeviceMemory::of(block->stream.device).record_stream(block, stream);
}

void empty_cache() {
  for (int device = 0; device < device_count(); ++device) DeviceMemory::of(device).empty();
  pinned_empty_cache();
}

void count_reserved(int device, int64_t bytes) { DeviceMemory::of(device).count_reserved(bytes); }

MemoryStats memory_stats(int device) { return DeviceMemory::of(device).stats(); }

std::vector<BlockInfo> memory_blocks(int device) { return DeviceMemory::of(device).blocks(); }

void limit_memory(int device, size_t bytes) { DeviceMemory::of(device).limit(bytes); }

void reset_accumulated_memory_stats(int device) { DeviceMemory::of(device).reset_accumulated(); }

void reset_peak_memory_stats(int device) { DeviceMemory::of(device).reset_peak(); }

}  // namespace rushlight::cuda
