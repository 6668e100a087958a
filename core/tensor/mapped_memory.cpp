// Defines the mapping of files as storages, by mmap.
#include "core/tensor/mapped_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string_view>

#include "core/base/error.h"

namespace rushlight {
namespace {

// A part of a file in memory.
struct Mapping {
  int file = -1;
  void* data = nullptr;
  size_t bytes = 0;
  bool shared = false;

  ~Mapping() {
    if (data) munmap(data, bytes);
    if (file >= 0) close(file);
  }
};

void unmap(void* mapping) { delete static_cast<Mapping*>(mapping); }

std::unique_ptr<Mapping> owner_of(int file, std::string_view what) {
  CHECK(file >= 0, what, " cannot be opened: ", std::strerror(errno));
  auto mapping = std::make_unique<Mapping>();
  mapping->file = file;
  return mapping;
}

void map(Mapping& mapping, size_t bytes, bool shared) {
  size_t length = std::max<size_t>(bytes, 1);  // nothing cannot be mapped
  void* data = mmap(nullptr, length, PROT_READ | PROT_WRITE, shared ? MAP_SHARED : MAP_PRIVATE,
                    mapping.file, 0);
  CHECK(data != MAP_FAILED, ErrorKind::kOutOfMemory, "mapping ", bytes,
        " bytes of a file failed: ", std::strerror(errno));
  mapping.data = data;
  mapping.bytes = length;
  mapping.shared = shared;
}

size_t file_size(const Mapping& mapping, std::string_view what) {
  struct stat status;
  CHECK(fstat(mapping.file, &status) == 0 && S_ISREG(status.st_mode), what,
        " is not a regular file, which alone can be mapped");
  return size_t(status.st_size);
}

// Makes the file at least so long, with its memory reserved: a write must not fail later.
void reserve(const Mapping& mapping, size_t bytes, std::string_view what) {
  int error = posix_fallocate(mapping.file, 0, off_t(std::max<size_t>(bytes, 1)));
  CHECK(error == 0, ErrorKind::kOutOfMemory, what, ": no room for ", bytes,
        " bytes: ", std::strerror(error));
}

Storage as_storage(std::unique_ptr<Mapping> mapping, size_t bytes) {
  Mapping* context = mapping.release();
  return StorageImpl::wrap(context->data, bytes, Device(), unmap, context, false);
}

const Mapping* mapping_of(const StorageImpl& storage) {
  return storage.deleter() == unmap ? static_cast<const Mapping*>(storage.context()) : nullptr;
}

}  // namespace

bool is_shared(const StorageImpl& storage) {
  const Mapping* mapping = mapping_of(storage);
  return mapping ? mapping->shared : storage.device().is_cuda();
}

Storage share_memory(StorageImpl& storage) {
  if (is_shared(storage)) return {};
  CHECK(storage.device().is_cpu(), ErrorKind::kNotImplemented, "memory on ", storage.device(),
        " cannot be shared. Move the tensor to the CPU.");
  auto mapping = owner_of(memfd_create("rushlight", MFD_CLOEXEC), "shared memory");
  reserve(*mapping, storage.bytes(), "shared memory");
  map(*mapping, storage.bytes(), true);
  Storage left = storage.move_to(mapping->data, unmap, mapping.get());
  (void)mapping.release();  // is the storage's now
  return left;
}

int shared_file(const StorageImpl& storage) {
  const Mapping* mapping = mapping_of(storage);
  CHECK(mapping && mapping->shared, "the storage is not shared. Call share_memory_() first.");
  return mapping->file;
}

Storage open_shared(int descriptor, size_t bytes) {
  auto mapping = owner_of(fcntl(descriptor, F_DUPFD_CLOEXEC, 0), "shared memory");
  size_t size = file_size(*mapping, "the descriptor");
  CHECK(size >= bytes, "shared memory has ", size, " bytes, but ", bytes, " were expected");
  map(*mapping, bytes, true);
  return as_storage(std::move(mapping), bytes);
}

Storage map_file(const std::string& path, bool shared, size_t bytes) {
  int flags = shared ? O_RDWR | O_CREAT : O_RDONLY;
  auto mapping = owner_of(open(path.c_str(), flags | O_CLOEXEC, 0666), path);
  size_t size = file_size(*mapping, path);
  if (size < bytes) {
    CHECK(shared, "file ", path, " has ", size, " bytes, but ", bytes,
          " are needed. With shared=True it would be made longer.");
    reserve(*mapping, bytes, path);
  }
  map(*mapping, bytes, shared);
  return as_storage(std::move(mapping), bytes);
}

}  // namespace rushlight
