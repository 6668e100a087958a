#include "core/device/cpu_features.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "core/base/error.h"

namespace rushlight {
namespace {

Isa supported_isa() {
#if defined(__x86_64__)
  // libgcc also asks the operating system (XGETBV) whether it saves the wide registers.
  __builtin_cpu_init();
  bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
            __builtin_cpu_supports("f16c") && __builtin_cpu_supports("bmi") &&
            __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("lzcnt") &&
            __builtin_cpu_supports("movbe");
  bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
            __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
            __builtin_cpu_supports("avx512vl");
  return v4 ? Isa::v4 : v3 ? Isa::v3 : Isa::baseline;
#else
  return Isa::baseline;
#endif
}

Isa isa_from_environment() {
  const char* value = std::getenv("RUSHLIGHT_CPU");
  if (!value || !*value) return Isa::v4;
  for (Isa isa : {Isa::baseline, Isa::v3, Isa::v4}) {
    if (std::string_view(value) == isa_name(isa)) return isa;
  }
  detail::fail(ErrorKind::kValue, "the environment variable RUSHLIGHT_CPU is '", value,
               "'. It must be baseline, v3 or v4. Correct or unset it.");
}

}  // namespace

const char* isa_name(Isa isa) {
  switch (isa) {
    case Isa::baseline: return "baseline";
    case Isa::v3: return "v3";
    case Isa::v4: return "v4";
  }
  __builtin_unreachable();
}

Isa active_isa() {
  static const Isa isa = std::min(supported_isa(), isa_from_environment());
  return isa;
}

bool multiplies_bytes() {
#if defined(__x86_64__)
  static const bool has_vnni =
      __builtin_cpu_supports("avx512vnni") || __builtin_cpu_supports("avxvnni");
  return has_vnni;
#else
  return true;
#endif
}

}  // namespace rushlight
