// Owns storages whose bytes are those of a file: memory shared between processes, mapped files.
//
// Shared memory is a file without a name (memfd). It is the same memory in a forked child, which
// may write while its parent does; a process that gets the descriptor opens it too.
#pragma once

#include <string>

#include "core/tensor/storage.h"

namespace rushlight {

// Moves the bytes of a storage of the CPU to shared memory, where they stay, and returns what holds
// the memory that it left; null if it was shared before, as memory on a GPU is.
[[nodiscard]] Storage share_memory(StorageImpl& storage);
// Whether other processes may see what is written there.
bool is_shared(const StorageImpl& storage);
// The open file behind a storage that was shared or opened; the storage closes it.
int shared_file(const StorageImpl& storage);
// The first bytes of the file behind an open descriptor, shared. The descriptor is duplicated.
Storage open_shared(int descriptor, size_t bytes);
// The first bytes of a file by its path. When shared, what is written goes to the file, which is
// made or grown as needed; else it stays here.
Storage map_file(const std::string& path, bool shared, size_t bytes);

}  // namespace rushlight
