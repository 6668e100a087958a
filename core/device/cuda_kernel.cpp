#include "core/device/cuda_kernel.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/device/cuda_capture.h"
#include "core/device/cuda_stream.h"
#include "core/device/kernel_cache.h"
#include "core/device/kernel_text.h"
#include "core/device/nvrtc.h"

namespace rushlight {

extern const char* const device_types_cuh;

namespace cuda {
namespace {

// Never destroyed, because static modules list themselves before and after anything else.
struct Registry {
  std::mutex mutex;
  std::vector<CudaModule*> modules;
  std::vector<void (*)()> families;
};
Registry& registry() {
  static auto* all = new Registry;
  return *all;
}

int attribute(CUfunction function, int which) {
  int value = 0;
  check(driver().cuFuncGetAttribute(&value, which, function), "cuFuncGetAttribute");
  return value;
}

}  // namespace

CudaModule::CudaModule(std::string name, const char* text, std::string prelude)
    : name_(std::move(name)), text_(text), prelude_(std::move(prelude)) {
  std::lock_guard lock(registry().mutex);
  registry().modules.push_back(this);
}

std::string CudaModule::whole_text() const {
  return with_includes(device_types_cuh) + prelude_ + with_includes(text_);
}

std::string CudaModule::code(const std::string& arch) const {
  if (!text_) return own_code_;
  std::string text = whole_text();
  KernelCache& cache = KernelCache::instance();
  std::string key = KernelCache::key({nvrtc::compiler_key(), arch, text});
  if (std::optional<std::string> found = cache.find(key)) return *found;
  std::string code = nvrtc::compile(name_, text, arch);
  cache.store(key, code);
  return code;
}

std::string CudaModule::compile(const std::string& arch) const {
  return nvrtc::compile(name_, whole_text(), arch);
}

CUfunction CudaModule::function(int device, const std::string& entry) {
  std::lock_guard lock(mutex_);
  CUmodule& loaded = loaded_[size_t(device)];
  if (!loaded) {
    std::string image = code(properties(device).arch());
    check(driver().cuModuleLoadData(&loaded, image.c_str()), name_.c_str());
  }
  CUfunction function;
  check(driver().cuModuleGetFunction(&function, loaded, entry.c_str()), entry.c_str());
  return function;
}

CudaKernel::CudaKernel(CudaModule& module, std::string entry)
    : module_(module), entry_(std::move(entry)) {}

CudaKernel::Loaded& CudaKernel::loaded(int device) {
  activate(device);
  Loaded& loaded = loaded_[size_t(device)];
  if (!loaded.function.load(std::memory_order_acquire)) [[unlikely]] {
    RelaxedCapture relaxed;
    CUfunction function = module_.function(device, entry_);
    // What may be asked for is told without the kernel's own shared memory, which counts, too.
    int own = attribute(function, kFunctionStaticSharedBytes);
    int most = std::min(attribute(function, kFunctionMaxDynamicSharedBytes),
                        properties(device).shared_memory_per_block - own);
    loaded.shared_limit = unsigned(std::max(most, 0));
    loaded.function.store(function, std::memory_order_release);
  }
  return loaded;
}

// To all that there is, so that threads that come here at once agree.
void CudaKernel::raise_shared_limit(Loaded& kernel, int device, unsigned wanted) {
  CUfunction function = kernel.function;
  int most = properties(device).shared_memory_per_block_optin -
             attribute(function, kFunctionStaticSharedBytes);
  CHECK(int64_t(wanted) <= most, entry_, " needs ", wanted,
        " bytes of shared memory, but cuda:", device, " has ", most, " for it.");
  check(driver().cuFuncSetAttribute(function, kFunctionMaxDynamicSharedBytes, most),
        entry_.c_str());
  kernel.shared_limit = unsigned(most);
}

void CudaKernel::launch_with(Dim3 grid, Dim3 block, unsigned shared_bytes,
                             const void* const* arguments) {
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) return;
  int device = current_device();
  Loaded& kernel = loaded(device);
  CUfunction function = kernel.function.load(std::memory_order_relaxed);
  if (shared_bytes > kernel.shared_limit.load(std::memory_order_relaxed)) [[unlikely]] {
    raise_shared_limit(kernel, device, shared_bytes);
  }
  check(driver().cuLaunchKernel(function, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                                shared_bytes, current_stream(device).handle,
                                const_cast<void**>(arguments), nullptr),
        entry_.c_str());
}

int CudaKernel::max_threads_per_block() {
  return attribute(loaded(current_device()).function, kFunctionMaxThreadsPerBlock);
}

CudaKernelFamily::CudaKernelFamily(void (*declare)()) { registry().families.push_back(declare); }

std::vector<CudaModule*> all_cuda_modules() {
  static std::once_flag declared;
  std::call_once(declared, [] {
    for (void (*declare)() : registry().families) declare();
  });
  std::unique_lock lock(registry().mutex);
  std::vector<CudaModule*> modules = registry().modules;
  lock.unlock();
  std::ranges::sort(modules, {}, &CudaModule::name);
  ASSERT(std::ranges::adjacent_find(modules, {}, &CudaModule::name) == modules.end());
  return modules;
}

}  // namespace cuda
}  // namespace rushlight
