// Owns the map of kernels that are made when a variant of them is first needed.
#pragma once

#include <map>
#include <mutex>

#include "core/device/cuda_kernel.h"

namespace rushlight::cuda {

// The kernels of a variant, made of it and kept for the life of the process. Safe from any thread.
template <class Kernels, class Variant>
Kernels& kernels_of(const Variant& variant) {
  static auto* mutex = new std::mutex;
  static auto* made = new std::map<Variant, Kernels>;
  std::lock_guard lock(*mutex);
  return made->try_emplace(variant, variant).first->second;
}

// A line of a module's prelude.
inline std::string define(const char* name, const std::string& text = "") {
  return "#define " + std::string(name) + " " + text + "\n";
}

}  // namespace rushlight::cuda
