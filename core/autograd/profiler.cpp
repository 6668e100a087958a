#include "core/autograd/profiler.h"

#include <atomic>
#include <chrono>

#include "core/device/allocator.h"

namespace rushlight {
namespace {

std::atomic<int64_t> profile_count{0};

int64_t clock_now() {
  auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

}  // namespace

void Profile::begin(std::string name, RangeKind kind) {
  ProfiledRange range{.name = std::move(name), .kind = kind, .start = 0, .parent = innermost};
  if (notes_memory) range.allocated = -cpu_memory_stats().allocated;
  if (notes_sites) range.site = current_call_site;
  innermost = int64_t(ranges.size());
  ranges.push_back(std::move(range));
  ranges.back().start = clock_now();  // last, so that noting is not part of the range
}

void Profile::end(int64_t index) {
  int64_t now = clock_now();
  ProfiledRange& range = ranges[size_t(index)];
  range.end = now;
  if (notes_memory) range.allocated += cpu_memory_stats().allocated;
  innermost = range.parent;
}

void start_profile(bool notes_shapes, bool notes_memory, bool notes_sites) {
  CHECK(!current_profile, "Profiler is already enabled on this thread. Stop it first.");
  current_profile = new Profile{.number = profile_count++,
                                .notes_shapes = notes_shapes,
                                .notes_memory = notes_memory,
                                .notes_sites = notes_sites};
  call_watch.watchers |= kWatchedByProfiler;
}

std::unique_ptr<Profile> stop_profile() {
  CHECK(current_profile, "Profiler is not enabled on this thread. Start it first.");
  call_watch.watchers &= uint8_t(~kWatchedByProfiler);
  std::unique_ptr<Profile> profile(std::exchange(current_profile, nullptr));
  int64_t now = clock_now();
  for (ProfiledRange& range : profile->ranges)
    if (range.end < 0) range.end = now;
  return profile;
}

RangeId begin_range(std::string name, RangeKind kind) {
  if (!current_profile) return {};
  current_profile->begin(std::move(name), kind);
  return {current_profile->number, current_profile->innermost};
}

void end_range(RangeId range) {
  bool runs = current_profile && current_profile->number == range.profile &&
              size_t(range.index) < current_profile->ranges.size();
  if (runs) current_profile->end(range.index);
}

}  // namespace rushlight
