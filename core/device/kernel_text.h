// Owns the device texts: every .cu and .cuh file below core/ is embedded as a string by CMake.
//
// core/ops/softmax/softmax.cu becomes `const char* const softmax_cu` in namespace rushlight, to be
// declared where it is used. A text includes another by its path,
// #include "core/device/device_types.cuh".
#pragma once

#include <string>

namespace rushlight {

// Made by the generated files, so that texts find each other.
struct KernelText {
  KernelText(const char* path, const char* text);
};

// The text with its includes in their places, each once, and #line directives, by which the
// compiler's messages name our files. Headers of the standard library are left out.
std::string with_includes(const char* text);

}  // namespace rushlight
