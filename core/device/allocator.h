// Owns CPU memory for tensors: aligned blocks, cached by size so that pages stay warm.
//
// Freed blocks wait in a per-thread cache (small) or a shared one (large), up to a cap; a block is
// a size class wide, so its size follows from the bytes asked for and needs no header. Safe from
// any thread, for blocks that cross threads, and in a forked child.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rushlight {

// Of every block: a cache line, and an AVX-512 vector.
constexpr size_t kAlignment = 64;

// Of blocks of at least this size, and, modulo a page, the distance between buffers in one block
// that a loop walks together. A processor first compares only the low 12 bits of the addresses of a
// load and of an earlier store. If a loop writes, modulo a page, a few hundred bytes ahead of where
// it reads, its loads seem to depend on those stores and wait for them: loops over tiles took up to
// nine times as long.
constexpr size_t kWideAlignment = 1024;

// Uninitialized memory, or nullptr for 0 bytes. Raises kOutOfMemory after emptying the cache.
void* cpu_allocate(size_t bytes);

// Takes back a block; `bytes` is the number it was asked for with.
void cpu_free(void* block, size_t bytes) noexcept;

// Memory for the length of a scope.
class CpuBuffer {
 public:
  explicit CpuBuffer(size_t bytes) : bytes_(bytes), data_(cpu_allocate(bytes)) {}
  ~CpuBuffer() { cpu_free(data_, bytes_); }
  CpuBuffer(const CpuBuffer&) = delete;
  CpuBuffer& operator=(const CpuBuffer&) = delete;

  void* data() const { return data_; }

 private:
  size_t bytes_;
  void* data_;
};

// Returns the shared cache and the calling thread's cache to the operating system. What other
// threads hold (at most a few MB each) follows when they exit.
void cpu_empty_cache();

// Keeps forks safe. Whatever registers fork handlers that end threads calls it first: a thread that
// ends returns its cache, which must still be unlocked then, and the youngest handlers run first.
void cpu_register_fork_handlers();

// In whole blocks. Another thread's last 64 KB may not have been counted yet.
struct CpuMemoryStats {
  int64_t allocated;  // in use by tensors
  int64_t cached;     // freed and kept for the next tensor
  int64_t peak;       // the largest `allocated` so far
};
CpuMemoryStats cpu_memory_stats();

}  // namespace rushlight
