// The instruction set that is chosen: a ceiling from the environment, never above the processor.
#include "core/device/cpu_features.h"

#include <cstdlib>

#include "core/tests/device/fork.h"

using namespace rushlight;

namespace {

// The choice is made once per process, so each case runs in a child.
template <class F>
void in_child_with(const char* value, F&& f) {
  expect_child_succeeds([&] {
    value ? setenv("RUSHLIGHT_CPU", value, 1) : unsetenv("RUSHLIGHT_CPU");
    f();
  });
}

}  // namespace

int main() {
  in_child_with("baseline", [] { expect(active_isa() == Isa::baseline); });
  in_child_with("v3", [] { expect(active_isa() <= Isa::v3); });
  in_child_with("v4", [] {
    Isa with_highest_ceiling = active_isa();
    in_child_with(nullptr, [&] { expect(active_isa() == with_highest_ceiling); });
    in_child_with("", [&] { expect(active_isa() == with_highest_ceiling); });
  });
  in_child_with("avx2", [] {
    expect_error(ErrorKind::kValue, "RUSHLIGHT_CPU is 'avx2'. It must be baseline, v3 or v4",
                 [] { active_isa(); });
  });
  // The choice stays when the variable changes.
  in_child_with("baseline", [] {
    active_isa();
    setenv("RUSHLIGHT_CPU", "v4", 1);
    expect(active_isa() == Isa::baseline);
  });
}
