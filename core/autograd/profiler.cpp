#include "core/autograd/profiler.h"

#include <chrono>

#include "core/device/allocator.h"

namespace rushlight {

int64_t profiler_clock() {
  auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

int64_t Profile::begin(std::string name, RangeKind kind) {
  ProfiledRange range{.name = std::move(name), .kind = kind, .start = 0, .parent = innermost};
  if (notes_memory) range.allocated = -cpu_memory_stats().allocated;
  if (notes_sites) range.site = current_call_site;
  innermost = int64_t(ranges.size());
  ranges.push_back(std::move(range));
  ranges.back().start = profiler_clock();  // last, so that noting is not part of the range
  return innermost;
}

void Profile::end(int64_t index) {
  int64_t now = profiler_clock();
  ProfiledRange& range = ranges[size_t(index)];
  range.end = now;
  if (notes_memory) range.allocated += cpu_memory_stats().allocated;
  innermost = range.parent;
}

void start_profile(bool notes_shapes, bool notes_memory, bool notes_sites) {
  CHECK(!current_profile, "Profiler is already enabled on this thread. Stop it first.");
  current_profile = new Profile{
      .notes_shapes = notes_shapes, .notes_memory = notes_memory, .notes_sites = notes_sites};
  call_watch.watchers |= kWatchedByProfiler;
}

std::unique_ptr<Profile> stop_profile() {
  CHECK(current_profile, "Profiler is not enabled on this thread. Start it first.");
  call_watch.watchers &= uint8_t(~kWatchedByProfiler);
  std::unique_ptr<Profile> profile(std::exchange(current_profile, nullptr));
  int64_t now = profiler_clock();
  for (ProfiledRange& range : profile->ranges)
    if (range.end < 0) range.end = now;
  return profile;
}

ProfiledScope::ProfiledScope(const std::string& name, RangeKind kind) : profile_(current_profile) {
  if (profile_) range_ = profile_->begin(name, kind);
}

}  // namespace rushlight
