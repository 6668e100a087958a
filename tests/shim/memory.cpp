// Owns the address range from which allocations are cut, one after another.
#include "tests/shim/memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace shim {
namespace {

constexpr size_t kAlignment = 16;
constexpr size_t kAddressSpace = size_t(1) << 43;
constexpr size_t kPoisonedWhole = size_t(64) << 20, kPoisonedEnd = size_t(1) << 20;

size_t page_size() {
  static const size_t size = sysconf(_SC_PAGESIZE);
  return size;
}

size_t round_up(size_t size, size_t multiple) {
  return (size + multiple - 1) / multiple * multiple;
}

bool guards_front() {
  const char* guard = std::getenv("RUSHLIGHT_SHIM_GUARD");
  return guard && std::strcmp(guard, "front") == 0;
}

bool is_poison(const char* begin, const char* end) {
  return std::all_of(begin, end, [](char c) { return static_cast<unsigned char>(c) == kPoison; });
}

// Pages that nobody may touch and that cost nothing.
void* map_nothing(void* at, size_t size, int flags) {
  return mmap(at, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | flags, -1, 0);
}

}  // namespace

DeviceMemory device_memory;

char* DeviceMemory::reserve(size_t size) {
  if (!next_) {
    void* space = map_nothing(nullptr, kAddressSpace, 0);
    if (space == MAP_FAILED) return nullptr;
    begin_ = next_ = static_cast<char*>(space);
    end_ = next_ + kAddressSpace;
  }
  if (size > size_t(end_ - next_)) {
    std::fprintf(stderr, "cuda shim: the address space for allocations is used up\n");
    return nullptr;
  }
  return std::exchange(next_, next_ + size);
}

char* DeviceMemory::allocate(size_t size, int device) {
  size_t pages_size = round_up(size, page_size());
  char* guard = reserve(pages_size + page_size());
  if (!guard) return nullptr;
  char* pages = guard + page_size();
  if (mprotect(pages, pages_size, PROT_READ | PROT_WRITE) != 0) return nullptr;
  if (pages_size <= kPoisonedWhole) {
    std::memset(pages, kPoison, pages_size);
  } else {
    std::memset(pages, kPoison, kPoisonedEnd);
    std::memset(pages + pages_size - kPoisonedEnd, kPoison, kPoisonedEnd);
  }
  mprotect(pages, pages_size, PROT_NONE);
  char* begin = guards_front() ? pages : pages + pages_size - round_up(size, kAlignment);
  allocations_[pages] = {begin, size, device, pages, pages_size, false};
  return begin;
}

bool DeviceMemory::free(char* begin) {
  Allocation* found = find_pages(begin);
  if (!found || found->begin != begin) return false;
  map_nothing(found->pages, found->pages_size, MAP_FIXED);  // gives the memory back
  allocations_.erase(found->pages);
  return true;
}

Allocation* DeviceMemory::find_pages(const void* address) {
  char* at = const_cast<char*>(static_cast<const char*>(address));
  auto after = allocations_.upper_bound(at);
  if (after == allocations_.begin()) return nullptr;
  Allocation& candidate = std::prev(after)->second;
  return at < candidate.pages + candidate.pages_size ? &candidate : nullptr;
}

Allocation* DeviceMemory::find(const void* begin, size_t size) {
  Allocation* found = find_pages(begin);
  const char* first = static_cast<const char*>(begin);
  bool holds = found && first >= found->begin && size <= found->size &&
               first <= found->begin + (found->size - size);
  return holds ? found : nullptr;
}

void DeviceMemory::open(Allocation& allocation) {
  if (allocation.is_open) return;
  mprotect(allocation.pages, allocation.pages_size, PROT_READ | PROT_WRITE);
  allocation.is_open = true;
  opened_.push_back(&allocation);
}

std::vector<Allocation> DeviceMemory::close_all() {
  std::vector<Allocation> damaged;
  for (Allocation* allocation : opened_) {
    char* end = allocation->begin + allocation->size;
    char* pages_end = allocation->pages + allocation->pages_size;
    if (!is_poison(allocation->pages, allocation->begin) || !is_poison(end, pages_end)) {
      damaged.push_back(*allocation);
      std::memset(allocation->pages, kPoison, allocation->begin - allocation->pages);
      std::memset(end, kPoison, pages_end - end);
    }
    mprotect(allocation->pages, allocation->pages_size, PROT_NONE);
    allocation->is_open = false;
  }
  opened_.clear();
  return damaged;
}

std::string DeviceMemory::describe(const void* address) const {
  const char* at = static_cast<const char*>(address);
  const Allocation* nearest = nullptr;
  size_t distance = SIZE_MAX;
  for (const auto& [pages, allocation] : allocations_) {
    const char* end = allocation.begin + allocation.size;
    size_t here = at < allocation.begin ? allocation.begin - at : at >= end ? at - end : 0;
    if (here < distance) {
      distance = here;
      nearest = &allocation;
    }
  }
  constexpr size_t kFar = size_t(1) << 30;
  if (!nearest || distance > kFar) return "far from every allocation";
  char text[200];
  const char* side = at < nearest->begin                    ? "before the start of"
                     : at >= nearest->begin + nearest->size ? "after the end of"
                                                            : "within";
  if (side[0] == 'w') distance = at - nearest->begin;
  std::snprintf(text, sizeof(text), "%zu bytes %s the %zu bytes at %p, of device %d", distance,
                side, nearest->size, static_cast<const void*>(nearest->begin), nearest->device);
  return text;
}

bool Access::open(const void* begin, size_t size) {
  Allocation* found = device_memory.find(begin, size);
  if (found) device_memory.open(*found);
  return found;
}

}  // namespace shim
