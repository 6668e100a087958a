// Owns the way from a kernel's text to a shared object, by the C++ compiler. Its bytes play the
// part of a cubin.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace shim {

struct Program {
  std::string name, text;
  std::vector<std::pair<std::string, std::string>> headers;  // the name in #include, the text
  std::vector<std::string> name_expressions;
  std::string defines, standard;  // of the options
  std::string log, binary;
};

// Reads NVRTC's options into the program; false, with a log, if NVRTC has no such option.
bool translate_options(const std::vector<std::string>& options, Program& program);

// Fills binary or, if it returns false, log, in NVRTC's form: name(line): error: ...
bool compile(Program& program);

// Changes whenever the prelude does, so that a binary in a cache is never used with another one.
unsigned prelude_hash();

}  // namespace shim
