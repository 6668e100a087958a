#include "core/device/nvrtc.h"

#include <array>
#include <atomic>
#include <cstdlib>
#include <limits>
#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "core/device/cuda_library.h"
#include "core/device/kernel_cache.h"

namespace rushlight::nvrtc {
namespace {

using nvrtcResult = int;
using nvrtcProgram = struct _nvrtcProgram*;
constexpr nvrtcResult kSuccess = 0;
constexpr nvrtcResult kErrorInvalidOption = 5;

// _(name, type)
#define NVRTC_FUNCTIONS(_)                                                                      \
  _(nvrtcVersion, nvrtcResult(int* major, int* minor))                                          \
  _(nvrtcGetErrorString, const char*(nvrtcResult result))                                       \
  _(nvrtcCreateProgram,                                                                         \
    nvrtcResult(nvrtcProgram* program, const char* text, const char* name, int header_count,    \
                const char* const* headers, const char* const* header_names))                   \
  _(nvrtcDestroyProgram, nvrtcResult(nvrtcProgram* program))                                    \
  _(nvrtcAddNameExpression, nvrtcResult(nvrtcProgram program, const char* expression))          \
  _(nvrtcGetLoweredName,                                                                        \
    nvrtcResult(nvrtcProgram program, const char* expression, const char** name))               \
  _(nvrtcCompileProgram,                                                                        \
    nvrtcResult(nvrtcProgram program, int option_count, const char* const* options))            \
  _(nvrtcGetProgramLogSize, nvrtcResult(nvrtcProgram program, size_t* bytes))                   \
  _(nvrtcGetProgramLog, nvrtcResult(nvrtcProgram program, char* log))                           \
  _(nvrtcGetCUBINSize, nvrtcResult(nvrtcProgram program, size_t* bytes))                        \
  _(nvrtcGetCUBIN, nvrtcResult(nvrtcProgram program, char* cubin))                              \
  _(nvrtcGetPTXSize, nvrtcResult(nvrtcProgram program, size_t* bytes))                          \
  _(nvrtcGetPTX, nvrtcResult(nvrtcProgram program, char* ptx))

struct Nvrtc {
  DynamicLibrary library;
  NVRTC_FUNCTIONS(LIBRARY_FUNCTION)

  std::string version = {};
};

std::atomic<int> newest_major_version{std::numeric_limits<int>::max()};

constexpr cuda::LibraryNames kNames = {
    "NVRTC",          "RUSHLIGHT_NVRTC",       "libnvrtc.so.13",
    "libnvrtc.so.12", "nvidia/cuda_nvrtc/lib", "nvidia-cuda-nvrtc-cu12"};

const Nvrtc& functions() {
  static const Nvrtc table = [] {
    LibrarySpec spec = cuda::library_spec(kNames, newest_major_version);
    spec.companions = {"libnvrtc-builtins.so."};
    Nvrtc loaded{DynamicLibrary(spec)};
    int major = 0, minor = 0;
    loaded.nvrtcVersion(&major, &minor);
    loaded.version = std::to_string(major) + "." + std::to_string(minor);
    return loaded;
  }();
  return table;
}

void check(nvrtcResult result, const char* what) {
  CHECK(result == kSuccess, "NVRTC error: ", functions().nvrtcGetErrorString(result), " (from ",
        what, ").");
}

class Program {
 public:
  Program(const std::string& name, const std::string& text) {
    check(functions().nvrtcCreateProgram(&program_, text.c_str(), (name + ".cu").c_str(), 0,
                                         nullptr, nullptr),
          "nvrtcCreateProgram");
  }
  ~Program() { functions().nvrtcDestroyProgram(&program_); }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  nvrtcResult compile(const std::string& arch) {
    return compile_with(arch, {kOptions.begin(), kOptions.end()});
  }
  nvrtcResult compile_with(const std::string& arch, std::vector<const char*> options) {
    std::string architecture = "--gpu-architecture=" + arch;
    options.push_back(architecture.c_str());
    return functions().nvrtcCompileProgram(program_, int(options.size()), options.data());
  }

