// Owns what this process may use of the machine: cores and memory, after affinity mask, cgroup
// limits and the other ranks of a distributed job on the same host.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

namespace rushlight {

struct CgroupLimits {
  double cpus = std::numeric_limits<double>::infinity();
  int64_t memory = std::numeric_limits<int64_t>::max();  // bytes
};

// The tightest limits of the process's cgroups and their parents, versions 1 and 2. The paths are
// arguments so that tests can lay out a machine of their own.
CgroupLimits read_cgroup_limits(const std::string& self = "/proc/self/cgroup",
                                const std::string& mount = "/sys/fs/cgroup");

// Physical cores, because hardware threads share the vector units; at least 1.
int usable_cores();

// In bytes.
int64_t usable_memory();

}  // namespace rushlight
