// Owns the compiled kernels on disk: a file per kernel, named by a hash of what it was made from.
//
// The folder is RUSHLIGHT_CACHE, else $XDG_CACHE_HOME/rushlight/kernels, else
// ~/.cache/rushlight/kernels. It is private, because what lies there runs: a folder that others own
// or may write to is not used, and nothing is cached then. Any number of processes may share it.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace rushlight {

class KernelCache {
 public:
  static constexpr size_t kDefaultCapacity = size_t(256) << 20;

  // Makes the folder, with its parents.
  explicit KernelCache(std::string folder, size_t capacity = kDefaultCapacity);

  // The cache of this process, in the folder that the environment names.
  static KernelCache& instance();

  // Device code that was stored under this key; none when there is none or the file is damaged.
  std::optional<std::string> find(const std::string& key);
  // Failing to write is not an error. Beyond the capacity, the files used longest ago are deleted.
  void store(const std::string& key, const std::string& code);

  // A name of 32 digits for all that device code depends on.
  static std::string key(const std::vector<std::string>& parts);

  const std::string& folder() const { return folder_; }
  // Why nothing is cached, or "".
  const std::string& disabled_because() const { return disabled_because_; }

 private:
  std::string path(const std::string& key) const;
  void trim();

  std::string folder_;
  std::string disabled_because_;
  size_t capacity_;
};

// Keeps a text that did not compile and returns the file's name: in the folder of the cache, or a
// temporary one.
std::string keep_failed_text(const std::string& name, const std::string& text);

}  // namespace rushlight
