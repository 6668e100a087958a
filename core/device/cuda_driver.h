// Owns the CUDA driver (libcuda.so.1): the functions that we call, their types and their errors.
//
// The types are declared here, by the ABI of the driver, as nothing of CUDA is needed to build.
// Only core/device/ calls these functions. RUSHLIGHT_CUDA_DRIVER names another library file.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/device/dynamic_library.h"

namespace rushlight::cuda {

using CUresult = int;
using CUdevice = int;
using CUdeviceptr = unsigned long long;
using CUcontext = struct CUctx_st*;
using CUstream = struct CUstream_st*;
using CUevent = struct CUevent_st*;
using CUmodule = struct CUmod_st*;
using CUfunction = struct CUfunc_st*;
using CUmemoryPool = struct CUmemPoolHandle_st*;
using CUgraph = struct CUgraph_st*;
using CUgraphExec = struct CUgraphExec_st*;
using CUgraphNode = struct CUgraphNode_st*;
struct CUuuid {
  unsigned char bytes[16];
};

inline constexpr CUresult kSuccess = 0;
inline constexpr CUresult kErrorOutOfMemory = 2;
inline constexpr CUresult kErrorNoDevice = 100;
inline constexpr CUresult kErrorNotReady = 600;

// CUdevice_attribute
inline constexpr int kMaxThreadsPerBlock = 1;
inline constexpr int kMaxSharedMemoryPerBlock = 8;
inline constexpr int kWarpSize = 10;
inline constexpr int kMultiprocessorCount = 16;
inline constexpr int kIntegrated = 18;
inline constexpr int kL2CacheSize = 38;
inline constexpr int kMaxThreadsPerMultiprocessor = 39;
inline constexpr int kComputeCapabilityMajor = 75;
inline constexpr int kComputeCapabilityMinor = 76;
inline constexpr int kMaxSharedMemoryPerMultiprocessor = 81;
inline constexpr int kMaxRegistersPerMultiprocessor = 82;
inline constexpr int kMaxSharedMemoryPerBlockOptin = 97;

// CUmemPool_attribute; the values are 64 bits wide.
inline constexpr int kPoolReleaseThreshold = 4;
inline constexpr int kPoolReservedCurrent = 5;
inline constexpr int kPoolReservedHigh = 6;

// CUfunction_attribute
inline constexpr int kFunctionMaxThreadsPerBlock = 0;
inline constexpr int kFunctionStaticSharedBytes = 1;
inline constexpr int kFunctionMaxDynamicSharedBytes = 8;

// CUstreamCaptureStatus and CUstreamCaptureMode
inline constexpr int kCaptureActive = 1;
inline constexpr int kCaptureRelaxed = 2;

inline constexpr unsigned kStreamNonBlocking = 1;
inline constexpr unsigned kEventBlockingSync = 1;
inline constexpr unsigned kEventDisableTiming = 2;

// _(name of the symbol, type)
#define CUDA_DRIVER_FUNCTIONS(_)                                                                \
  _(cuInit, CUresult(unsigned flags))                                                           \
  _(cuDriverGetVersion, CUresult(int* version))                                                 \
  _(cuGetErrorName, CUresult(CUresult error, const char** name))                                \
  _(cuGetErrorString, CUresult(CUresult error, const char** text))                              \
  _(cuDeviceGetCount, CUresult(int* count))                                                     \
  _(cuDeviceGet, CUresult(CUdevice* device, int ordinal))                                       \
  _(cuDeviceGetName, CUresult(char* name, int length, CUdevice device))                         \
  _(cuDeviceGetAttribute, CUresult(int* value, int attribute, CUdevice device))                 \
  _(cuDeviceTotalMem_v2, CUresult(size_t* bytes, CUdevice device))                              \
  _(cuDeviceGetUuid, CUresult(CUuuid* uuid, CUdevice device))                                   \
  _(cuDevicePrimaryCtxRetain, CUresult(CUcontext* context, CUdevice device))                    \
  _(cuCtxSetCurrent, CUresult(CUcontext context))                                               \
  _(cuCtxGetCurrent, CUresult(CUcontext* context))                                              \
  _(cuCtxSynchronize, CUresult())                                                               \
  _(cuDeviceCanAccessPeer, CUresult(int* can, CUdevice device, CUdevice peer))                  \
  _(cuProfilerStart, CUresult())                                                                \
  _(cuProfilerStop, CUresult())                                                                 \
  _(cuMemGetInfo_v2, CUresult(size_t* free, size_t* total))                                     \
  _(cuMemAllocAsync, CUresult(CUdeviceptr* data, size_t bytes, CUstream stream))                \
  _(cuMemFreeAsync, CUresult(CUdeviceptr data, CUstream stream))                                \
  _(cuMemAlloc_v2, CUresult(CUdeviceptr* data, size_t bytes))                                   \
  _(cuMemFree_v2, CUresult(CUdeviceptr data))                                                   \
  _(cuDeviceGetDefaultMemPool, CUresult(CUmemoryPool* pool, CUdevice device))                   \
  _(cuMemPoolSetAttribute, CUresult(CUmemoryPool pool, int attribute, void* value))             \
  _(cuMemPoolGetAttribute, CUresult(CUmemoryPool pool, int attribute, void* value))             \
  _(cuMemPoolTrimTo, CUresult(CUmemoryPool pool, size_t bytes_to_keep))                         \
  _(cuMemAllocHost_v2, CUresult(void** data, size_t bytes))                                     \
  _(cuMemFreeHost, CUresult(void* data))                                                        \
  _(cuMemHostRegister_v2, CUresult(void* data, size_t bytes, unsigned flags))                   \
  _(cuMemHostUnregister, CUresult(void* data))                                                  \
  _(cuMemcpyHtoDAsync_v2,                                                                       \
    CUresult(CUdeviceptr to, const void* from, size_t bytes, CUstream stream))                  \
  _(cuMemcpyDtoHAsync_v2, CUresult(void* to, CUdeviceptr from, size_t bytes, CUstream stream))  \
  _(cuMemcpyDtoDAsync_v2,                                                                       \
    CUresult(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream))                  \
  _(cuMemcpyPeerAsync, CUresult(CUdeviceptr to, CUcontext to_context, CUdeviceptr from,         \
                                CUcontext from_context, size_t bytes, CUstream stream))         \
  _(cuMemsetD8Async, CUresult(CUdeviceptr to, unsigned char value, size_t count, CUstream stream)) \
  _(cuStreamCreateWithPriority, CUresult(CUstream* stream, unsigned flags, int priority))       \
  _(cuStreamSynchronize, CUresult(CUstream stream))                                             \
  _(cuStreamQuery, CUresult(CUstream stream))                                                   \
  _(cuStreamWaitEvent, CUresult(CUstream stream, CUevent event, unsigned flags))                \
  _(cuStreamBeginCapture_v2, CUresult(CUstream stream, int mode))                               \
  _(cuStreamEndCapture, CUresult(CUstream stream, CUgraph* graph))                              \
  _(cuStreamIsCapturing, CUresult(CUstream stream, int* status))                                \
  _(cuStreamGetCaptureInfo_v2,                                                                  \
    CUresult(CUstream stream, int* status, uint64_t* id, CUgraph* graph,                        \
             const CUgraphNode** nodes, size_t* node_count))                                    \
  _(cuThreadExchangeStreamCaptureMode, CUresult(int* mode))                                     \
  _(cuGraphInstantiateWithFlags,                                                                \
    CUresult(CUgraphExec* exec, CUgraph graph, unsigned long long flags))                       \
  _(cuGraphLaunch, CUresult(CUgraphExec exec, CUstream stream))                                 \
  _(cuGraphExecDestroy, CUresult(CUgraphExec exec))                                             \
  _(cuGraphDestroy, CUresult(CUgraph graph))                                                    \
  _(cuGraphGetNodes, CUresult(CUgraph graph, CUgraphNode* nodes, size_t* count))                \
  _(cuGraphDebugDotPrint, CUresult(CUgraph graph, const char* path, unsigned flags))            \
  _(cuEventCreate, CUresult(CUevent* event, unsigned flags))                                    \
  _(cuEventRecord, CUresult(CUevent event, CUstream stream))                                    \
  _(cuEventSynchronize, CUresult(CUevent event))                                                \
  _(cuEventQuery, CUresult(CUevent event))                                                      \
  _(cuEventElapsedTime, CUresult(float* milliseconds, CUevent start, CUevent end))              \
  _(cuEventDestroy_v2, CUresult(CUevent event))                                                 \
  _(cuModuleLoadData, CUresult(CUmodule* module, const void* image))                            \
  _(cuModuleGetFunction, CUresult(CUfunction* function, CUmodule module, const char* name))     \
  _(cuFuncSetAttribute, CUresult(CUfunction function, int attribute, int value))                \
  _(cuFuncGetAttribute, CUresult(int* value, int attribute, CUfunction function))               \
  _(cuLaunchKernel, CUresult(CUfunction function, unsigned grid_x, unsigned grid_y,             \
                             unsigned grid_z, unsigned block_x, unsigned block_y,               \
                             unsigned block_z, unsigned shared_bytes, CUstream stream,          \
                             void** arguments, void** extra))

struct DriverFunctions {
  DynamicLibrary library;
  CUDA_DRIVER_FUNCTIONS(LIBRARY_FUNCTION)
};

// Opened at first use, not initialized by it; raises when there is no driver or an old one.
const DriverFunctions& driver();

[[noreturn, gnu::cold]] void raise_error(CUresult result, const char* what);

// Raises "CUDA error: ..." with the driver's words for what went wrong in `what`.
inline void check(CUresult result, const char* what) {
  if (result != kSuccess) [[unlikely]]
    raise_error(result, what);
}

}  // namespace rushlight::cuda
