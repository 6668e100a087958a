#include "core/device/cusolver_library.h"

#include "core/base/error.h"
#include "core/device/cuda_library.h"

namespace rushlight::cusolver {

namespace {

constexpr cuda::LibraryNames kNames = {
    "cuSOLVER",          "RUSHLIGHT_CUSOLVER",  "libcusolver.so.12",
    "libcusolver.so.11", "nvidia/cusolver/lib", "nvidia-cusolver-cu12"};

}  // namespace

const DynamicLibrary& library() {
  static const DynamicLibrary opened = [] {
    std::string_view wanted = cuda::setting(kNames.variable);
    CHECK(wanted != "off",
          "needs cuSOLVER, which RUSHLIGHT_CUSOLVER=off turns off. Unset the "
          "variable, or move the input with .cpu().");
    CHECK(
        !wanted.empty() || !cuda::has_own_driver(),
        "needs cuSOLVER, which calls the system's driver, but RUSHLIGHT_CUDA_DRIVER names another "
        "one. Set RUSHLIGHT_CUSOLVER to a library that fits it.");
    return DynamicLibrary(cuda::library_spec(kNames, cuda::driver_major_version()));
  }();
  return opened;
}

}  // namespace rushlight::cusolver
