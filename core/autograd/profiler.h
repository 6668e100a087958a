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

// Names a range of a profile; one of a profile that is over names nothing.
struct RangeId {
  int64_t profile = -1, index = -1;
};

struct Profile {
  int64_t number;  // of all profiles
  bool notes_shapes = false, notes_memory = false, notes_sites = false;
  std::vector<ProfiledRange> ranges{};
  int64_t innermost = -1;

  void begin(std::string name, RangeKind kind);
  void end(int64_t index);
};

// The profile of this thread, or null.
[[gnu::tls_model("initial-exec")]] inline constinit thread_local Profile* current_profile = nullptr;

// Begins or ends a range where this thread is profiled. In between the profile may have become
// another one, as a hook or a step of a schedule makes it.
RangeId begin_range(std::string name, RangeKind kind);
void end_range(RangeId range);

// Begins or ends profiling on this thread.
void start_profile(bool notes_shapes, bool notes_memory, bool notes_sites);
std::unique_ptr<Profile> stop_profile();

// A range for a scope, where this thread is profiled.
class ProfiledScope {
 public:
  ProfiledScope(std::string name, RangeKind kind) : range_(begin_range(std::move(name), kind)) {}
  ~ProfiledScope() { end_range(range_); }
  ProfiledScope(const ProfiledScope&) = delete;
  ProfiledScope& operator=(const ProfiledScope&) = delete;

 private:
  RangeId range_;
};

}  // namespace rushlight
