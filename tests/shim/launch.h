// Owns the running of a kernel: blocks one after another, the threads of a block as fibers that are
// switched at barriers and warp operations.
#pragma once

#include <cstddef>
#include <string>

#include "tests/shim/abi.h"

namespace shim {

enum class Outcome { kSuccess, kIllegalAddress, kMisalignedAddress, kFailed };

struct Launch {
  std::string name;
  const ShimKernel* kernel;
  ShimRegisters* registers;
  size_t tls_module, static_shared;  // the module's thread-local storage is its shared memory
  ShimIndex grid, block;
  size_t dynamic_shared;
  int device;
  void** arguments;
};

// Runs the kernel to its end; what went wrong is told on stderr. The driver holds its lock.
Outcome run(const Launch& launch);

}  // namespace shim
