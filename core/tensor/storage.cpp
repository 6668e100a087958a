// Defines where storage memory comes from and how it goes back.
#include "core/tensor/storage.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "core/base/error.h"
#include "core/device/allocator.h"

namespace rushlight {
namespace {

constexpr size_t kHeader = 128;      // sizeof(StorageImpl) rounded up so that the data is aligned
constexpr size_t kInlineMax = 1024;  // below this, one block holds header and data
static_assert(sizeof(StorageImpl) <= kHeader);

}  // namespace

Storage StorageImpl::allocate(size_t bytes, Device device) {
  CHECK(device.is_cpu(), ErrorKind::kNotImplemented, "no memory can be allocated on device ",
        device);
  size_t inline_bytes = bytes <= kInlineMax ? bytes : 0;
  void* data = bytes > inline_bytes ? cpu_allocate(bytes) : nullptr;
  auto* block = static_cast<char*>(cpu_allocate(kHeader + inline_bytes));
  auto* storage = new (block) StorageImpl();
  storage->data_ = data ? data : block + kHeader;
  storage->bytes_ = bytes;
  storage->inline_bytes_ = inline_bytes;
  storage->device_ = device;
  return Storage::adopt(storage);
}

Storage StorageImpl::wrap(void* data, size_t bytes, Device device, Deleter deleter, void* context,
                          bool readonly) {
  auto* storage = new (cpu_allocate(kHeader)) StorageImpl();
  storage->data_ = data;
  storage->bytes_ = bytes;
  storage->device_ = device;
  storage->deleter_ = deleter;
  storage->context_ = context;
  storage->readonly_ = readonly;
  return Storage::adopt(storage);
}

void StorageImpl::free_data() {
  char* behind_header = reinterpret_cast<char*>(this) + kHeader;
  if (deleter_) deleter_(context_);
  else if (data_ != behind_header) cpu_free(data_, bytes_);
}

void StorageImpl::destroy(StorageImpl* storage) {
  size_t block = kHeader + storage->inline_bytes_;
  storage->free_data();
  storage->~StorageImpl();
  cpu_free(storage, block);
}

void StorageImpl::resize(size_t bytes) {
  CHECK(!deleter_, "Trying to resize storage that is not resizable: its memory belongs to another ",
        "library. Clone the tensor first.");
  if (bytes == bytes_ || bytes <= inline_bytes_) {
    bytes_ = bytes;
    return;
  }
  void* grown = cpu_allocate(bytes);
  std::memcpy(grown, data_, std::min(bytes, bytes_));
  free_data();
  data_ = grown;
  bytes_ = bytes;
}

}  // namespace rushlight
