// Owns the two checks of the C++ tests. A failed one prints its place and ends the test.
#pragma once

#include <cstdlib>
#include <iostream>
#include <source_location>
#include <string>

#include "core/base/error.h"

namespace rushlight {

inline void expect(bool holds, std::source_location at = std::source_location::current()) {
  if (holds) return;
  std::cerr << at.file_name() << ":" << at.line() << ": expectation failed\n";
  std::exit(1);
}

// f must raise an Error of this kind whose text contains `part`.
template <class F>
void expect_error(ErrorKind kind, const std::string& part, F&& f,
                  std::source_location at = std::source_location::current()) {
  try {
    f();
  } catch (const Error& error) {
    if (error.kind() == kind && std::string(error.what()).find(part) != std::string::npos) return;
    std::cerr << "another error was raised: " << error.what() << "\n";
  }
  expect(false, at);
}

}  // namespace rushlight