  // Both say the function in the same words, one before and one after the program is compiled.
  void want(const std::string& function) {
    check(functions().nvrtcAddNameExpression(program_, function.c_str()), function.c_str());
  }
  std::string entry_of(const std::string& function) {
    const char* name = nullptr;
    check(functions().nvrtcGetLoweredName(program_, function.c_str(), &name), function.c_str());
    return name;
  }

  std::string log() {
    return read(functions().nvrtcGetProgramLogSize, functions().nvrtcGetProgramLog);
  }
  std::string cubin() { return read(functions().nvrtcGetCUBINSize, functions().nvrtcGetCUBIN); }
  std::string ptx() { return read(functions().nvrtcGetPTXSize, functions().nvrtcGetPTX); }

  // Functions without a mark are for the device, so that texts shared with the CPU need none, and
  // GCC's attributes and pragmas there are no news. Products are not contracted into fused
  // multiply-adds, as on the CPU, so that both give the same digits.
  static constexpr std::array kOptions = {"--std=c++20", "--device-as-default-execution-space",
                                          "--fmad=false", "--diag-suppress=161,1097"};

 private:
  std::string read(nvrtcResult (*size)(nvrtcProgram, size_t*),
                   nvrtcResult (*get)(nvrtcProgram, char*)) {
    size_t bytes = 0;
    check(size(program_, &bytes), "a size of a result");
    std::string result(bytes, '\0');
    check(get(program_, result.data()), "a result");
    return result;
  }

  nvrtcProgram program_ = nullptr;
};

// The line that says what is wrong, which follows warnings and notes.
std::string first_error(const std::string& log) {
  std::string_view text(log.c_str());
  size_t error = text.find("error");
  if (error == std::string_view::npos) return std::string(text.substr(0, text.find('\n')));
  size_t begin = text.rfind('\n', error) + 1;
  return std::string(text.substr(begin, text.find('\n', error) - begin));
}

// Virtual architectures for GPUs that are newer than this NVRTC, newest first.
constexpr std::array kVirtualArchitectures = {120, 100, 90, 80};

}  // namespace

void limit_major_version(int newest) { newest_major_version = newest; }

const std::string& version() { return functions().version; }
const std::string& library_path() { return functions().library.path(); }

std::string compiler_key() {
  std::string key = "NVRTC " + version();
  for (const char* option : Program::kOptions) key += std::string(" ") + option;
  return key;
}

std::string compile(const std::string& name, const std::string& text, const std::string& arch) {
  std::vector<std::string> architectures = {arch};
  if (arch.starts_with("sm_")) {
    int capability = std::atoi(arch.c_str() + 3);
    for (int older : kVirtualArchitectures) {
      if (older < capability) architectures.push_back("compute_" + std::to_string(older));
    }
  }
  std::string log;
  for (const std::string& known : architectures) {
    Program program(name, text);
    nvrtcResult result = program.compile(known);
    if (result == kSuccess) return known == arch ? program.cubin() : program.ptx();
    log = program.log();
    if (result != kErrorInvalidOption) break;
  }
  detail::fail(name, ": NVRTC ", version(), " failed for ", arch, "; the text is kept at ",
               keep_failed_text(name, text), "; first error: ", first_error(log), ".");
}

OwnKernel compile_own(const std::string& text, const std::string& function, const std::string& arch,
                      const std::vector<std::string>& options) {
  Program program(function, text);
  program.want(function);
  std::vector<const char*> given;
  for (const std::string& option : options) given.push_back(option.c_str());
  nvrtcResult result = program.compile_with(arch, given);
  CHECK(result == kSuccess, "Kernel compilation failed:\n", program.log().c_str());
  return {program.cubin(), program.entry_of(function)};
}

}  // namespace rushlight::nvrtc
