// Owns what is called in the libraries of cuSOLVER and cuBLAS: functions and their types, declared
// by cusolverDn.h, cublas_api.h and library_types.h, and the search for them.
//
// cuSOLVER depends on cuBLAS, so the functions of both are found through the one file.
#pragma once

#include <algorithm>
#include <string>
#include <type_traits>

#include "core/device/cuda_driver.h"
#include "core/device/cusolver.h"
#include "core/device/dynamic_library.h"

namespace rushlight::cusolver {

using Status = int;  // cusolverStatus_t and cublasStatus_t
inline constexpr Status kSuccess = 0;
using Solver = struct cusolverDnContext*;
using Params = struct cusolverDnParams*;
using SvdParams = struct gesvdjInfo*;
using EighParams = struct syevjInfo*;
using Blas = struct cublasContext*;

enum Fill : int { kLower, kUpper };                     // cublasFillMode_t
enum Operation : int { kAsIs, kTransposed, kAdjoint };  // cublasOperation_t
enum Side : int { kLeft, kRight };                      // cublasSideMode_t
enum Diagonal : int { kAnyDiagonal, kUnitDiagonal };    // cublasDiagType_t
enum Vectors : int { kNoVectors, kVectors };            // cusolverEigMode_t
enum DataType : int { kReal32 = 0, kReal64 = 1, kComplex32 = 4, kComplex64 = 5 };  // cudaDataType

template <class T>
inline constexpr bool kIsComplex = !std::is_floating_point_v<T>;
template <class T>
inline constexpr bool kIsSingle = std::is_same_v<Real<T>, float>;
template <class T>
inline constexpr DataType kDataType =
    kIsComplex<T> ? (kIsSingle<T> ? kComplex32 : kComplex64) : (kIsSingle<T> ? kReal32 : kReal64);
template <class T>
inline constexpr char kTypeLetter =
    kIsComplex<T> ? (kIsSingle<T> ? 'C' : 'Z') : (kIsSingle<T> ? 'S' : 'D');

// _(name, type)
#define CUSOLVER_FUNCTIONS(_)                                               \
  _(cusolverDnCreate, Status(Solver* solver))                               \
  _(cusolverDnSetStream, Status(Solver solver, cuda::CUstream stream))      \
  _(cusolverDnCreateParams, Status(Params* params))                         \
  _(cusolverDnCreateGesvdjInfo, Status(SvdParams* params))                  \
  _(cusolverDnCreateSyevjInfo, Status(EighParams* params))                  \
  _(cublasCreate_v2, Status(Blas* blas))                                    \
  _(cublasSetStream_v2, Status(Blas blas, cuda::CUstream stream))

// _(name here, name in the library where ? is the type's letter, type)
#define CUSOLVER_TYPED_FUNCTIONS(_)                                                               \
  _(getrf_size, "cusolverDn?getrf_bufferSize",                                                    \
    Status(Solver, int m, int n, T* a, int lda, int* lwork))                                      \
  _(getrf, "cusolverDn?getrf",                                                                    \
    Status(Solver, int m, int n, T* a, int lda, T* work, int* pivots, int* info))                 \
  _(getrf_batched, "cublas?getrfBatched",                                                         \
    Status(Blas, int n, T* const* a, int lda, int* pivots, int* info, int count))                 \
  _(getrs, "cusolverDn?getrs",                                                                    \
    Status(Solver, Operation, int n, int columns, const T* a, int lda, const int* pivots, T* b,   \
           int ldb, int* info))                                                                   \
  _(getrs_batched, "cublas?getrsBatched",                                                         \
    Status(Blas, Operation, int n, int columns, const T* const* a, int lda, const int* pivots,    \
           T* const* b, int ldb, int* info_on_host, int count))                                   \
  _(potrf_size, "cusolverDn?potrf_bufferSize",                                                    \
    Status(Solver, Fill, int n, T* a, int lda, int* lwork))                                       \
  _(potrf, "cusolverDn?potrf",                                                                    \
    Status(Solver, Fill, int n, T* a, int lda, T* work, int lwork, int* info))                    \
  _(potrf_batched, "cusolverDn?potrfBatched",                                                     \
    Status(Solver, Fill, int n, T* const* a, int lda, int* info, int count))                      \
  _(trsm, "cublas?trsm_v2",                                                                       \
    Status(Blas, Side, Fill, Operation, Diagonal, int m, int n, const T* alpha, const T* a,       \
           int lda, T* b, int ldb))                                                               \
  _(trsm_batched, "cublas?trsmBatched",                                                           \
    Status(Blas, Side, Fill, Operation, Diagonal, int m, int n, const T* alpha,                   \
           const T* const* a, int lda, T* const* b, int ldb, int count))                          \
  _(sytrf_size, "cusolverDn?sytrf_bufferSize",                                                    \
    Status(Solver, int n, T* a, int lda, int* lwork))                                             \
  _(sytrf, "cusolverDn?sytrf",                                                                    \
    Status(Solver, Fill, int n, T* a, int lda, int* pivots, T* work, int lwork, int* info))       \
  _(geqrf_size, "cusolverDn?geqrf_bufferSize",                                                    \
    Status(Solver, int m, int n, T* a, int lda, int* lwork))                                      \
  _(geqrf, "cusolverDn?geqrf",                                                                    \
    Status(Solver, int m, int n, T* a, int lda, T* tau, T* work, int lwork, int* info))           \
  _(orgqr_size, kIsComplex<T> ? "cusolverDn?ungqr_bufferSize" : "cusolverDn?orgqr_bufferSize",    \
    Status(Solver, int m, int n, int k, const T* a, int lda, const T* tau, int* lwork))           \
  _(orgqr, kIsComplex<T> ? "cusolverDn?ungqr" : "cusolverDn?orgqr",                               \
    Status(Solver, int m, int n, int k, T* a, int lda, const T* tau, T* work, int lwork,          \
           int* info))                                                                            \
  _(ormqr_size, kIsComplex<T> ? "cusolverDn?unmqr_bufferSize" : "cusolverDn?ormqr_bufferSize",    \
    Status(Solver, Side, Operation, int m, int n, int k, const T* a, int lda, const T* tau,       \
           const T* c, int ldc, int* lwork))                                                      \
  _(ormqr, kIsComplex<T> ? "cusolverDn?unmqr" : "cusolverDn?ormqr",                               \
    Status(Solver, Side, Operation, int m, int n, int k, const T* a, int lda, const T* tau, T* c, \
           int ldc, T* work, int lwork, int* info))                                               \
  _(gesvdj_size, "cusolverDn?gesvdj_bufferSize",                                                  \
    Status(Solver, Vectors, int economic, int m, int n, const T* a, int lda, const Real<T>* s,    \
           const T* u, int ldu, const T* v, int ldv, int* lwork, SvdParams))                      \
  _(gesvdj, "cusolverDn?gesvdj",                                                                  \
    Status(Solver, Vectors, int economic, int m, int n, T* a, int lda, Real<T>* s, T* u, int ldu, \
           T* v, int ldv, T* work, int lwork, int* info, SvdParams))                              \
  _(gesvdj_batched_size, "cusolverDn?gesvdjBatched_bufferSize",                                   \
    Status(Solver, Vectors, int m, int n, const T* a, int lda, const Real<T>* s, const T* u,      \
           int ldu, const T* v, int ldv, int* lwork, SvdParams, int count))                       \
  _(gesvdj_batched, "cusolverDn?gesvdjBatched",                                                   \
    Status(Solver, Vectors, int m, int n, T* a, int lda, Real<T>* s, T* u, int ldu, T* v,         \
           int ldv, T* work, int lwork, int* info, SvdParams, int count))                         \
  _(gesvd_size, "cusolverDn?gesvd_bufferSize", Status(Solver, int m, int n, int* lwork))          \
  _(gesvd, "cusolverDn?gesvd",                                                                    \
    Status(Solver, signed char job_u, signed char job_vh, int m, int n, T* a, int lda,            \
           Real<T>* s, T* u, int ldu, T* vh, int ldvh, T* work, int lwork, Real<T>* real_work,    \
           int* info))                                                                            \
  _(heevd_size, kIsComplex<T> ? "cusolverDn?heevd_bufferSize" : "cusolverDn?syevd_bufferSize",    \
    Status(Solver, Vectors, Fill, int n, const T* a, int lda, const Real<T>* values,              \
           int* lwork))                                                                           \
  _(heevd, kIsComplex<T> ? "cusolverDn?heevd" : "cusolverDn?syevd",                               \
    Status(Solver, Vectors, Fill, int n, T* a, int lda, Real<T>* values, T* work, int lwork,      \
           int* info))                                                                            \
  _(heevj_size,                                                                                   \
    kIsComplex<T> ? "cusolverDn?heevjBatched_bufferSize" : "cusolverDn?syevjBatched_bufferSize",  \
    Status(Solver, Vectors, Fill, int n, const T* a, int lda, const Real<T>* values, int* lwork,  \
           EighParams, int count))                                                                \
  _(heevj, kIsComplex<T> ? "cusolverDn?heevjBatched" : "cusolverDn?syevjBatched",                 \
    Status(Solver, Vectors, Fill, int n, T* a, int lda, Real<T>* values, T* work, int lwork,      \
           int* info, EighParams, int count))

// Routines for all types, with work on the device and on the host. Libraries differ in which of
// them they have, so each is looked for when it is wanted.
using GeevSize = Status(Solver, Params, Vectors left, Vectors right, int64_t n, DataType,
                        const void* a, int64_t lda, DataType, const void* values, DataType,
                        const void* vl, int64_t ldvl, DataType, const void* vr, int64_t ldvr,
                        DataType compute, size_t* device_bytes, size_t* host_bytes);
using Geev = Status(Solver, Params, Vectors left, Vectors right, int64_t n, DataType, void* a,
                    int64_t lda, DataType, void* values, DataType, void* vl, int64_t ldvl, DataType,
                    void* vr, int64_t ldvr, DataType compute, void* device_work,
                    size_t device_bytes, void* host_work, size_t host_bytes, int* info);
using HetrfSize = Status(Solver, Params, Fill, int64_t n, DataType, const void* a, int64_t lda,
                         const int64_t* pivots, DataType compute, size_t* device_bytes,
                         size_t* host_bytes);
using Hetrf = Status(Solver, Params, Fill, int64_t n, DataType, void* a, int64_t lda,
                     int64_t* pivots, DataType compute, void* device_work, size_t device_bytes,
                     void* host_work, size_t host_bytes, int* info);
// Of hetrs the parameters come first; sytrs has none.
template <class... First>
using SytrsSize = Status(Solver, First..., Fill, int64_t n, int64_t columns, DataType,
                         const void* a, int64_t lda, const int64_t* pivots, DataType, void* b,
                         int64_t ldb, size_t* device_bytes, size_t* host_bytes);
template <class... First>
using Sytrs = Status(Solver, First..., Fill, int64_t n, int64_t columns, DataType, const void* a,
                     int64_t lda, const int64_t* pivots, DataType, void* b, int64_t ldb,
                     void* device_work, size_t device_bytes, void* host_work, size_t host_bytes,
                     int* info);

// Opened at first use; raises when it is not there or not wanted.
const DynamicLibrary& library();

template <class Function>
Function* load(const std::string& name) {
  return library().find<Function>(name.c_str());
}

struct Functions {
  DynamicLibrary library;
  CUSOLVER_FUNCTIONS(LIBRARY_FUNCTION)
};
inline const Functions& functions() {
  static const Functions table{library()};
  return table;
}

template <class T>
std::string typed_name(std::string name) {
  std::replace(name.begin(), name.end(), '?', kTypeLetter<T>);
  return name;
}
template <class T>
struct TypedFunctions {
#define CUSOLVER_MEMBER(member, name, ...) \
  using member##_type = __VA_ARGS__;       \
  member##_type* member = load<member##_type>(typed_name<T>(name));
  CUSOLVER_TYPED_FUNCTIONS(CUSOLVER_MEMBER)
#undef CUSOLVER_MEMBER
};
template <class T>
const TypedFunctions<T>& functions_of() {
  static const TypedFunctions<T> table;
  return table;
}

}  // namespace rushlight::cusolver
