// Owns pinned host memory: pages that a GPU reads and writes by itself, freed and kept for reuse.
//
// Copies to and from it may go on while the CPU works. A freed block is not reused before the
// copies that were recorded for it are done. Freeing is safe at exit and in a forked child.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/device/cuda_stream.h"
#include "core/device/memory_count.h"

namespace rushlight::cuda {

// Uninitialized; nullptr for 0 bytes. Raises without CUDA.
void* pinned_allocate(size_t bytes);
void pinned_free(void* data) noexcept;

// Whether the address lies in such a block.
bool is_pinned(const void* data) noexcept;
// Work queued on the stream uses the block around this address; false when it is not pinned.
bool pinned_record(const void* data, Stream stream);

// Keeps the block around this address from being reused until it is let go; null when it is not
// pinned. A block may be kept several times.
void* pinned_keep(const void* data);
void pinned_let_go(void* block) noexcept;

struct PinnedStats {
  MemoryCount bytes_used, blocks_used;  // by tensors
  MemoryCount bytes, blocks;            // with those that wait for reuse
};
PinnedStats pinned_stats();
void reset_pinned_stats(bool peaks, bool totals);

// Returns what nobody uses to the operating system.
void pinned_empty_cache();

}  // namespace rushlight::cuda
