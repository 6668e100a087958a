// Owns kernels: device text, compiled by NVRTC at first use and launched on the current stream.
//
// A CudaModule is a text that is compiled as a whole, a CudaKernel one of its entries, which the
// text declares as extern "C" __global__. Both are made once, as static objects or in a map that is
// never emptied; modules list themselves, to be compiled beforehand. Safe from any thread.
#pragma once

#include <array>
#include <atomic>
#include <mutex>
#include <string>
#include <type_traits>
#include <vector>

#include "core/device/cuda.h"
#include "core/device/cuda_driver.h"

namespace rushlight::cuda {

struct Dim3 {
  unsigned x = 1, y = 1, z = 1;
};

class CudaModule {
 public:
  // `text` is softmax_cu of an embedded file (see kernel_text.h) or one that lives as long;
  // `prelude` comes before it, such as "#define T float\n"; `name` is for messages.
  explicit CudaModule(std::string name, const char* text, std::string prelude = "");
  // Code of a program's own, which is not listed.
  struct Compiled {
    std::string name, code;
  };
  explicit CudaModule(Compiled own) : name_(std::move(own.name)), own_code_(std::move(own.code)) {}
  CudaModule(const CudaModule&) = delete;
  CudaModule& operator=(const CudaModule&) = delete;

  const std::string& name() const { return name_; }
  // What is compiled: the prelude, and the text with all that it includes.
  std::string whole_text() const;
  // The program's own code, or that from the cache or from NVRTC, which fills the cache.
  std::string code(const std::string& arch) const;
  // Device code from NVRTC.
  std::string compile(const std::string& arch) const;
  // Loads the module on a device at first use, which must be active.
  CUfunction function(int device, const std::string& entry);

 private:
  std::string name_;
  const char* text_ = nullptr;
  std::string prelude_;
  std::string own_code_;
  std::mutex mutex_;
  std::array<CUmodule, kMaxDevices> loaded_{};
};

class CudaKernel {
 public:
  CudaKernel(CudaModule& module, std::string entry);
  CudaKernel(const CudaKernel&) = delete;
  CudaKernel& operator=(const CudaKernel&) = delete;

  // Queues the kernel on the current stream of the current device. The arguments have exactly the
  // types of the kernel's parameters (int64_t, float, const float*, a struct by value): their bytes
  // are copied now. Dynamic shared memory may go up to the device's limit. An empty grid does
  // nothing.
  template <class... Args>
  void launch(Dim3 grid, Dim3 block, unsigned shared_bytes, const Args&... arguments) {
    static_assert((std::is_trivially_copyable_v<Args> && ...));
    const void* addresses[sizeof...(arguments) + 1] = {&arguments..., nullptr};
    launch_with(grid, block, shared_bytes, addresses);
  }
  // The same with the addresses of the arguments, for argument lists made at run time.
  void launch_with(Dim3 grid, Dim3 block, unsigned shared_bytes, const void* const* arguments);

  // The most threads that a block of this kernel may have on the current device: its registers
  // decide.
  int max_threads_per_block();

 private:
  struct Loaded {
    std::atomic<CUfunction> function{nullptr};
    std::atomic<unsigned> shared_limit{0};  // of dynamic shared memory, as asked for so far
  };
  Loaded& loaded(int device);
  void raise_shared_limit(Loaded& kernel, int device, unsigned wanted);

  CudaModule& module_;
  std::string entry_;
  std::array<Loaded, kMaxDevices> loaded_;
};

// Kernels that are made when they are needed, such as those of formulas: `declare`, called once at
// most, makes all that are worth compiling beforehand. A static object, as it lists itself.
class CudaKernelFamily {
 public:
  explicit CudaKernelFamily(void (*declare)());
};

// All modules, those of families too, by name; names are unique.
std::vector<CudaModule*> all_cuda_modules();

}  // namespace rushlight::cuda
