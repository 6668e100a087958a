// Owns the memory of the pretended devices: each allocation lies between guard pages, filled with
// poison, and can be reached only while a launch or a copy has opened it.
//
// Addresses are never used twice, so that what was freed faults for good. Not thread-safe: the
// driver holds its lock.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace shim {

struct Allocation {
  char* begin;
  size_t size;
  int device;
  char* pages;  // the mapping without its guards
  size_t pages_size;
  bool is_open;
};

class DeviceMemory {
 public:
  // Null when the address space is used up. Large allocations are poisoned at both ends only.
  char* allocate(size_t size, int device);
  // False if the address is not the start of an allocation.
  bool free(char* begin);

  // The allocation that holds the range, or null.
  Allocation* find(const void* begin, size_t size);
  // The allocation whose pages, slack included, hold the address, or null.
  Allocation* find_pages(const void* address);
  // Whether allocations, or the guards between them, lie there.
  bool is_within(const void* address) const { return address >= begin_ && address < next_; }

  void open(Allocation& allocation);
  // Closes what was opened; the allocations whose slack has been written to.
  std::vector<Allocation> close_all();

  // "12 bytes after the end of the 40 bytes at 0x..., on device 0"
  std::string describe(const void* address) const;

 private:
  char* reserve(size_t size);

  std::map<char*, Allocation> allocations_;  // by the start of their pages
  std::vector<Allocation*> opened_;
  char *begin_ = nullptr, *next_ = nullptr, *end_ = nullptr;
};

extern DeviceMemory device_memory;

// A copy's or a launch's access to memory.
class Access {
 public:
  Access() = default;
  Access(const Access&) = delete;
  ~Access() { device_memory.close_all(); }
  // False if the range is not within one allocation.
  bool open(const void* begin, size_t size);
};

constexpr unsigned char kPoison = 0xff;  // all bits set: NaN, or -1

}  // namespace shim
