// Owns what the host sides of kernels share that are compiled in several variants: a kernel for
// each, kept for the life of the process, and the number of blocks.
#pragma once

#include <map>
#include <mutex>

#include "core/base/error.h"
#include "core/device/cuda_kernel.h"

namespace rushlight::cuda {

// A line of a prelude.
inline std::string define(const std::string& name, const std::string& text = "") {
  return "#define " + name + " " + text + "\n";
}

// Kernels of one text by what they are compiled for. `Key` has an order and the functions name(),
// for messages, and prelude().
template <class Key>
class CudaKernelMap {
 public:
  CudaKernelMap(const char* text, const char* entry) : text_(text), entry_(entry) {}

  CudaKernel& operator[](const Key& key) {
    std::lock_guard lock(mutex_);
    return kernels_.try_emplace(key, key, text_, entry_).first->second.kernel;
  }

 private:
  struct Compiled {
    CudaModule module;
    CudaKernel kernel;
    Compiled(const Key& key, const char* text, const char* entry)
        : module(key.name(), text, key.prelude()), kernel(module, entry) {}
  };

  const char* text_;
  const char* entry_;
  std::mutex mutex_;
  std::map<Key, Compiled> kernels_;
};

// The same for structs of a module and its kernels, which are made of a variant.
template <class Kernels, class Variant>
Kernels& kernels_of(const Variant& variant) {
  static auto* mutex = new std::mutex;
  static auto* made = new std::map<Variant, Kernels>;
  std::lock_guard lock(*mutex);
  return made->try_emplace(variant, variant).first->second;
}

// Blocks that cover `numel` elements.
inline unsigned blocks_for(int64_t numel, int64_t per_block) {
  int64_t blocks = (numel + per_block - 1) / per_block;
  CHECK(blocks < int64_t(1) << 31, "a tensor of ", numel, " elements is too large for one kernel.");
  return unsigned(blocks);
}

}  // namespace rushlight::cuda
