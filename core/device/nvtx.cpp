#include "core/device/nvtx.h"

#include "core/device/cuda_library.h"

namespace rushlight::nvtx {
namespace {

// _(name, type)
#define NVTX_FUNCTIONS(_)                           \
  _(nvtxRangePushA, int(const char* message))       \
  _(nvtxRangePop, int())                            \
  _(nvtxRangeStartA, uint64_t(const char* message)) \
  _(nvtxRangeEnd, void(uint64_t range))             \
  _(nvtxMarkA, void(const char* message))

struct Functions {
  DynamicLibrary library;
  NVTX_FUNCTIONS(LIBRARY_FUNCTION)
};

// Null when the library was not found.
const Functions* functions() {
  static const auto table = cuda::open_optional("RUSHLIGHT_NVTX", [] {
    std::string_view file = cuda::setting("RUSHLIGHT_NVTX");
    LibrarySpec spec{"NVTX",
                     {"libnvtx3interop.so.1", "libnvToolsExt.so.1"},
                     {"nvidia/cu13/lib", "nvidia/nvtx/lib", "/usr/local/cuda/lib64"},
                     "nvidia-nvtx"};
    if (!file.empty()) spec = {"NVTX", {std::string(file)}, {}, ""};
    return Functions{DynamicLibrary(spec)};
  });
  return table ? &*table : nullptr;
}

}  // namespace

bool is_available() { return functions() != nullptr; }

int push(const std::string& message) {
  return functions() ? functions()->nvtxRangePushA(message.c_str()) : -1;
}

int pop() { return functions() ? functions()->nvtxRangePop() : -1; }

uint64_t start(const std::string& message) {
  return functions() ? functions()->nvtxRangeStartA(message.c_str()) : 0;
}

void end(uint64_t range) {
  if (functions()) functions()->nvtxRangeEnd(range);
}

void mark(const std::string& message) {
  if (functions()) functions()->nvtxMarkA(message.c_str());
}

}  // namespace rushlight::nvtx
