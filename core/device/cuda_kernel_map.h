// Owns what the host sides of kernels share that are compiled in several variants: the kernels of
// each, kept for the life of the process, and the number of blocks.
#pragma once

#include <map>
#include <mutex>

#include "core/base/ceil_div.h"
#include "core/base/error.h"
#include "core/device/cuda_kernel.h"

namespace rushlight::cuda {

// A line of a prelude.
inline std::string define(const std::string& name, const std::string& text = "") {
  return "#define " + name + " " + text + "\n";
}

// The kernels of a variant: a struct of a module and its entries, made of the variant once.
template <class Kernels, class Variant>
Kernels& kernels_of(const Variant& variant) {
  static auto* mutex = new std::mutex;
  static auto* made = new std::map<Variant, Kernels>;
  std::lock_guard lock(*mutex);
  return made->try_emplace(variant, variant).first->second;
}

// Blocks that cover `numel` elements.
inline unsigned blocks_for(int64_t numel, int64_t per_block) {
  int64_t blocks = ceil_div(numel, per_block);
  CHECK(blocks < int64_t(1) << 31, "a tensor of ", numel, " elements is too large for one kernel.");
  return unsigned(blocks);
}

}  // namespace rushlight::cuda
