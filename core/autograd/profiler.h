// Owns the profiler: which ops, nodes of the tape and named ranges ran on a thread, when and for
// how long. Python turns what was noted into tables and traces (rushlight/profiler).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/autograd/call_watch.h"
#include "core/base/call_site.h"
#include "core/tensor/tensor.h"

namespace rushlight {

enum class RangeKind : uint8_t { op, backward, user };

struct ProfiledRange {
  std::string name;
  RangeKind kind;
  int64_t start, end = -1;  // nanoseconds of a steady clock; end < 0 while it runs
  int64_t parent;           // the range around it, or -1
  int64_t allocated = 0;    // bytes allocated minus bytes freed, where memory is noted
  std::vector<Shape> shapes{};
  CallSite site{};
};

struct Profile {
  bool notes_shapes = false, notes_memory = false, notes_sites = false;
  std::vector<ProfiledRange> ranges{};
  int64_t innermost = -1;

  int64_t begin(std::string name, RangeKind kind);
  void end(int64_t range);
};

// The profile of this thread, or null.
[[gnu::tls_model("initial-exec")]] inline constinit thread_local Profile* current_profile = nullptr;

int64_t profiler_clock();
// Begins or ends profiling on this thread.
void start_profile(bool notes_shapes, bool notes_memory, bool notes_sites);
std::unique_ptr<Profile> stop_profile();

// A range for a scope, where this thread is profiled.
class ProfiledScope {
 public:
  ProfiledScope(const std::string& name, RangeKind kind);
  ~ProfiledScope() {
    if (profile_ && profile_ == current_profile) profile_->end(range_);
  }
  ProfiledScope(const ProfiledScope&) = delete;
  ProfiledScope& operator=(const ProfiledScope&) = delete;

 private:
  Profile* profile_;
  int64_t range_ = -1;
};

}  // namespace rushlight
