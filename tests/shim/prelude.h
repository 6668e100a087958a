// Owns the words of CUDA C++ for a kernel that is compiled for the processor by the shim. It stands
// before the text, so it includes next to nothing: several hundred kernels are compiled in a test.
//
// rewrite.cpp replaces __global__, __launch_bounds__ and extern __shared__ in the text itself.
#pragma once

#include "abi.h"

extern "C" {
__attribute__((visibility("hidden"))) ShimRegisters shim_registers;
ShimRegisters* shim_module() { return &shim_registers; }
}

#include "prelude_math.h"

#define __device__
#define __host__
#define __constant__
#define __grid_constant__
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __align__(bytes) __attribute__((aligned(bytes)))
// The blocks run one after another on one processor thread, so its thread-local storage is exactly
// the static shared memory of the module, templates' included; the shim poisons it for each block.
#define __shared__ thread_local
#define __builtin_assume(condition) ((void)0)

extern "C" int printf(const char*, ...);

using uint3 = ShimIndex;
struct dim3 : ShimIndex {
  constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : ShimIndex{x, y, z} {}
};
static const uint3& threadIdx = shim_registers.thread_idx;
static const uint3& blockIdx = shim_registers.block_idx;
static const uint3& blockDim = shim_registers.block_dim;
static const uint3& gridDim = shim_registers.grid_dim;
constexpr int warpSize = 32;
inline uint3 make_uint3(unsigned x, unsigned y, unsigned z) { return {x, y, z}; }

// Vector types, aligned as CUDA aligns them.
#define SHIM_VECTOR_234(name, T)                                                                   \
  struct __align__(2 * sizeof(T)) name##2 { T x, y; };                                             \
  struct __align__(4 * sizeof(T) < 16 ? 4 * sizeof(T) : 16) name##4 { T x, y, z, w; };             \
  inline name##2 make_##name##2(T x, T y) { return {x, y}; }                                       \
  inline name##4 make_##name##4(T x, T y, T z, T w) { return {x, y, z, w}; }
#define SHIM_VECTOR(name, T)                                                                       \
  SHIM_VECTOR_234(name, T)                                                                         \
  struct name##3 { T x, y, z; };                                                                   \
  inline name##3 make_##name##3(T x, T y, T z) { return {x, y, z}; }
SHIM_VECTOR(char, signed char)
SHIM_VECTOR(uchar, unsigned char)
SHIM_VECTOR(short, short)
SHIM_VECTOR(ushort, unsigned short)
SHIM_VECTOR(int, int)
SHIM_VECTOR_234(uint, unsigned)
SHIM_VECTOR(long, long)
SHIM_VECTOR(ulong, unsigned long)
SHIM_VECTOR(longlong, long long)
SHIM_VECTOR(ulonglong, unsigned long long)
SHIM_VECTOR(float, float)
SHIM_VECTOR(double, double)
#undef SHIM_VECTOR
#undef SHIM_VECTOR_234

// Barriers and fences. One thread runs at a time, so fences are only for the compiler.
inline void __syncthreads(int line = __builtin_LINE()) {
  shim_registers.runtime->barrier(false, line);
}
inline int __syncthreads_count(int predicate, int line = __builtin_LINE()) {
  return shim_registers.runtime->barrier(predicate, line);
}
inline int __syncthreads_or(int predicate, int line = __builtin_LINE()) {
  return shim_registers.runtime->barrier(predicate, line) != 0;
}
inline int __syncthreads_and(int predicate, int line = __builtin_LINE()) {
  return shim_registers.runtime->barrier(!predicate, line) == 0;
}
inline void __threadfence() { asm volatile("" ::: "memory"); }
inline void __threadfence_block() { __threadfence(); }
inline void __threadfence_system() { __threadfence(); }
inline void __trap() { shim_registers.runtime->trap("__trap() was called"); }

