#include "core/device/cuda_driver.h"

#include <cstdlib>

#include "core/base/error.h"

namespace rushlight::cuda {
namespace {

// The first driver that runs what NVRTC 12 makes.
constexpr int kOldestDriver = 12000;

LibrarySpec driver_spec() {
  if (const char* file = std::getenv("RUSHLIGHT_CUDA_DRIVER")) {
    return {"NVIDIA driver", {file}, {}, ""};
  }
  // Under Windows the driver lies outside the loader's path.
  return {"NVIDIA driver", {"libcuda.so.1"}, {"/usr/lib/wsl/lib"}, ""};
}

}  // namespace

const DriverFunctions& driver() {
  static const DriverFunctions table = [] {
    DriverFunctions loaded{DynamicLibrary(driver_spec())};
    int version = 0;
    loaded.cuDriverGetVersion(&version);
    CHECK(version >= kOldestDriver, "NVIDIA driver: it runs CUDA up to ", version / 1000, ".",
          version % 1000 / 10, ", but at least ", kOldestDriver / 1000, ".",
          kOldestDriver % 1000 / 10, " is needed: a newer driver.");
    return loaded;
  }();
  return table;
}

void raise_error(CUresult result, const char* what) {
  const char* name = nullptr;
  const char* text = nullptr;
  driver().cuGetErrorName(result, &name);
  driver().cuGetErrorString(result, &text);
  ErrorKind kind = result == kErrorOutOfMemory ? ErrorKind::kOutOfMemory : ErrorKind::kRuntime;
  // Programs look for "CUDA error" and "out of memory".
  detail::fail(kind, "CUDA error: ", text ? text : "unknown error", " (",
               name ? name : "CUDA_ERROR_UNKNOWN", " from ", what,
               "). Kernels run after the call that asked for them: with "
               "CUDA_LAUNCH_BLOCKING=1 in the environment the error shows where it "
               "happens.");
}

}  // namespace rushlight::cuda
