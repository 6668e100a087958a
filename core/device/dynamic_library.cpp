#include "core/device/dynamic_library.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <mutex>

#include "core/base/error.h"

namespace rushlight {
namespace {

std::mutex search_path_mutex;
std::vector<std::string>& search_path() {
  static std::vector<std::string> folders;
  return folders;
}

bool is_absolute(const std::string& path) { return !path.empty() && path[0] == '/'; }

std::vector<std::string> candidate_folders(const LibrarySpec& spec) {
  std::lock_guard lock(search_path_mutex);
  std::vector<std::string> candidates;
  for (const std::string& folder : spec.folders) {
    if (is_absolute(folder)) {
      candidates.push_back(folder);
      continue;
    }
    for (const std::string& root : search_path()) {
      candidates.push_back(folder.empty() ? root : root + "/" + folder);
    }
  }
  return candidates;
}

template <class Strings>
std::string join(const Strings& parts, const char* separator) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : separator) + part;
  return text;
}

void open_companions(const std::string& folder, const LibrarySpec& spec) {
  if (spec.companions.empty()) return;
  std::error_code error;
  for (std::filesystem::directory_iterator file(folder, error), end; !error && file != end;
       file.increment(error)) {
    std::string name = file->path().filename();
    bool is_one = std::ranges::any_of(
        spec.companions, [&](const std::string& companion) { return name.starts_with(companion); });
    if (is_one) dlopen(file->path().c_str(), RTLD_LAZY | RTLD_LOCAL);
  }
}

std::string remedy(const char* command, const LibrarySpec& spec) {
  return spec.pip_package.empty() ? "" : command + spec.pip_package;
}

}  // namespace

void set_library_search_path(std::vector<std::string> folders) {
  std::erase_if(folders, [](const std::string& folder) { return !is_absolute(folder); });
  std::lock_guard lock(search_path_mutex);
  search_path() = std::move(folders);
}

DynamicLibrary::DynamicLibrary(const LibrarySpec& spec) : spec_(spec) {
  std::vector<std::string> folders = candidate_folders(spec);
  std::vector<std::string> broken;  // there, but the loader refused it
  for (const std::string& folder : folders) {
    for (const std::string& file : spec.files) {
      path_ = folder + "/" + file;
      if (access(path_.c_str(), F_OK) != 0) continue;
      open_companions(path_.substr(0, path_.rfind('/')), spec);
      handle_ = dlopen(path_.c_str(), RTLD_NOW | RTLD_LOCAL);
      if (handle_) return;
      broken.push_back(dlerror());
    }
  }
  for (const std::string& file : spec.files) {
    path_ = file;
    if (is_absolute(file)) open_companions(file.substr(0, file.rfind('/')), spec);
    handle_ = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle_) return;
  }
  folders.push_back("the system's library path");
  detail::fail(
      spec.title, ": ", join(spec.files, ", "),
      broken.empty() ? " was not found" : " could not be opened (" + join(broken, "; ") + ")",
      ". Looked in: ", join(folders, ", "), ".", remedy(" Install it with: pip install ", spec));
}

void* DynamicLibrary::symbol(const char* name) const {
  void* address = dlsym(handle_, name);
  CHECK(address, spec_.title, ": ", path_, " has no function ", name, ". A newer version is needed",
        remedy(": pip install --upgrade ", spec_));
  return address;
}

}  // namespace rushlight
