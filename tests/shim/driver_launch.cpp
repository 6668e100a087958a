// Owns the entry points for modules, functions and launches.
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>
#include <numeric>
#include <string>

#include "tests/shim/driver.h"
#include "tests/shim/graph.h"
#include "tests/shim/launch.h"

namespace shim {
namespace {

struct Module {
  Device* device;
  void* library;
  ShimRegisters* registers;
  size_t tls_module, static_shared;
};

struct Function {
  Module* module;
  std::string name;
  const ShimKernel* kernel;
  size_t max_dynamic_shared = kDefaultShared;
  bool has_asked = false;  // for more
};

std::set<Module*> modules;
std::map<void*, Function> functions;  // by the address of their entry, which is their handle

Function* find_function(void* handle) {
  auto found = functions.find(handle);
  return found == functions.end() ? nullptr : &found->second;
}

// The bytes of an image end with the table of its sections; thread-local storage has a segment.
size_t image_size(const ElfW(Ehdr) & header) {
  return header.e_shoff + size_t(header.e_shnum) * header.e_shentsize;
}

size_t thread_local_size(const char* image) {
  ElfW(Ehdr) header;
  std::memcpy(&header, image, sizeof(header));
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    ElfW(Phdr) segment;
    std::memcpy(&segment, image + header.e_phoff + i * header.e_phentsize, sizeof(segment));
    if (segment.p_type == PT_TLS) return segment.p_memsz;
  }
  return 0;
}

// The loader wants a file. Its name must be new each time, or the loader takes it for the last one.
void* open_image(const char* image, size_t size) {
  std::string path = std::filesystem::temp_directory_path() / "rushlight-shim-XXXXXX";
  int file = mkstemp(path.data());
  if (file < 0) return nullptr;
  bool written = write(file, image, size) == ssize_t(size);
  close(file);
  void* library = written ? dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL) : nullptr;
  if (!library) std::fprintf(stderr, "cuda shim: %s\n", written ? dlerror() : path.c_str());
  unlink(path.c_str());
  return library;
}

Result refuse(const Function& function, Result code, const char* what, size_t value, size_t limit) {
  std::fprintf(stderr, "cuda shim: kernel %s: %s is %zu, the limit is %zu\n", function.name.c_str(),
               what, value, limit);
  return code;
}

// A copy of the arguments, which a graph passes again.
struct Arguments {
  std::vector<std::vector<char>> bytes;
  std::vector<void*> addresses;

  Arguments(const ShimKernel& kernel, void** arguments) {
    for (unsigned i = 0; i < kernel.count; ++i) {
      const char* begin = static_cast<const char*>(arguments[i]);
      bytes.emplace_back(begin, begin + kernel.sizes[i]);
    }
    for (auto& each : bytes) addresses.push_back(each.data());
  }
};

Result result_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::kSuccess: return kSuccess;
    case Outcome::kIllegalAddress: return kIllegalAddress;
    case Outcome::kMisalignedAddress: return kMisalignedAddress;
    case Outcome::kFailed: break;
  }
  return kLaunchFailed;
}

Result check(const Launch& launch, const Function& function) {
  const ShimIndex &grid = launch.grid, &block = launch.block;
  struct Limit {
    const char* what;
    size_t value, limit;
  };
  for (const Limit& limit : {Limit{"gridDim.x", grid.x, kMaxGridX},
                             {"gridDim.y", grid.y, kMaxGridYZ},
                             {"gridDim.z", grid.z, kMaxGridYZ},
                             {"blockDim.x", block.x, kMaxThreads},
                             {"blockDim.y", block.y, kMaxThreads},
                             {"blockDim.z", block.z, kMaxBlockZ}}) {
    if (limit.value == 0 || limit.value > limit.limit) {
      return refuse(function, kInvalidValue, limit.what, limit.value, limit.limit);
    }
  }
  size_t threads = size_t(block.x) * block.y * block.z;
  if (threads > kMaxThreads) {
    return refuse(function, kInvalidValue, "the number of threads", threads, kMaxThreads);
  }
  if (threads > function.kernel->max_threads) {
    return refuse(function, kLaunchOutOfResources, "the number of threads", threads,
                  function.kernel->max_threads);
  }
  size_t bytes = std::accumulate(function.kernel->sizes,
                                 function.kernel->sizes + function.kernel->count, size_t(0));
  if (bytes > kMaxArguments) {
    return refuse(function, kInvalidValue, "the size of the arguments", bytes, kMaxArguments);
  }
  // Without asking, static shared memory is a part of what a block has.
  size_t most = function.max_dynamic_shared;
  if (!function.has_asked) most -= std::min(most, launch.static_shared);
  if (launch.dynamic_shared > most) {
    return refuse(function, kInvalidValue, "the dynamic shared memory", launch.dynamic_shared,
                  most);
  }
  return kSuccess;
}

}  // namespace
}  // namespace shim

