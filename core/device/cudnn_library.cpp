#include "core/device/cudnn_library.h"

#include <string>

#include "core/device/cuda_library.h"

namespace rushlight::cudnn {
namespace {

// Both packages put the same file into the same folder.
constexpr cuda::LibraryNames kNames = {"cuDNN",           "RUSHLIGHT_CUDNN",  "libcudnn.so.9",
                                       "libcudnn.so.9",   "nvidia/cudnn/lib", "nvidia-cudnn-cu12",
                                       "rushlight[cudnn]"};

constexpr size_t kOldest = 90000;  // major * 10000 + minor * 100 + patch

Functions open() {
  int newest = cuda::driver_major_version();
  Functions f{DynamicLibrary(cuda::library_spec(kNames, newest))};
  size_t version = f.cudnnGetVersion(), runtime = f.cudnnGetCudartVersion() / 1000;
  CHECK(version >= kOldest, "cuDNN: ", f.library.path(), " is of version ", version,
        ", but 9 (90000) or newer is needed. Install it with: pip install ",
        newest < 13 ? kNames.package_12 : kNames.package);
  CHECK(int(runtime) <= newest, "cuDNN: ", f.library.path(), " is for CUDA ", runtime,
        ", but the driver is for CUDA ", newest, ". Install the one that fits: pip install ",
        kNames.package_12);
  return f;
}

}  // namespace

const Functions* functions() {
  static const auto table = cuda::open_optional(kNames.variable, open);
  return table ? &*table : nullptr;
}

std::string error_text(Status status, const char* what) {
  const Functions& f = *functions();
  char details[1024] = "";
  f.cudnnGetLastErrorString(details, sizeof details);
  std::string text = std::string("cuDNN error: ") + f.cudnnGetErrorString(status);
  if (details[0]) text += std::string(": ") + details;
  return text + " (from " + what + "). RUSHLIGHT_CUDNN=off does without cuDNN.";
}

}  // namespace rushlight::cudnn
