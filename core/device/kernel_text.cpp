#include "core/device/kernel_text.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include "core/base/error.h"

namespace rushlight {
namespace {

// Filled before main(), read afterwards.
std::map<std::string_view, const char*>& texts() {
  static std::map<std::string_view, const char*> by_path;
  return by_path;
}

std::string_view path_of(const char* text) {
  for (const auto& [path, embedded] : texts()) {
    if (embedded == text) return path;
  }
  return "kernel";  // made at run time
}

class Expansion {
 public:
  void add(std::string_view path, std::string_view text) {
    add_position(1, path);
    int number = 1;
    while (!text.empty()) {
      size_t length = std::min(text.find('\n'), text.size() - 1) + 1;
      std::string_view line = text.substr(0, length);
      text.remove_prefix(length);
      ++number;
      constexpr std::string_view kInclude = "#include \"", kLibrary = "#include <";
      if (line.starts_with(kLibrary) || line.starts_with("#pragma once")) {
        result_ += "\n";  // device_types.cuh stands for the library
      } else if (line.starts_with(kInclude)) {
        line.remove_prefix(kInclude.size());
        include(line.substr(0, line.find('"')), path);
        add_position(number, path);
      } else {
        result_ += line;
      }
    }
  }

  std::string result() && { return std::move(result_); }

 private:
  void include(std::string_view path, std::string_view from) {
    auto found = texts().find(path);
    CHECK(found != texts().end(), from, " includes ", path,
          ", which is no device text below core/.");
    if (included_.insert(found->first).second) add(found->first, found->second);
  }

  void add_position(int line, std::string_view path) {
    if (!result_.empty() && result_.back() != '\n') result_ += '\n';
    result_ += "#line " + std::to_string(line) + " \"" + std::string(path) + "\"\n";
  }

  std::string result_;
  std::set<std::string_view> included_;
};

}  // namespace

KernelText::KernelText(const char* path, const char* text) { texts()[path] = text; }

std::string with_includes(const char* text) {
  Expansion expansion;
  expansion.add(path_of(text), text);
  return std::move(expansion).result();
}

}  // namespace rushlight
