#include "core/tensor/staged.h"

#include <array>
#include <memory>
#include <vector>

namespace rushlight {

void* staging_buffer(int slot, size_t bytes) {
  using Buffers = std::array<std::vector<std::max_align_t>, kStagingSlots>;
  thread_local auto buffers = std::make_unique<Buffers>();  // see Note [Static TLS]
  auto& buffer = (*buffers)[size_t(slot)];
  size_t units = bytes / sizeof(std::max_align_t) + 1;
  if (buffer.size() < units) buffer.resize(units);
  return buffer.data();
}

}  // namespace rushlight
