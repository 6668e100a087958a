#include "core/device/nccl.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <utility>

#include "core/base/error.h"
#include "core/device/cuda.h"
#include "core/device/cuda_library.h"
#include "core/device/cuda_stream.h"

namespace rushlight::nccl {
namespace {

// ---- the library's types, by nccl.h ------------------------------------------------------------

using Status = int;  // ncclResult_t
constexpr Status kSuccess = 0, kInProgress = 7;
using Comm = ncclComm*;
struct UniqueId {
  char bytes[128];
};
// ncclDataType_t
enum DataType : int {
  kInt8,
  kUint8,
  kInt32,
  kUint32,
  kInt64,
  kUint64,
  kFloat16,
  kFloat32,
  kFloat64,
  kBFloat16,
};

// _(name, type)
#define NCCL_FUNCTIONS(_)                                                                        \
  _(ncclGetVersion, Status(int* version))                                                        \
  _(ncclGetErrorString, const char*(Status status))                                              \
  _(ncclGetLastError, const char*(Comm comm))                                                    \
  _(ncclGetUniqueId, Status(UniqueId* id))                                                       \
  _(ncclCommInitRank, Status(Comm* comm, int size, UniqueId id, int rank))                       \
  _(ncclCommDestroy, Status(Comm comm))                                                          \
  _(ncclCommAbort, Status(Comm comm))                                                            \
  _(ncclCommGetAsyncError, Status(Comm comm, Status* error))                                     \
  _(ncclGroupStart, Status())                                                                    \
  _(ncclGroupEnd, Status())                                                                      \
  _(ncclAllReduce, Status(const void* in, void* out, size_t count, DataType, Reduction, Comm,    \
                          cuda::CUstream))                                                       \
  _(ncclReduce, Status(const void* in, void* out, size_t count, DataType, Reduction, int root,   \
                       Comm, cuda::CUstream))                                                    \
  _(ncclBroadcast,                                                                               \
    Status(const void* in, void* out, size_t count, DataType, int root, Comm, cuda::CUstream))   \
  _(ncclAllGather,                                                                               \
    Status(const void* in, void* out, size_t in_count, DataType, Comm, cuda::CUstream))          \
  _(ncclReduceScatter, Status(const void* in, void* out, size_t out_count, DataType, Reduction,  \
                              Comm, cuda::CUstream))                                             \
  _(ncclSend, Status(const void* data, size_t count, DataType, int peer, Comm, cuda::CUstream))  \
  _(ncclRecv, Status(void* data, size_t count, DataType, int peer, Comm, cuda::CUstream))

struct Functions {
  DynamicLibrary library;
  NCCL_FUNCTIONS(LIBRARY_FUNCTION)
};

constexpr cuda::LibraryNames kNames = {"NCCL",           "RUSHLIGHT_NCCL",  "libnccl.so.2",
                                       "libnccl.so.2",   "nvidia/nccl/lib", "nvidia-nccl-cu12",
                                       "rushlight[nccl]"};

Functions open() {
  cuda::require();
  std::string_view wanted = cuda::setting(kNames.variable);
  CHECK(wanted != "off", "RUSHLIGHT_NCCL=off turns NCCL off. Unset the variable.");
  CHECK(!wanted.empty() || !cuda::has_own_driver(),
        "NCCL calls the system's driver, but RUSHLIGHT_CUDA_DRIVER names another one. Set "
        "RUSHLIGHT_NCCL to a library that fits it.");
  return {DynamicLibrary(cuda::library_spec(kNames, cuda::driver_major_version()))};
}

struct Opened {
  std::optional<Functions> functions;
  std::string problem;
};
const Opened& opened() {
  static const Opened found = []() -> Opened {
    try {
      return {open(), ""};
    } catch (const Error& error) {
      return {{}, error.what()};
    }
  }();
  return found;
}

const Functions& functions() {
  cuda::require();  // also in a forked child of a process that had it
  CHECK(opened().problem.empty(), opened().problem);
  return *opened().functions;
}

std::string describe(Status status, Comm comm) {
  const Functions& f = functions();
  std::string text = f.ncclGetErrorString(status);
  const char* last = f.ncclGetLastError(comm);
  return last && *last ? text + ": " + last : text;
}

void check(Status status, const char* what, Comm comm = nullptr) {
  CHECK(status == kSuccess, "NCCL error: ", describe(status, comm), " (from ", what,
        "). NCCL_DEBUG=WARN in the environment tells more.");
}

struct Elements {
  size_t count;
  DataType type;
};
Elements as_bytes(int64_t count, DType dtype) {
  return {size_t(count) * dtype_size(dtype), kUint8};
}

Elements as_numbers(int64_t count, DType dtype) {
  size_t n = size_t(count);
  switch (dtype) {
    case DType::bool_:
    case DType::uint8: return {n, kUint8};
    case DType::int8: return {n, kInt8};
    case DType::int32: return {n, kInt32};
    case DType::uint32: return {n, kUint32};
    case DType::int64: return {n, kInt64};
    case DType::uint64: return {n, kUint64};
    case DType::float16: return {n, kFloat16};
    case DType::bfloat16: return {n, kBFloat16};
    case DType::float32: return {n, kFloat32};
    case DType::float64: return {n, kFloat64};
    case DType::complex64: return {2 * n, kFloat32};
    case DType::complex128: return {2 * n, kFloat64};
    default:
      detail::fail(ErrorKind::kType, "NCCL does not reduce tensors of ", dtype_name(dtype),
                   ". Convert them to another dtype.");
  }
}

// On bytes that are 0 or 1, "or" is the maximum and "and" the minimum.
Reduction reduction_of(Reduction op, DType dtype) {
  if (!is_bool(dtype)) return op;
  if (op == Reduction::sum) return Reduction::max;
  return op == Reduction::product ? Reduction::min : op;
}

// The stream to queue work of a device on, which is made the driver's current one.
cuda::CUstream stream_of(int device) {
  cuda::activate(device);
  return cuda::current_stream(device).handle;
}

}  // namespace

const std::string& problem() { return opened().problem; }

int version() {
  int version = 0;
  check(functions().ncclGetVersion(&version), "ncclGetVersion");
  return version;
}

Id make_id() {
  UniqueId made;
  cuda::activate(cuda::current_device());
  check(functions().ncclGetUniqueId(&made), "ncclGetUniqueId");
  return std::to_array(made.bytes);
}

void begin_group() { check(functions().ncclGroupStart(), "ncclGroupStart"); }
void end_group() { check(functions().ncclGroupEnd(), "ncclGroupEnd"); }

Communicator::Communicator(const Id& id, int size, int rank, int device)
    : size_(size), rank_(rank), device_(device) {
  UniqueId known;
  std::copy(id.begin(), id.end(), known.bytes);
  cuda::DeviceGuard guard(device);
  cuda::activate(device);
  check(functions().ncclCommInitRank(&handle_, size, known, rank), "ncclCommInitRank");
}

ncclComm* Communicator::handle() const {
  cuda::require();  // in a forked child the handle is the parent's
  std::lock_guard lock(mutex_);
  CHECK(handle_, "the communicator was ended.");
  return handle_;
}

void Communicator::all_reduce(void* data, int64_t count, DType dtype, Reduction op) {
  Comm comm = handle();
  auto [n, type] = as_numbers(count, dtype);
  check(functions().ncclAllReduce(data, data, n, type, reduction_of(op, dtype), comm,
                                  stream_of(device_)),
        "ncclAllReduce", comm);
}

void Communicator::reduce(void* data, int64_t count, DType dtype, Reduction op, int root) {
  Comm comm = handle();
  auto [n, type] = as_numbers(count, dtype);
  check(functions().ncclReduce(data, data, n, type, reduction_of(op, dtype), root, comm,
                               stream_of(device_)),
        "ncclReduce", comm);
}

void Communicator::broadcast(void* data, int64_t count, DType dtype, int root) {
  Comm comm = handle();
  auto [n, type] = as_bytes(count, dtype);
  check(functions().ncclBroadcast(data, data, n, type, root, comm, stream_of(device_)),
        "ncclBroadcast", comm);
}

void Communicator::all_gather(const void* in, void* out, int64_t count, DType dtype) {
  Comm comm = handle();
  auto [n, type] = as_bytes(count, dtype);
  check(functions().ncclAllGather(in, out, n, type, comm, stream_of(device_)), "ncclAllGather",
        comm);
}

void Communicator::reduce_scatter(const void* in, void* out, int64_t count, DType dtype,
                                  Reduction op) {
  Comm comm = handle();
  auto [n, type] = as_numbers(count, dtype);
  check(functions().ncclReduceScatter(in, out, n, type, reduction_of(op, dtype), comm,
                                      stream_of(device_)),
        "ncclReduceScatter", comm);
}

void Communicator::send(const void* data, int64_t count, DType dtype, int peer) {
  Comm comm = handle();
  auto [n, type] = as_bytes(count, dtype);
  check(functions().ncclSend(data, n, type, peer, comm, stream_of(device_)), "ncclSend", comm);
}

void Communicator::receive(void* data, int64_t count, DType dtype, int peer) {
  Comm comm = handle();
  auto [n, type] = as_bytes(count, dtype);
  check(functions().ncclRecv(data, n, type, peer, comm, stream_of(device_)), "ncclRecv", comm);
}

std::string Communicator::error() {
  std::lock_guard lock(mutex_);
  if (!handle_) return "";
  Status found = kSuccess;
  check(functions().ncclCommGetAsyncError(handle_, &found), "ncclCommGetAsyncError", handle_);
  return found == kSuccess || found == kInProgress ? "" : describe(found, handle_);
}

void Communicator::abort() {
  Comm comm;
  {
    std::lock_guard lock(mutex_);
    comm = std::exchange(handle_, nullptr);
  }
  if (!comm) return;
  cuda::activate(device_);
  check(functions().ncclCommAbort(comm), "ncclCommAbort");
}

void Communicator::destroy() {
  Comm comm;
  {
    std::lock_guard lock(mutex_);
    comm = std::exchange(handle_, nullptr);
  }
  if (!comm) return;
  cuda::activate(device_);
  check(functions().ncclCommDestroy(comm), "ncclCommDestroy");
}

}  // namespace rushlight::nccl
