// Owns the handles of the pretended libraries, and the search for LAPACK.
#include "tests/shim/solver.h"

#include <sstream>

#include "core/device/dynamic_library.h"
#include "tests/shim/graph.h"

namespace shim {
namespace {

std::set<SolverHandle*> handles;

}  // namespace

int make_handle(void** result) {
  SHIM_ENTER();
  *result = *handles.insert(new SolverHandle{current_device}).first;
  return kSolved;
}

int bind_handle(void* handle, void* stream) {
  std::lock_guard lock(driver_mutex);
  int status = begin_call(handle);
  if (status == kSolved && !find_stream(stream)) status = kRefused;
  if (status == kSolved) static_cast<SolverHandle*>(handle)->stream = stream;
  return status;
}

int begin_call(void* handle) {
  auto* known = static_cast<SolverHandle*>(handle);
  bool fits =
      handles.contains(known) && known->device == current_device && find_stream(known->stream);
  if (!fits) std::fprintf(stderr, "cuda shim: a handle is not of the current device\n");
  if (fits) finish(find_stream(known->stream));
  return fits ? kSolved : kRefused;
}

int end_call() {
  std::vector<Allocation> damaged = device_memory.close_all();
  for (const Allocation& allocation : damaged)
    std::fprintf(stderr, "cuda shim: a routine wrote beyond the %zu bytes at %p\n", allocation.size,
                 static_cast<void*>(allocation.begin));
  return damaged.empty() ? kSolved : kFailed;
}

void find_lapack() {
  static const bool is_set = [] {
    std::vector<std::string> folders;
    std::istringstream path(RUSHLIGHT_SHIM_LIBRARY_PATH);
    for (std::string folder; std::getline(path, folder, ':');) folders.push_back(folder);
    rushlight::set_library_search_path(folders);
    return true;
  }();
  (void)is_set;
}

}  // namespace shim

using namespace shim;

SHIM_API int cusolverDnCreate(void** handle) { return make_handle(handle); }
SHIM_API int cusolverDnSetStream(void* handle, void* stream) { return bind_handle(handle, stream); }
SHIM_API int cusolverDnCreateParams(void** params) { return make_handle(params); }
SHIM_API int cusolverDnCreateGesvdjInfo(void** params) { return make_handle(params); }
SHIM_API int cusolverDnCreateSyevjInfo(void** params) { return make_handle(params); }
SHIM_API int cublasCreate_v2(void** handle) { return make_handle(handle); }
SHIM_API int cublasSetStream_v2(void* handle, void* stream) { return bind_handle(handle, stream); }
