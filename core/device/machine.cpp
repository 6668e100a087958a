#include "core/device/machine.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

namespace rushlight {
namespace {

// Calls visit(folder) for the cgroup's folder and each of its parents up to the mount.
template <class Visit>
void walk_up(const std::string& mount, std::string path, Visit visit) {
  while (true) {
    if (path == "/") path.clear();
    visit(mount + path + "/");
    if (path.empty()) return;
    path.resize(path.rfind('/'));
  }
}

// The number in a one-line file; false when the file is missing or says "max".
bool read_number(const std::string& file, int64_t& number) {
  return bool(std::ifstream(file) >> number);
}

void read_cpu_v1(const std::string& folder, CgroupLimits& limits) {
  int64_t quota, period;
  if (read_number(folder + "cpu.cfs_quota_us", quota) && quota > 0 &&
      read_number(folder + "cpu.cfs_period_us", period) && period > 0) {
    limits.cpus = std::min(limits.cpus, double(quota) / double(period));
  }
}

void read_memory(const std::string& file, CgroupLimits& limits) {
  int64_t bytes;
  if (read_number(file, bytes)) limits.memory = std::min(limits.memory, bytes);
}

void read_v2(const std::string& folder, CgroupLimits& limits) {
  std::ifstream cpu(folder + "cpu.max");
  double quota, period;
  if (cpu >> quota >> period && period > 0) limits.cpus = std::min(limits.cpus, quota / period);
  read_memory(folder + "memory.max", limits);
}

// Ranks on this host, as torchrun-style launchers announce them.
int local_ranks() {
  const char* value = std::getenv("LOCAL_WORLD_SIZE");
  return value ? std::max(1, std::atoi(value)) : 1;
}

int physical_cores_in_affinity_mask() {
  cpu_set_t mask;
  if (sched_getaffinity(0, sizeof mask, &mask) != 0) {
    return int(std::max(1l, sysconf(_SC_NPROCESSORS_ONLN)));  // more processors than the mask holds
  }
  std::set<std::string> cores;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &mask)) continue;
    // Hardware threads of one core print the same list of siblings.
    std::string siblings;
    std::getline(std::ifstream("/sys/devices/system/cpu/cpu" + std::to_string(cpu) +
                               "/topology/thread_siblings_list"),
                 siblings);
    cores.insert(siblings.empty() ? std::to_string(cpu) : siblings);
  }
  return std::max(1, int(cores.size()));
}

}  // namespace

CgroupLimits read_cgroup_limits(const std::string& self, const std::string& mount) {
  CgroupLimits limits;
  std::ifstream file(self);
  for (std::string line; std::getline(file, line);) {
    // hierarchy:controllers:path; version 2 has no controllers here.
    std::istringstream fields(line);
    std::string hierarchy, controllers, path;
    std::getline(fields, hierarchy, ':');
    std::getline(fields, controllers, ':');
    std::getline(fields, path);
    if (path.empty() || path[0] != '/') continue;
    if (controllers.empty()) {
      walk_up(mount, path, [&](const std::string& folder) { read_v2(folder, limits); });
    }
    std::istringstream names(controllers);
    for (std::string name; std::getline(names, name, ',');) {
      walk_up(mount + "/" + name, path, [&](const std::string& folder) {
        if (name == "cpu") read_cpu_v1(folder, limits);
        if (name == "memory") read_memory(folder + "memory.limit_in_bytes", limits);
      });
    }
  }
  return limits;
}

int usable_cores() {
  // Rounded down: a thread that the quota stops in the middle keeps all others waiting.
  double cores = std::min(double(physical_cores_in_affinity_mask()), read_cgroup_limits().cpus);
  return std::max(1, int(cores) / local_ranks());
}

int64_t usable_memory() {
  int64_t physical = int64_t(sysconf(_SC_PHYS_PAGES)) * int64_t(sysconf(_SC_PAGESIZE));
  return std::min(physical, read_cgroup_limits().memory) / local_ranks();
}

}  // namespace rushlight
