// Owns NVRTC's entry points.
#include <algorithm>
#include <cstring>

#include "tests/shim/compile.h"
#include "tests/shim/driver.h"
#include "tests/shim/rewrite.h"

namespace shim {
namespace {

enum NvrtcResult : int {
  kNvrtcSuccess = 0,
  kNvrtcInvalidInput = 3,
  kNvrtcInvalidProgram = 4,
  kNvrtcInvalidOption = 5,
  kNvrtcCompilation = 6,
  kNvrtcNameNotValid = 10,
};
constexpr const char* kNvrtcNames[] = {"NVRTC_SUCCESS",
                                       "NVRTC_ERROR_OUT_OF_MEMORY",
                                       "NVRTC_ERROR_PROGRAM_CREATION_FAILURE",
                                       "NVRTC_ERROR_INVALID_INPUT",
                                       "NVRTC_ERROR_INVALID_PROGRAM",
                                       "NVRTC_ERROR_INVALID_OPTION",
                                       "NVRTC_ERROR_COMPILATION",
                                       "NVRTC_ERROR_BUILTIN_OPERATION_FAILURE"};

Program* to_program(void* handle) { return static_cast<Program*>(handle); }

NvrtcResult copy_out(const std::string& from, char* to) {
  std::copy(from.begin(), from.end(), to);
  return kNvrtcSuccess;
}

}  // namespace
}  // namespace shim

using namespace shim;

SHIM_API const char* nvrtcGetErrorString(int code) {
  bool known = code >= 0 && size_t(code) < std::size(kNvrtcNames);
  return known ? kNvrtcNames[code] : "NVRTC_ERROR unknown";
}

// The hash makes caches tell binaries apart that were made with different preludes, and from those
// of the real NVRTC.
SHIM_API int nvrtcVersion(int* major, int* minor) {
  constexpr unsigned kHashes = 1000000, kNoRealVersion = 1000;
  *major = 12;
  *minor = int(kNoRealVersion + prelude_hash() % kHashes);
  return kNvrtcSuccess;
}

SHIM_API int nvrtcCreateProgram(void** result, const char* text, const char* name, int header_count,
                                const char* const* headers, const char* const* include_names) {
  if (!text) return kNvrtcInvalidInput;
  Program* program = new Program;
  program->name = name && *name ? name : "default_program";
  program->text = text;
  for (int i = 0; i < header_count; ++i) {
    program->headers.emplace_back(include_names[i], headers[i]);
  }
  *result = program;
  return kNvrtcSuccess;
}

SHIM_API int nvrtcDestroyProgram(void** program) {
  delete to_program(*program);
  *program = nullptr;
  return kNvrtcSuccess;
}

SHIM_API int nvrtcAddNameExpression(void* program, const char* expression) {
  to_program(program)->name_expressions.push_back(expression);
  return kNvrtcSuccess;
}

SHIM_API int nvrtcGetLoweredName(void* handle, const char* expression, const char** lowered) {
  const Program& program = *to_program(handle);
  const auto& names = program.name_expressions;
  size_t i = std::find(names.begin(), names.end(), expression) - names.begin();
  if (i == names.size() || program.binary.empty()) return kNvrtcNameNotValid;
  static thread_local std::string name;
  name = lowered_name(i);
  *lowered = name.c_str();
  return kNvrtcSuccess;
}

SHIM_API int nvrtcCompileProgram(void* handle, int count, const char* const* options) {
  if (!handle) return kNvrtcInvalidProgram;
  Program& program = *to_program(handle);
  if (!translate_options({options, options + count}, program)) return kNvrtcInvalidOption;
  return compile(program) ? kNvrtcSuccess : kNvrtcCompilation;
}

SHIM_API int nvrtcGetProgramLogSize(void* program, size_t* size) {
  *size = to_program(program)->log.size() + 1;  // with the terminating zero
  return kNvrtcSuccess;
}

SHIM_API int nvrtcGetProgramLog(void* program, char* log) {
  const std::string& text = to_program(program)->log;
  std::memcpy(log, text.c_str(), text.size() + 1);
  return kNvrtcSuccess;
}

SHIM_API int nvrtcGetCUBINSize(void* program, size_t* size) {
  *size = to_program(program)->binary.size();
  return kNvrtcSuccess;
}

SHIM_API int nvrtcGetCUBIN(void* program, char* bytes) {
  return copy_out(to_program(program)->binary, bytes);
}

// A module loads either.
SHIM_API int nvrtcGetPTXSize(void* program, size_t* size) {
  return nvrtcGetCUBINSize(program, size);
}

SHIM_API int nvrtcGetPTX(void* program, char* bytes) { return nvrtcGetCUBIN(program, bytes); }
