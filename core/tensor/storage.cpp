// Defines where storage memory comes from and how it goes back.
#include "core/tensor/storage.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "core/base/error.h"
#include "core/device/allocator.h"
#include "core/device/cuda.h"
#include "core/device/cuda_memory.h"
#include "core/tensor/fusion.h"

namespace rushlight {
namespace {

constexpr size_t kHeader = 128;      // sizeof(StorageImpl) rounded up so that the data is aligned
constexpr size_t kInlineMax = 1024;  // below this, one block holds header and data
static_assert(sizeof(StorageImpl) <= kHeader);

char* behind_header(void* block) { return static_cast<char*>(block) + kHeader; }

}  // namespace

Storage StorageImpl::allocate(size_t bytes, Device device) {
  if (!device.is_cpu()) [[unlikely]]
    return allocate_elsewhere(bytes, device);
  size_t inline_bytes = bytes <= kInlineMax ? bytes : 0;
  void* block = cpu_allocate(kHeader + inline_bytes);
  Storage storage = Storage::adopt(new (block) StorageImpl());
  storage->inline_bytes_ = inline_bytes;
  storage->device_ = {DeviceType::cpu};
  storage->on_cpu_ = true;
  storage->data_ = bytes > inline_bytes ? cpu_allocate(bytes) : behind_header(block);
  storage->bytes_ = storage->capacity_ = bytes;
  return storage;
}

Storage StorageImpl::allocate_elsewhere(size_t bytes, Device device) {
  CHECK(device.is_cuda() || device.is_meta(), "Rushlight is not linked with support for ",
        device_type_name(device.type), " devices. Use cpu or cuda.");
  device.index = device.is_cuda() ? int8_t(cuda::device_index(device)) : -1;
  Storage storage = Storage::adopt(new (cpu_allocate(kHeader)) StorageImpl());
  storage->device_ = device;
  storage->block_ = device.is_cuda() ? cuda::allocate(bytes, device.index) : nullptr;
  storage->data_ = cuda::data(storage->block_);
  storage->bytes_ = storage->capacity_ = bytes;
  return storage;
}

Storage StorageImpl::none(Device device) {
  Storage storage = allocate(0);
  storage->device_ = device;
  storage->on_cpu_ = false;
  return storage;
}

Storage StorageImpl::defer(size_t bytes, Device device, DeferredOp* op) {
  auto* storage = new (cpu_allocate(kHeader)) StorageImpl();
  storage->bytes_ = bytes;
  storage->device_ = device;
  storage->on_cpu_ = device.is_cpu();
  storage->deferred_ = op;
  return Storage::adopt(storage);
}

void StorageImpl::settle() const { rushlight::settle(*this); }

void StorageImpl::settle_with(StorageImpl& filled) {
  if (filled.inline_bytes_) {  // for its life
    data_ = cpu_allocate(capacity_ = bytes_);
    std::memcpy(data_, filled.data_, bytes_);
  } else {
    data_ = std::exchange(filled.data_, nullptr);
    block_ = std::exchange(filled.block_, nullptr);
    capacity_ = std::exchange(filled.capacity_, 0);
  }
  deferred_.store(nullptr, std::memory_order_release);
}

Storage StorageImpl::wrap(void* data, size_t bytes, Device device, Deleter deleter, void* context,
                          bool readonly) {
  auto* storage = new (cpu_allocate(kHeader)) StorageImpl();
  storage->data_ = data;
  storage->bytes_ = bytes;
  storage->device_ = device.is_cpu() ? Device{DeviceType::cpu} : device;
  storage->deleter_ = deleter;
  storage->context_ = context;
  storage->on_cpu_ = device.is_cpu();
  storage->readonly_ = readonly;
  return Storage::adopt(storage);
}

void StorageImpl::free_data() {
  if (deleter_) deleter_(context_);
  else if (!device_.is_cpu()) cuda::free(block_);
  else if (data_ != behind_header(this)) cpu_free(data_, capacity_);
}

void StorageImpl::destroy(StorageImpl* storage) {
  size_t block = kHeader + storage->inline_bytes_;
  if (storage->deferred()) discard_deferred(*storage);
  storage->free_data();
  storage->~StorageImpl();
  cpu_free(storage, block);
}

void StorageImpl::check_not_borrowed() const {
  CHECK(borrowers_.load(std::memory_order_acquire) == 0,
        "Trying to resize storage that is not resizable: an array or another library uses its "
        "memory. Clone the tensor first.");
}

Storage StorageImpl::move_to(void* data, Deleter deleter, void* context) {
  check_not_borrowed();
  cuda::copy_bytes(data, device_, this->data(), device_, bytes_);
  Storage old = allocate(0);
  if (data_ != behind_header(this)) {
    old->data_ = data_;
    old->capacity_ = capacity_;
  }
  old->deleter_ = std::exchange(deleter_, deleter);
  old->context_ = std::exchange(context_, context);
  data_ = data;
  readonly_ = false;
  return old;
}

void StorageImpl::resize(size_t bytes) {
  CHECK(!readonly_, "Trying to resize storage that is read-only. Clone the tensor first.");
  CHECK(!deleter_, "Trying to resize storage that is not resizable: its memory belongs to another ",
        "library. Clone the tensor first.");
  if (deferred()) settle();
  if (bytes <= capacity_) {
    bytes_ = bytes;
    return;
  }
  check_not_borrowed();
  cuda::Block* block = device_.is_cuda() ? cuda::allocate(bytes, device_.index) : nullptr;
  void* grown = device_.is_cpu() ? cpu_allocate(bytes) : cuda::data(block);
  if (!device_.is_meta()) cuda::copy_bytes(grown, device_, data_, device_, bytes_);
  free_data();
  data_ = grown;
  block_ = block;
  bytes_ = capacity_ = bytes;
}

BorrowedStorage::BorrowedStorage(Storage storage) : storage_(std::move(storage)) {
  settle_before_write(*storage_);
  storage_->borrowers_.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace rushlight
