#include "tests/shim/races.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <unordered_map>
#include <vector>

#include "tests/shim/memory.h"

namespace shim {
namespace {

constexpr unsigned kWarp = 32, kWarps = 32;
constexpr size_t kPage = 4096;

// The last of its kind. A span is what a block does between two barriers; blocks run one after
// another, so that a span before the block's first one is another block's.
struct Trace {
  uint32_t span = 0;
  uint16_t meeting = 0;  // how often the warp had met in this span
  uint16_t thread : 10 = 0;
  uint16_t by_lanes : 1 = 0;  // of the same warp
  uint16_t by_warps : 1 = 0;
  uint16_t by_blocks : 1 = 0;
  uint16_t is_atomic : 1 = 0;
};
struct Byte {
  Trace write, read;
};
using Page = std::array<Byte, kPage>;

struct Range {
  const char* begin = nullptr;
  std::vector<Byte> bytes;

  Byte* find(const char* address) {
    size_t at = size_t(address - begin);
    return at < bytes.size() ? &bytes[at] : nullptr;
  }
};

struct Watch {
  // Spans are never used twice, so that what was noted before a launch means nothing.
  uint32_t span = 0, first_of_launch = 0, first_of_block = 0;
  uint16_t meetings[kWarps] = {};
  Range static_shared, dynamic_shared;
  std::unordered_map<uintptr_t, std::unique_ptr<Page>> pages;
  uintptr_t last_number = 0;
  Page* last_page = nullptr;
  // A second write: it must leave these bytes as they are.
  const char* again = nullptr;
  std::string bytes, wrong;
} watch;

void begin_span() {
  ++watch.span;
  std::fill(std::begin(watch.meetings), std::end(watch.meetings), uint16_t(0));
}

Byte* byte_of(const char* address) {
  if (Byte* found = watch.static_shared.find(address)) return found;
  if (Byte* found = watch.dynamic_shared.find(address)) return found;
  if (!device_memory.is_within(address)) return nullptr;
  uintptr_t number = reinterpret_cast<uintptr_t>(address) / kPage;
  if (number != watch.last_number || !watch.last_page) {
    std::unique_ptr<Page>& page = watch.pages[number];
    if (!page) page = std::make_unique<Page>();
    watch.last_number = number;
    watch.last_page = page.get();
  }
  return &(*watch.last_page)[reinterpret_cast<uintptr_t>(address) % kPage];
}

// What is wrong with touching what another has touched, or null.
const char* conflict(const Trace& before, unsigned thread, Touch how) {
  if (before.span < watch.first_of_launch || (before.is_atomic && how == Touch::kAtomic))
    return nullptr;
  if (before.by_blocks || before.span < watch.first_of_block) return "another block";
  if (before.span != watch.span) return nullptr;
  if (before.by_warps || before.thread / kWarp != thread / kWarp)
    return "another warp, with no barrier between";
  if (before.meeting != watch.meetings[thread / kWarp]) return nullptr;
  if (before.by_lanes || before.thread != thread)
    return "another lane of the warp, with no __syncwarp() between";
  return nullptr;
}

void note(Trace& trace, unsigned thread, Touch how) {
  Trace before = trace;
  trace.span = watch.span;
  trace.meeting = watch.meetings[thread / kWarp];
  trace.thread = uint16_t(thread);
  trace.is_atomic = how == Touch::kAtomic;
  trace.by_lanes = trace.by_warps = trace.by_blocks = 0;
  if (before.span < watch.first_of_launch) return;
  trace.by_blocks = before.by_blocks || before.span < watch.first_of_block;
  if (before.span != watch.span) return;
  bool same_warp = before.thread / kWarp == thread / kWarp;
  trace.by_warps = before.by_warps || !same_warp;
  trace.by_lanes =
      same_warp && before.meeting == trace.meeting && (before.by_lanes || before.thread != thread);
}

}  // namespace

bool watches_races() {
  static const bool watches = std::getenv("RUSHLIGHT_SHIM_RACES") != nullptr;
  return watches;
}

void watch_launch() {
  begin_span();
  watch.first_of_launch = watch.span;
  watch.pages.clear();
  watch.last_page = nullptr;
}

void watch_block(const char* static_shared, size_t static_bytes, const char* dynamic_shared,
                 size_t dynamic_bytes) {
  begin_span();
  watch.first_of_block = watch.span;
  watch.static_shared.begin = static_shared;
  watch.dynamic_shared.begin = dynamic_shared;
  watch.static_shared.bytes.assign(static_bytes, {});  // another block's is other memory
  watch.dynamic_shared.bytes.assign(dynamic_bytes, {});
}

void order_block() { begin_span(); }

void order_warp(unsigned warp) { ++watch.meetings[warp]; }

std::string last_touch() {
  if (!watch.again) return "";
  bool same = std::memcmp(watch.again, watch.bytes.data(), watch.bytes.size()) == 0;
  watch.again = nullptr;
  return same ? "" : watch.wrong;
}

std::string touch(const void* address, size_t size, Touch how, unsigned thread) {
  if (watch.again) {
    if (std::string wrong = last_touch(); !wrong.empty()) return wrong;
  }
  const char* begin = static_cast<const char*>(address);
  for (size_t i = 0; i < size; ++i) {
    Byte* byte = byte_of(begin + i);
    if (!byte) return "";
    const char* by = conflict(byte->write, thread, how);
    const char* done = "written";
    if (!by && how != Touch::kRead) {
      by = conflict(byte->read, thread, how);
      done = "read";
    }
    if (by) {
      char text[200];
      const Trace& before = done[0] == 'w' ? byte->write : byte->read;
      std::snprintf(text, sizeof text, "%s %s, %zu bytes, which %s has %s (thread %u, last)",
                    how == Touch::kRead ? "reads" : "writes",
                    device_memory.is_within(begin) ? "device memory" : "shared memory", size, by,
                    done, unsigned(before.thread));
      if (how != Touch::kWrite || done[0] != 'w') return text;
      watch.again = begin;
      watch.bytes.assign(begin, size);
      watch.wrong = "(or thread " + std::to_string(thread) + ") " + text;
    }
    if (how != Touch::kRead) note(byte->write, thread, how);
    if (how != Touch::kWrite) note(byte->read, thread, how);
  }
  return "";
}

}  // namespace shim
