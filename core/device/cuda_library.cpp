#include "core/device/cuda_library.h"

#include <cstdlib>

#include "core/device/cuda_driver.h"

namespace rushlight::cuda {

std::string_view setting(const char* variable) {
  const char* value = std::getenv(variable);
  return value ? value : "";
}

LibrarySpec library_spec(const LibraryNames& names, int newest) {
  std::string_view file = setting(names.variable);
  if (!file.empty()) return {names.title, {std::string(file)}, {}, names.package};
  LibrarySpec spec{
      names.title, {names.file_12}, {"nvidia/cu13/lib", names.folder_12}, names.package_12};
  if (newest >= 13) {
    if (std::string_view(names.file_13) != names.file_12)
      spec.files.insert(spec.files.begin(), names.file_13);
    spec.pip_package = names.package;
  }
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
    std::string_view home = setting(variable);
    if (home.starts_with('/')) spec.folders.push_back(std::string(home) + "/lib64");
  }
  spec.folders.push_back("/usr/local/cuda/lib64");
  return spec;
}

int driver_major_version() {
  int version = 0;
  check(driver().cuDriverGetVersion(&version), "cuDriverGetVersion");
  return version / 1000;
}

}  // namespace rushlight::cuda
