// The search for shared libraries: order of places, the list in the error, missing functions.
#include "core/device/dynamic_library.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "core/tests/expect.h"

using namespace rushlight;
namespace fs = std::filesystem;

namespace {

std::string error_of(const LibrarySpec& spec) {
  try {
    DynamicLibrary library(spec);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

int main() {
  // The system's own places come last, and hold the C library everywhere.
  DynamicLibrary math({"libm", {"libm_of_no_system.so", "libm.so.6"}, {"anywhere"}, "libm"});
  expect(math.path() == "libm.so.6");
  expect(math.find<double(double)>("cos")(0) == 1);
  expect_error(ErrorKind::kRuntime, "libm.so.6 has no function no_such_function",
               [&] { math.find<void()>("no_such_function"); });

  LibrarySpec missing{"Fastlib", {"libfast.so.2", "libfast.so.1"}, {"", "fast/lib"}, "fast-lib"};
  set_library_search_path({"/nowhere/a", "relative/b", "", "/nowhere/c"});
  expect(error_of(missing) ==
         "Fastlib: libfast.so.2, libfast.so.1 was not found. Looked in: /nowhere/a, /nowhere/c, "
         "/nowhere/a/fast/lib, /nowhere/c/fast/lib, the system's library path. "
         "Install it with: pip install fast-lib");

  // A file that is no library is named together with the loader's reason.
  char name[] = "/tmp/rushlight_library_XXXXXX";
  fs::path root = mkdtemp(name);
  fs::create_directories(root / "fast/lib");
  std::ofstream(root / "fast/lib/libfast.so.1") << "not a library";
  set_library_search_path({root});
  std::string broken = error_of(missing);
  expect(contains(broken, "could not be opened (") && contains(broken, "fast/lib/libfast.so.1"));
  fs::remove_all(root);
}