// Warp operations: every lane that the mask names gives 64 bits and sees those of all.
template <class T>
inline unsigned long long shim_bits(T value) {
  static_assert(sizeof(T) <= 8, "a shuffle moves at most 64 bits");
  unsigned long long bits = 0;
  __builtin_memcpy(&bits, &value, sizeof(T));
  return bits;
}
template <class T>
inline T shim_value(unsigned long long bits) {
  T value;
  __builtin_memcpy(&value, &bits, sizeof(T));
  return value;
}
template <class T>
inline T shim_shuffle(unsigned mask, T value, unsigned lane, int line) {
  const unsigned long long* values = shim_registers.runtime->exchange(mask, shim_bits(value), line);
  // What a lane outside the mask would give is undefined.
  return shim_value<T>(mask >> lane & 1 ? values[lane] : ~0ull);
}
template <class T>
inline T __shfl_sync(unsigned mask, T value, int lane, int width = 32,
                     int line = __builtin_LINE()) {
  unsigned segment = shim_registers.lane & ~(width - 1);
  return shim_shuffle(mask, value, segment | (lane & (width - 1)), line);
}
template <class T>
inline T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32,
                        int line = __builtin_LINE()) {
  unsigned own = shim_registers.lane, in_segment = own & (width - 1);
  return shim_shuffle(mask, value, in_segment >= delta ? own - delta : own, line);
}
template <class T>
inline T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32,
                          int line = __builtin_LINE()) {
  unsigned own = shim_registers.lane, in_segment = own & (width - 1);
  return shim_shuffle(mask, value, in_segment + delta < unsigned(width) ? own + delta : own, line);
}
template <class T>
inline T __shfl_xor_sync(unsigned mask, T value, int lanes, int width = 32,
                         int line = __builtin_LINE()) {
  unsigned own = shim_registers.lane, other = own ^ lanes, end = (own | (width - 1)) + 1;
  return shim_shuffle(mask, value, other < end ? other : own, line);
}
// The lanes of the mask whose value is `wanted`.
inline unsigned shim_match(unsigned mask, const unsigned long long* values,
                           unsigned long long wanted) {
  unsigned lanes = 0;
  for (unsigned lane = 0; lane < 32; ++lane) {
    if (mask >> lane & 1 && values[lane] == wanted) lanes |= 1u << lane;
  }
  return lanes;
}
inline unsigned __ballot_sync(unsigned mask, int predicate, int line = __builtin_LINE()) {
  return shim_match(mask, shim_registers.runtime->exchange(mask, predicate != 0, line), 1);
}
inline int __any_sync(unsigned mask, int predicate, int line = __builtin_LINE()) {
  return __ballot_sync(mask, predicate, line) != 0;
}
inline int __all_sync(unsigned mask, int predicate, int line = __builtin_LINE()) {
  return __ballot_sync(mask, !predicate, line) == 0;
}
template <class T>
inline unsigned __match_any_sync(unsigned mask, T value, int line = __builtin_LINE()) {
  unsigned long long bits = shim_bits(value);
  return shim_match(mask, shim_registers.runtime->exchange(mask, bits, line), bits);
}
inline void __syncwarp(unsigned mask = ~0u, int line = __builtin_LINE()) {
  shim_registers.runtime->sync_warp(mask, line);
}
// Which lanes happen to run together is undefined; alone is a legal answer that nobody may expect.
inline unsigned __activemask() { return 1u << shim_registers.lane; }

// What the compiler calls before each access to memory when races are looked for.
#ifdef RUSHLIGHT_SHIM_RACES
#define SHIM_UNWATCHED __attribute__((no_sanitize("thread"), noinline))
#define SHIM_HIDDEN extern "C" __attribute__((visibility("hidden"), no_sanitize("thread")))
inline SHIM_UNWATCHED void shim_touch(const void* address, unsigned long size, int how) {
  shim_registers.runtime->touch(address, size, how);
}
#define SHIM_WATCH(name, size)                                                                     \
  SHIM_HIDDEN void __tsan_##name##read##size(void* at) { shim_touch(at, size, 0); }                \
  SHIM_HIDDEN void __tsan_##name##write##size(void* at) { shim_touch(at, size, 1); }
SHIM_WATCH(, 1)
SHIM_WATCH(, 2)
SHIM_WATCH(, 4)
SHIM_WATCH(, 8)
SHIM_WATCH(, 16)
SHIM_WATCH(unaligned_, 2)
SHIM_WATCH(unaligned_, 4)
SHIM_WATCH(unaligned_, 8)
SHIM_WATCH(unaligned_, 16)
#undef SHIM_WATCH
SHIM_HIDDEN void __tsan_read_range(void* at, unsigned long size) { shim_touch(at, size, 0); }
SHIM_HIDDEN void __tsan_write_range(void* at, unsigned long size) { shim_touch(at, size, 1); }
SHIM_HIDDEN void __tsan_init() {}
SHIM_HIDDEN void __tsan_func_entry(void*) {}
SHIM_HIDDEN void __tsan_func_exit() {}
#undef SHIM_HIDDEN
#else
#define SHIM_UNWATCHED
inline void shim_touch(const void*, unsigned long, int) {}
#endif

