// Storage on the CPU, on meta and, where the shim was built, on CUDA: memory, growing, freeing.
#include "core/tensor/storage.h"

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>

#include "core/device/cuda.h"
#include "core/device/cuda_memory.h"
#include "core/tests/expect.h"

using namespace rushlight;

namespace {

// What is written stays when the storage grows and shrinks.
void resizing_keeps_the_common_part(Device device) {
  Storage storage = StorageImpl::allocate(6, device);
  expect(storage->bytes() == 6 && storage->device().type == device.type);
  cuda::copy_bytes(storage->data(), storage->device(), "hello", Device(), 6);
  for (size_t bytes : {100000, 6, 10}) storage->resize(bytes);
  std::string read(6, '?');
  cuda::copy_bytes(read.data(), Device(), storage->data(), storage->device(), 6);
  expect(std::strcmp(read.c_str(), "hello") == 0 && storage->bytes() == 10);
}

void meta_has_sizes_but_no_memory() {
  Storage storage = StorageImpl::allocate(size_t(1) << 60, {DeviceType::meta, -1});
  expect(storage->data() == nullptr && storage->bytes() == size_t(1) << 60);
  storage->resize(10);
  expect(storage->data() == nullptr && storage->bytes() == 10 && storage->device().is_meta());
}

void memory_goes_back_to_its_device() {
  int64_t before = cuda::memory_stats(0).allocated.current;
  {
    Storage storage = StorageImpl::allocate(1 << 20, {DeviceType::cuda, -1});
    expect(storage->device() == Device{DeviceType::cuda, 0} && storage->cuda_block());
    expect(cuda::memory_stats(0).allocated.current == before + (1 << 20));
    expect(StorageImpl::allocate(0, {DeviceType::cuda, 0})->data() == nullptr);
  }
  expect(cuda::memory_stats(0).allocated.current == before);
}

}  // namespace

int main() {
  resizing_keeps_the_common_part(Device());
  meta_has_sizes_but_no_memory();
  const char* shim = std::getenv("RUSHLIGHT_TEST_SHIM");
  if (!shim || !std::filesystem::exists(shim)) return 0;
  setenv("RUSHLIGHT_CUDA_DRIVER", shim, 1);
  setenv("RUSHLIGHT_NVRTC", shim, 1);
  resizing_keeps_the_common_part({DeviceType::cuda, -1});
  memory_goes_back_to_its_device();
}
