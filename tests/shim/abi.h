// Owns what a compiled kernel and the shim know of each other: the registers that the shim sets
// before it runs a thread, the calls back into the shim, and a kernel's entry.
//
// Read by the shim and, without any library, by every kernel.
#pragma once

struct ShimIndex {
  unsigned x, y, z;
};

// A call's line stands for its place in the text: threads that meet must meet at the same one.
struct ShimRuntime {
  // Waits for all threads of the block; the number of them whose predicate is true.
  unsigned (*barrier)(bool predicate, int line);
  // Waits for the lanes named in the mask; the values of all lanes, poison where a lane is not.
  const unsigned long long* (*exchange)(unsigned mask, unsigned long long value, int line);
  // Waits likewise, and orders what the lanes do to memory.
  void (*sync_warp)(unsigned mask, int line);
  // Of a kernel that is watched for races; `how` is a Touch.
  void (*touch)(const void* address, unsigned long size, int how);
  void (*trap)(const char* message);
  double (*erfinv)(double);
  double (*erfcinv)(double);
};

struct ShimRegisters {
  ShimIndex thread_idx, block_idx, block_dim, grid_dim;
  unsigned lane;
  void* dynamic_shared;
  const ShimRuntime* runtime;
};

struct ShimKernel {
  void (*call)(void** arguments);
  const unsigned long* sizes;  // of the arguments, in bytes
  unsigned count;
  unsigned max_threads;  // __launch_bounds__
};
