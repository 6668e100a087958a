#include "core/device/cuda_pool.h"

#include <algorithm>
#include <atomic>
#include <set>

#include "core/base/ceil_div.h"
#include "core/device/cuda.h"
#include "core/device/cuda_capture.h"
#include "core/device/cuda_memory.h"

namespace rushlight::cuda {
namespace {

constexpr size_t kGranule = size_t(2) << 20;  // what the driver hands out anyway

// Small requests share segments, so that few calls of the driver are needed.
size_t segment_bytes(size_t bytes) {
  if (bytes <= kGranule / 2) return kGranule;
  if (bytes <= 5 * kGranule) return 10 * kGranule;
  return round_up(bytes, kGranule);
}

struct Names {
  std::mutex mutex;
  std::map<PoolId, std::weak_ptr<PrivatePool>> pools;
};
Names& names() {
  static auto* names = new Names;
  return *names;
}

}  // namespace

PoolId new_pool_id(bool by_user) {
  static std::atomic<uint64_t> last{0};
  uint64_t number = ++last;
  return by_user ? PoolId{0, number} : PoolId{number, 0};
}

std::shared_ptr<PrivatePool> PrivatePool::named(PoolId id) {
  std::lock_guard lock(names().mutex);
  std::erase_if(names().pools, [](const auto& entry) { return entry.second.expired(); });
  std::weak_ptr<PrivatePool>& known = names().pools[id];
  std::shared_ptr<PrivatePool> pool = known.lock();
  if (!pool) known = pool = std::make_shared<PrivatePool>(id);
  return pool;
}

PrivatePool::~PrivatePool() {
  if (is_forked_child()) return;
  // Errors say nothing new here: at exit the driver may be gone, and a failed kernel fails all.
  try {
    RelaxedCapture relaxed;
    std::set<int> waited;
    for (const auto& [data, segment] : segments_) {
      int device = segment.stream.device;
      activate(device);
      // What was queued may still use it. A device with a capture cannot be waited for, but its
      // driver waits before it takes memory. A report is for whoever waits next, who can raise it.
      bool is_first = waited.insert(device).second;
      if (is_first && !is_capturing_on(device)) driver().cuCtxSynchronize();
      driver().cuMemFree_v2(data);
      count_reserved(device, -int64_t(segment.bytes));
    }
  } catch (const std::exception&) {
  }
}

PrivatePool::Ranges& PrivatePool::ranges_of(Stream stream) {
  for (auto& [known, ranges] : free_) {
    if (known == stream) return ranges;
  }
  return free_.emplace_back(stream, Ranges{}).second;
}

CUdeviceptr PrivatePool::take(size_t bytes, Stream stream, bool apart) {
  std::lock_guard lock(mutex_);
  Ranges& ranges = ranges_of(stream);
  auto best = ranges.end();
  for (auto it = ranges.begin(); it != ranges.end(); ++it) {
    bool fits = apart ? it->second == bytes : it->second >= bytes;
    if (fits && (best == ranges.end() || it->second < best->second)) best = it;
  }
  if (best == ranges.end()) {
    Segment segment{0, apart ? bytes : segment_bytes(bytes), stream};
    activate(stream.device);
    RelaxedCapture relaxed;
    CUresult result = driver().cuMemAlloc_v2(&segment.data, segment.bytes);
    if (result == kErrorOutOfMemory && segment.bytes > bytes)
      result = driver().cuMemAlloc_v2(&segment.data, segment.bytes = bytes);
    if (result == kErrorOutOfMemory) return 0;
    check(result, "cuMemAlloc");
    count_reserved(stream.device, int64_t(segment.bytes));
    segments_.emplace(segment.data, segment);
    best = ranges.emplace(segment.data, segment.bytes).first;
  }
  auto [data, size] = *best;
  ranges.erase(best);
  if (size > bytes) ranges.emplace(data + bytes, size - bytes);
  return data;
}

void PrivatePool::give_back(CUdeviceptr data, size_t bytes, Stream stream) {
  std::lock_guard lock(mutex_);
  Ranges& ranges = ranges_of(stream);
  auto at = ranges.emplace(data, bytes).first;
  // Segments that happen to be neighbors stay apart.
  auto joins = [&](Ranges::iterator left, Ranges::iterator right) {
    if (left->first + left->second != right->first || segments_.contains(right->first))
      return false;
    left->second += right->second;
    ranges.erase(right);
    return true;
  };
  if (auto next = std::next(at); next != ranges.end()) joins(at, next);
  if (at != ranges.begin()) joins(std::prev(at), at);
}

std::vector<PrivatePool::Segment> PrivatePool::segments() const {
  std::lock_guard lock(mutex_);
  std::vector<Segment> all;
  for (const auto& [data, segment] : segments_) all.push_back(segment);
  return all;
}

}  // namespace rushlight::cuda