using namespace shim;

SHIM_API int cuModuleLoadData(void** result, const void* data) {
  SHIM_ENTER();
  const char* image = static_cast<const char*>(data);
  if (!image || std::memcmp(image, ELFMAG, SELFMAG) != 0) return kInvalidImage;
  ElfW(Ehdr) header;
  std::memcpy(&header, image, sizeof(header));
  void* library = open_image(image, image_size(header));
  if (!library) return kInvalidImage;
  auto registers = reinterpret_cast<ShimRegisters* (*)()>(dlsym(library, "shim_module"));
  if (!registers) {
    dlclose(library);
    return kInvalidImage;
  }
  Module* module = new Module{current_device, library, registers(), 0, thread_local_size(image)};
  if (module->static_shared) dlinfo(library, RTLD_DI_TLS_MODID, &module->tls_module);
  modules.insert(module);
  *result = module;
  return kSuccess;
}

SHIM_API int cuModuleUnload(void* handle) {
  SHIM_ENTER();
  Module* module = static_cast<Module*>(handle);
  if (modules.erase(module) == 0) return kInvalidHandle;
  std::erase_if(functions, [&](const auto& item) { return item.second.module == module; });
  dlclose(module->library);
  delete module;
  return kSuccess;
}

SHIM_API int cuModuleGetFunction(void** result, void* handle, const char* name) {
  SHIM_ENTER();
  Module* module = static_cast<Module*>(handle);
  if (!modules.contains(module)) return kInvalidHandle;
  std::string symbol = std::string("shim_kernel_") + name;
  void* kernel = dlsym(module->library, symbol.c_str());
  if (!kernel) return kNotFound;
  functions.try_emplace(kernel, Function{module, name, static_cast<const ShimKernel*>(kernel)});
  *result = kernel;
  return kSuccess;
}

SHIM_API int cuFuncGetAttribute(int* value, int key, void* handle) {
  SHIM_ENTER();
  Function* function = find_function(handle);
  if (!function) return kInvalidHandle;
  switch (key) {
    case 0: *value = int(function->kernel->max_threads); break;
    case 1: *value = int(function->module->static_shared); break;  // of all kernels of the module
    case 2:                                                        // CONST_SIZE_BYTES
    case 3: *value = 0; break;                                     // LOCAL_SIZE_BYTES
    case 4: *value = 32; break;                                    // NUM_REGS
    case 5:                                                        // PTX_VERSION
    case 6: *value = 90; break;                                    // BINARY_VERSION
    case 8: *value = int(function->max_dynamic_shared); break;
    default: return kInvalidValue;
  }
  return kSuccess;
}

SHIM_API int cuFuncSetAttribute(void* handle, int key, int value) {
  SHIM_ENTER();
  constexpr int kMaxDynamicShared = 8, kPreferredCarveout = 9;
  Function* function = find_function(handle);
  if (!function) return kInvalidHandle;
  if (key == kPreferredCarveout) return kSuccess;
  if (key != kMaxDynamicShared || value < 0) return kInvalidValue;
  if (size_t(value) + function->module->static_shared > kMaxShared) return kInvalidValue;
  function->max_dynamic_shared = value;
  function->has_asked = true;
  return kSuccess;
}

SHIM_API int cuLaunchKernel(void* handle, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                            unsigned block_x, unsigned block_y, unsigned block_z,
                            unsigned dynamic_shared, void* stream, void** arguments, void** extra) {
  SHIM_ENTER();
  Function* function = find_function(handle);
  if (!function || function->module->device != current_device) return kInvalidHandle;
  Stream* queue = find_stream(stream);
  if (!queue) return kInvalidHandle;
  if (extra) return kNotSupported;
  const Module& module = *function->module;
  Launch launch = {function->name,
                   function->kernel,
                   module.registers,
                   module.tls_module,
                   module.static_shared,
                   {grid_x, grid_y, grid_z},
                   {block_x, block_y, block_z},
                   dynamic_shared,
                   current_device->index,
                   arguments};
  if (Result result = check(launch, *function); result != kSuccess) return result;
  auto kept = std::make_shared<Arguments>(*function->kernel, arguments);
  return submit(queue, launch.name.c_str(), [launch, kept]() mutable {
    launch.arguments = kept->addresses.data();
    return result_of(run(launch));
  });
}
