// Owns memory of CUDA devices: blocks of the driver's pools, and those freed and kept for reuse.
//
// A block belongs to the stream that was current when it was allocated, and may be freed while that
// stream still uses it: the next owner's work comes later on the same stream. Use on another stream
// must be told by record_stream. Freeing is safe at exit and in a forked child.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/device/cuda_stream.h"
#include "core/device/memory_count.h"

namespace rushlight::cuda {

struct Block;

// Uninitialized memory on the current stream of a device; nullptr for 0 bytes. Raises
// kOutOfMemory after giving back what is cached.
Block* allocate(size_t bytes, int device);
void free(Block* block) noexcept;
// The address on the device; nullptr for nullptr.
void* data(const Block* block) noexcept;

// `stream` uses the block too: freed, it is not reused before what is queued there by then is done.
void record_stream(Block* block, Stream stream);

// Memory for the length of a scope, on the current stream; kernels may outlive the scope.
class CudaBuffer {
 public:
  CudaBuffer(size_t bytes, int device) : block_(allocate(bytes, device)) {}
  ~CudaBuffer() { free(block_); }
  CudaBuffer(const CudaBuffer&) = delete;
  CudaBuffer& operator=(const CudaBuffer&) = delete;

  void* data() const { return cuda::data(block_); }

 private:
  Block* block_;
};

// Returns all memory that no tensor uses to the driver, on every device that was used.
void empty_cache();

// Bytes, of blocks in use and of what the driver holds for this process.
struct MemoryStats {
  MemoryCount allocated;    // bytes in use by tensors
  MemoryCount allocations;  // blocks in use
  MemoryCount reserved;     // bytes taken from the device; no total, the peaks of two kinds added
  int64_t cached = 0;       // bytes of blocks that wait for reuse
  int64_t retries = 0, out_of_memory = 0;
};
MemoryStats memory_stats(int device);
// Memory that a private pool took of the driver; negative when it returns it.
void count_reserved(int device, int64_t bytes);
void reset_peak_memory_stats(int device);
// Starts the totals and the counts of failures again.
void reset_accumulated_memory_stats(int device);

// The most bytes that tensors and cached blocks may have on a device; whatever there is, at first.
void limit_memory(int device, size_t bytes);

// All blocks of a device, those that wait for reuse too.
struct BlockInfo {
  uintptr_t address;
  size_t bytes;
  Stream stream;
  bool is_used;
  uint64_t pool[2];  // its PoolId; zeros: the driver's pool
};
std::vector<BlockInfo> memory_blocks(int device);

}  // namespace rushlight::cuda