// Atomics: nothing interrupts a thread between two barriers.
#define SHIM_ATOMIC(name, T, expression)                                                           \
  inline SHIM_UNWATCHED T name(T* address, T value) {                                              \
    shim_touch(address, sizeof(T), 2);                                                             \
    T old = *address;                                                                              \
    *address = (expression);                                                                       \
    return old;                                                                                    \
  }
#define SHIM_ATOMIC_INTEGER(T)                                                                     \
  SHIM_ATOMIC(atomicAdd, T, old + value)                                                           \
  SHIM_ATOMIC(atomicExch, T, value)                                                                \
  SHIM_ATOMIC(atomicMax, T, old > value ? old : value)                                             \
  SHIM_ATOMIC(atomicMin, T, old < value ? old : value)                                             \
  SHIM_ATOMIC(atomicAnd, T, old & value)                                                           \
  SHIM_ATOMIC(atomicOr, T, old | value)                                                            \
  SHIM_ATOMIC(atomicXor, T, old ^ value)                                                           \
  inline SHIM_UNWATCHED T atomicCAS(T* address, T expected, T value) {                             \
    shim_touch(address, sizeof(T), 2);                                                             \
    T old = *address;                                                                              \
    if (old == expected) *address = value;                                                         \
    return old;                                                                                    \
  }
SHIM_ATOMIC_INTEGER(int)
SHIM_ATOMIC_INTEGER(unsigned)
SHIM_ATOMIC_INTEGER(unsigned long long)
SHIM_ATOMIC(atomicMax, long long, old > value ? old : value)
SHIM_ATOMIC(atomicMin, long long, old < value ? old : value)
SHIM_ATOMIC(atomicSub, int, old - value)
SHIM_ATOMIC(atomicSub, unsigned, old - value)
SHIM_ATOMIC(atomicAdd, float, old + value)
SHIM_ATOMIC(atomicAdd, double, old + value)
SHIM_ATOMIC(atomicExch, float, value)
#undef SHIM_ATOMIC_INTEGER
#undef SHIM_ATOMIC
inline SHIM_UNWATCHED unsigned short atomicCAS(unsigned short* address, unsigned short expected,
                                               unsigned short value) {
  shim_touch(address, sizeof(value), 2);
  unsigned short old = *address;
  if (old == expected) *address = value;
  return old;
}

// Loads and stores with a cache hint.
#define SHIM_LOAD(name)                                                                            \
  template <class T>                                                                               \
  inline T name(const T* address) {                                                                \
    return *address;                                                                               \
  }
#define SHIM_STORE(name)                                                                           \
  template <class T>                                                                               \
  inline void name(T* address, T value) {                                                          \
    *address = value;                                                                              \
  }
#define SHIM_LOADS(_) _(__ldg) _(__ldca) _(__ldcg) _(__ldcs) _(__ldlu) _(__ldcv)
#define SHIM_STORES(_) _(__stcg) _(__stcs) _(__stwb) _(__stwt)
SHIM_LOADS(SHIM_LOAD)
SHIM_STORES(SHIM_STORE)
#undef SHIM_LOAD
#undef SHIM_STORE
#undef SHIM_LOADS
#undef SHIM_STORES

// What rewrite.cpp puts after a kernel: how to call it with arguments that are given by address.
template <auto kernel>
struct ShimEntry;
template <class... Arguments, void (*kernel)(Arguments...)>
struct ShimEntry<kernel> {
  struct Invocation {  // braces evaluate the arguments in order
    Invocation(const Arguments&... arguments) { kernel(arguments...); }
  };
  static void call(void** arguments) {
    (void)Invocation{*static_cast<Arguments*>(*arguments++)...};
  }
  static constexpr unsigned long sizes[sizeof...(Arguments) + 1] = {sizeof(Arguments)...};
};
template <auto kernel>
constexpr ShimKernel shim_kernel(unsigned max_threads) {
  using Entry = ShimEntry<kernel>;
  return {Entry::call, Entry::sizes, sizeof(Entry::sizes) / sizeof(Entry::sizes[0]) - 1,
          max_threads};
}
