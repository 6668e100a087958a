// Limits of cgroups, read from a machine laid out in a temporary folder.
#include "core/device/machine.h"

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "core/tests/expect.h"

using namespace rushlight;
namespace fs = std::filesystem;

namespace {

class Machine {
 public:
  Machine() {
    char name[] = "/tmp/rushlight_machine_XXXXXX";
    root_ = mkdtemp(name);
  }
  ~Machine() { fs::remove_all(root_); }

  Machine& file(const std::string& path, const std::string& text) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text << "\n";
    return *this;
  }
  CgroupLimits limits() const { return read_cgroup_limits(root_ / "self", root_ / "cgroup"); }

 private:
  fs::path root_;
};

}  // namespace

int main() {
  expect(std::isinf(Machine().limits().cpus));

  CgroupLimits v2 = Machine()
                        .file("self", "0::/a/b")
                        .file("cgroup/cpu.max", "800000 100000")
                        .file("cgroup/a/cpu.max", "250000 100000")
                        .file("cgroup/a/b/cpu.max", "max 100000")
                        .file("cgroup/a/memory.max", "max")
                        .file("cgroup/a/b/memory.max", "1073741824")
                        .limits();
  expect(v2.cpus == 2.5 && v2.memory == 1 << 30);

  // A container shows its own group as the root.
  CgroupLimits container =
      Machine().file("self", "0::/").file("cgroup/cpu.max", "50000 100000").limits();
  expect(container.cpus == 0.5);

  CgroupLimits v1 = Machine()
                        .file("self", "5:cpuset:/x\n4:cpu,cpuacct:/a\n3:memory:/a/b\n0::/")
                        .file("cgroup/cpu/cpu.cfs_quota_us", "-1")
                        .file("cgroup/cpu/cpu.cfs_period_us", "100000")
                        .file("cgroup/cpu/a/cpu.cfs_quota_us", "300000")
                        .file("cgroup/cpu/a/cpu.cfs_period_us", "100000")
                        .file("cgroup/memory/memory.limit_in_bytes", "9223372036854771712")
                        .file("cgroup/memory/a/b/memory.limit_in_bytes", "4096")
                        .limits();
  expect(v1.cpus == 3 && v1.memory == 4096);

  unsetenv("LOCAL_WORLD_SIZE");
  int cores = usable_cores();
  int64_t memory = usable_memory();
  expect(cores >= 1 && memory > 0);
  setenv("LOCAL_WORLD_SIZE", "2", 1);
  expect(usable_cores() == std::max(1, cores / 2) && usable_memory() == memory / 2);
  setenv("LOCAL_WORLD_SIZE", "1000000", 1);
  expect(usable_cores() == 1);
}
