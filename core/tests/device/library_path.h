// Owns the search path of tests that open libraries from Python packages: CMake knows the folders.
#pragma once

#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

#include "core/device/dynamic_library.h"
#include "core/tests/expect.h"

namespace rushlight {

inline void find_python_libraries() {
  const char* value = std::getenv("RUSHLIGHT_TEST_LIBRARY_PATH");
  CHECK(value, "set RUSHLIGHT_TEST_LIBRARY_PATH to <prefix>/lib:<site-packages>, or use ctest.");
  std::vector<std::string> folders;
  std::istringstream list(value);
  for (std::string folder; std::getline(list, folder, ':');) folders.push_back(folder);
  set_library_search_path(folders);
}

}  // namespace rushlight
