// Owns what the entry points of the pretended cuSOLVER, cuBLAS and cuDNN share: their handles, and
// the checks of arguments, which are refused where the real libraries would refuse or go wrong.
//
// LAPACK does the work of the first two. The memory of the device is open for the length of a call.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "core/device/lapack.h"
#include "tests/shim/driver.h"
#include "tests/shim/memory.h"

namespace shim {

namespace lapack = rushlight::lapack;
using lapack::Lapack;

// cusolverStatus_t
enum SolverStatus : int { kSolved = 0, kRefused = 3, kFailed = 6 };

// Of all these libraries.
struct SolverHandle {
  Device* device;
  void* stream = nullptr;
};

template <class T>
inline constexpr bool kIsComplex = !std::is_floating_point_v<T>;

inline void expect(bool condition, const std::string& rule) {
  if (!condition) throw std::invalid_argument(rule);
}
// Sizes are positive: Rushlight never asks for nothing.
template <class... Sizes>
void expect_sizes(Sizes... sizes) {
  expect(((sizes > 0) && ...), "a size is not positive");
}
// Of an enumeration that counts from 0.
inline void expect_choice(int value, int count) {
  expect(value >= 0 && value < count, "a choice is out of range");
}

// cublasFillMode_t as LAPACK's letter.
inline char fill(int value) {
  expect_choice(value, 2);
  return "LU"[value];
}

// Opens memory of the current device.
template <class T>
T* open_range(const T* begin, size_t count) {
  Allocation* found = device_memory.find(begin, count * sizeof(T));
  expect(found && found->device == current_device->index,
         device_memory.describe(begin) + " begin " + std::to_string(count * sizeof(T)) +
             " bytes that are not the current device's");
  expect(reinterpret_cast<uintptr_t>(begin) % alignof(T) == 0, "an address is misaligned");
  device_memory.open(*found);
  return const_cast<T*>(begin);
}
template <class T>
T* open_matrix(const T* begin, int64_t rows, int64_t columns, int64_t stride) {
  expect(stride >= std::max<int64_t>(rows, 1), "a leading dimension is too small");
  return open_range(begin, size_t(stride * (columns - 1) + rows));
}
// The matrices of a batch by the addresses of them that lie on the device.
template <class T, class F>
void for_each_opened(T* const* batch, int64_t count, int64_t rows, int64_t columns, int64_t stride,
                     F&& f) {
  T** addresses = open_range(const_cast<T**>(batch), size_t(count));
  for (int64_t i = 0; i < count; ++i) f(i, open_matrix(addresses[i], rows, columns, stride));
}

// a = L U in its place, without the exchanges of rows that LAPACK makes.
template <class T>
int eliminate(int64_t m, int64_t n, T* a, int64_t lda) {
  int info = 0;
  for (int64_t j = 0; j < std::min(m, n); ++j) {
    if (a[j + j * lda] == T(0) && info == 0) info = int(j) + 1;
    for (int64_t i = j + 1; i < m; ++i) a[i + j * lda] /= a[j + j * lda];
    for (int64_t c = j + 1; c < n; ++c)
      for (int64_t i = j + 1; i < m; ++i) a[i + c * lda] -= a[i + j * lda] * a[j + c * lda];
  }
  return info;
}

// How much a routine wants to work in: no round number, so that too little is found.
inline int work_for(int64_t m, int64_t n) { return int(m + 3 * n + 7); }
// Work of the size that was asked for; what lies there means nothing, and nothing may rely on it.
template <class T>
void use_work(T* work, int64_t size, int64_t wanted) {
  expect(size >= wanted, "there is not enough room to work");
  std::memset(static_cast<void*>(open_range(work, size_t(wanted))), kPoison,
              size_t(wanted) * sizeof(T));
}
// What a routine leaves in the place of a matrix that it destroys.
template <class T>
void destroy(T* a, int64_t rows, int64_t columns, int64_t stride) {
  for (int64_t j = 0; j < columns; ++j)
    std::memset(static_cast<void*>(a + j * stride), kPoison, size_t(rows) * sizeof(T));
}

// A handle for the current device, and the stream that it works on.
int make_handle(void** result);
int bind_handle(void* handle, void* stream);

int begin_call(void* handle);
int end_call();
void find_lapack();

// Runs a routine whose arguments are right, or says which is not.
template <class F>
int solve(const char* name, void* handle, F&& f) {
  std::lock_guard lock(driver_mutex);
  int status = begin_call(handle);
  if (status != kSolved) return status;
  try {
    find_lapack();
    f();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "cuda shim: %s: %s\n", name, error.what());
    status = kRefused;
  }
  int ended = end_call();
  return status == kSolved ? ended : status;
}

}  // namespace shim
