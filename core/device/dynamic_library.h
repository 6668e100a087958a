// Owns the search for shared libraries that are opened at run time, never linked.
//
// A library is one LibrarySpec and one X-macro list of functions in its wrapper file; no other file
// calls dlopen or dlsym. A library that was opened stays open, so its functions never dangle.
#pragma once

#include <string>
#include <vector>

namespace rushlight {

// The folders that Python packages install into: <prefix>/lib and the entries of sys.path. Relative
// ones are ignored, because the working directory may belong to anybody. Call it at import, before
// any library is opened.
void set_library_search_path(std::vector<std::string> folders);

struct LibrarySpec {
  std::string title;                 // "OpenBLAS", for messages
  std::vector<std::string> files;    // by preference, "libdnnl.so.3"
  std::vector<std::string> folders;  // below each folder of the search path, or absolute
  std::string pip_package;           // what to install when it is missing; "" when pip has none
  // How the names of files beside it begin that it opens by their names alone. They are opened
  // first, since not every version tells the loader to look in its own folder.
  std::vector<std::string> companions = {};
};

class DynamicLibrary {
 public:
  // Looks for each file in each folder, and last where the system looks. Raises an error that lists
  // those places when there is none.
  explicit DynamicLibrary(const LibrarySpec& spec);

  // Raises when the library has no such function, as an older version may not.
  template <class Function>
  Function* find(const char* name) const {
    return reinterpret_cast<Function*>(symbol(name));
  }
  template <class Function>
  void load(Function*& function, const char* name) const {
    function = find<Function>(name);
  }

  const std::string& path() const { return path_; }

 private:
  void* symbol(const char* name) const;

  LibrarySpec spec_;
  void* handle_ = nullptr;
  std::string path_;
};

// What an X-macro list _(name, type) of functions makes of each in a struct whose first member is
// the DynamicLibrary `library`.
#define LIBRARY_FUNCTION(name, ...) \
  using name##_type = __VA_ARGS__;  \
  name##_type* name = library.find<name##_type>(#name);

}  // namespace rushlight
