#include "core/device/cuda_pinned.h"

#include <algorithm>
#include <bit>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "core/base/error.h"
#include "core/device/cuda.h"
#include "core/device/cuda_capture.h"

namespace rushlight::cuda {
namespace {

constexpr size_t kSmallest = 4096;  // a page, which is pinned as a whole

struct PinnedBlock {
  void* data;
  size_t bytes;
  bool is_used;
  int keepers;                               // CUDA graphs that copy from or to it
  std::vector<std::unique_ptr<Event>> uses;  // copies that may still run

  bool is_ready() const {
    if (keepers > 0) return false;
    for (const auto& use : uses) {
      if (!use->is_done()) return false;
    }
    return true;
  }
};

// Never destroyed, because tensors may die after static objects.
class PinnedCache {
 public:
  static PinnedCache& instance() {
    static auto* cache = new PinnedCache;
    return *cache;
  }

  void* allocate(size_t bytes) {
    bytes = std::bit_ceil(std::max(bytes, kSmallest));  // pinning is slow, so blocks fit many sizes
    {
      std::lock_guard lock(mutex_);
      for (auto& [data, block] : blocks_) {
        if (!block.is_used && block.bytes == bytes && block.is_ready()) {
          block.is_used = true;
          block.uses.clear();
          count_use(bytes, 1);
          return data;
        }
      }
    }
    activate(current_device());
    RelaxedCapture relaxed;
    void* data = nullptr;
    CUresult result = driver().cuMemAllocHost_v2(&data, bytes);
    if (result == kErrorOutOfMemory) {
      empty();
      result = driver().cuMemAllocHost_v2(&data, bytes);
    }
    check(result, "cuMemAllocHost");
    std::lock_guard lock(mutex_);
    blocks_[data] = {data, bytes, true, 0, {}};
    stats_.bytes.change(int64_t(bytes));
    stats_.blocks.change(1);
    count_use(bytes, 1);
    return data;
  }

  void free(void* data) {
    std::lock_guard lock(mutex_);
    PinnedBlock& block = blocks_.at(data);
    block.is_used = false;
    count_use(block.bytes, -1);
  }

  bool contains(const void* data) {
    std::lock_guard lock(mutex_);
    return find(data) != nullptr;
  }

  bool record(const void* data, Stream stream) {
    std::lock_guard lock(mutex_);
    PinnedBlock* block = find(data);
    if (!block) return false;
    std::erase_if(block->uses, [](const auto& use) { return use->is_done(); });
    block->uses.push_back(std::make_unique<Event>());
    block->uses.back()->record(stream);
    return true;
  }

  void* keep(const void* data) {
    std::lock_guard lock(mutex_);
    PinnedBlock* block = find(data);
    if (block) ++block->keepers;
    return block ? block->data : nullptr;
  }

  void let_go(void* data) {
    std::lock_guard lock(mutex_);
    --blocks_.at(data).keepers;
  }

  PinnedStats stats() {
    std::lock_guard lock(mutex_);
    return stats_;
  }

  void reset_stats(bool peaks, bool totals) {
    std::lock_guard lock(mutex_);
    for (MemoryCount* each :
         {&stats_.bytes_used, &stats_.blocks_used, &stats_.bytes, &stats_.blocks}) {
      if (peaks) each->peak = each->current;
      if (totals) each->total = each->current;
    }
  }

  void empty() {
    activate(current_device());  // this thread may have used no device
    std::lock_guard lock(mutex_);
    std::erase_if(blocks_, [this](const auto& entry) {
      const PinnedBlock& block = entry.second;
      if (block.is_used || !block.is_ready()) return false;
      check(driver().cuMemFreeHost(block.data), "cuMemFreeHost");
      stats_.bytes.change(-int64_t(block.bytes));
      stats_.blocks.change(-1);
      return true;
    });
  }

 private:
  void count_use(size_t bytes, int blocks) {
    stats_.bytes_used.change(blocks * int64_t(bytes));
    stats_.blocks_used.change(blocks);
  }

  PinnedBlock* find(const void* data) {
    auto after = blocks_.upper_bound(const_cast<void*>(data));
    if (after == blocks_.begin()) return nullptr;
    PinnedBlock& block = std::prev(after)->second;
    return data < static_cast<char*>(block.data) + block.bytes ? &block : nullptr;
  }

  std::mutex mutex_;
  std::map<void*, PinnedBlock> blocks_;  // by address
  PinnedStats stats_;
};

}  // namespace

void* pinned_allocate(size_t bytes) {
  require();
  return bytes == 0 ? nullptr : PinnedCache::instance().allocate(bytes);
}

void pinned_free(void* data) noexcept {
  // A forked child has neither the memory nor, perhaps, the lock.
  if (data && !is_forked_child()) PinnedCache::instance().free(data);
}

bool is_pinned(const void* data) noexcept {
  return is_initialized() && PinnedCache::instance().contains(data);
}

bool pinned_record(const void* data, Stream stream) {
  return PinnedCache::instance().record(data, stream);
}

void* pinned_keep(const void* data) { return PinnedCache::instance().keep(data); }

void pinned_let_go(void* block) noexcept {
  if (!is_forked_child()) PinnedCache::instance().let_go(block);
}

PinnedStats pinned_stats() { return PinnedCache::instance().stats(); }

void reset_pinned_stats(bool peaks, bool totals) {
  PinnedCache::instance().reset_stats(peaks, totals);
}

void pinned_empty_cache() {
  if (is_initialized()) PinnedCache::instance().empty();
}

}  // namespace rushlight::cuda
