// Owns the search for NVIDIA's libraries beside the driver, of which each version of CUDA has its
// own: in pip's packages, in a CUDA toolkit, and where the system looks.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/base/error.h"
#include "core/device/dynamic_library.h"

namespace rushlight::cuda {

struct LibraryNames {
  const char* title;              // "cuSOLVER", for messages
  const char* variable;           // of the environment, which names another file
  const char *file_13, *file_12;  // for CUDA 13 and 12
  const char* folder_12;          // of pip's package for CUDA 12; those for 13 share a folder
  const char* package_12;         // its name
  const char* package = "rushlight[cuda]";  // what has the library for CUDA 13
};

// The value of a variable of the environment; "" when it is not set.
std::string_view setting(const char* variable);
// Whether RUSHLIGHT_CUDA_DRIVER names the driver. NVIDIA's libraries call the system's all the
// same.
inline bool has_own_driver() { return !setting("RUSHLIGHT_CUDA_DRIVER").empty(); }
// Where a library lies that runs with a driver for CUDA of this major version.
LibrarySpec library_spec(const LibraryNames& names, int newest);
// The major version of CUDA that the driver is for.
int driver_major_version();

// What open() gives for a library that programs can do without; nothing when it is not found or
// does not fit, when its variable of the environment is "off", or when the driver is our own. A
// file that the variable names must open.
template <class Open>
auto open_optional(const char* variable, Open open) -> std::optional<decltype(open())> {
  std::string_view file = setting(variable);
  bool is_asked_for = !file.empty();
  if (file == "off" || (!is_asked_for && has_own_driver())) return std::nullopt;
  try {
    return open();
  } catch (const Error&) {
    if (is_asked_for) throw;
    return std::nullopt;
  }
}

}  // namespace rushlight::cuda
