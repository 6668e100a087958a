#include "core/device/kernel_cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>

namespace rushlight {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSuffix = ".kernel";
constexpr auto kAbandoned = std::chrono::hours(1);  // a writer that old was killed

// FNV-1a with 128 bits (the constants are those of its specification): keys need no secrecy.
using Hash = unsigned __int128;
Hash fnv1a(std::string_view bytes,
           Hash hash = (Hash(0x6c62272e07bb0142) << 64) | 0x62b821756295c58d) {
  constexpr Hash kPrime = (Hash(1) << 88) | 0x13b;
  for (unsigned char byte : bytes) hash = (hash ^ byte) * kPrime;
  return hash;
}

// What a file begins with.
struct Header {
  char magic[8] = {'R', 'L', 'K', 'E', 'R', 'N', '0', '1'};
  uint64_t bytes = 0;
  Hash checksum = 0;
};

std::string default_folder() {
  if (const char* folder = std::getenv("RUSHLIGHT_CACHE")) return folder;
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache && cache[0] == '/') return std::string(cache) + "/rushlight/kernels";
  const char* home = std::getenv("HOME");
  return home && home[0] == '/' ? std::string(home) + "/.cache/rushlight/kernels" : "";
}

// "" when the folder is there and ours alone.
std::string prepare(const std::string& folder) {
  if (folder.empty()) return "neither RUSHLIGHT_CACHE, XDG_CACHE_HOME nor HOME names a folder";
  std::error_code error;
  fs::create_directories(fs::path(folder).parent_path(), error);
  if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
    return folder + " cannot be made: " + std::strerror(errno);
  }
  struct stat status;
  if (lstat(folder.c_str(), &status) != 0) return folder + ": " + std::strerror(errno);
  if (!S_ISDIR(status.st_mode)) return folder + " is not a folder";
  if (status.st_uid != geteuid()) return folder + " belongs to another user";
  if (status.st_mode & (S_IWGRP | S_IWOTH)) return folder + " may be written by other users";
  return "";
}

// Writes under another name first, so that a reader never sees half a file.
bool write_whole(const std::string& path, std::initializer_list<std::string_view> parts) {
  static std::atomic<unsigned> count{0};
  std::string temporary =
      path + "." + std::to_string(getpid()) + "." + std::to_string(count++) + ".new";
  {
    std::ofstream file(temporary, std::ios::binary);
    for (std::string_view part : parts) file.write(part.data(), std::streamsize(part.size()));
    file.flush();
    if (!file) {
      unlink(temporary.c_str());
      return false;
    }
  }
  if (std::rename(temporary.c_str(), path.c_str()) == 0) return true;
  unlink(temporary.c_str());
  return false;
}

}  // namespace

KernelCache::KernelCache(std::string folder, size_t capacity)
    : folder_(std::move(folder)), disabled_because_(prepare(folder_)), capacity_(capacity) {}

KernelCache& KernelCache::instance() {
  static KernelCache cache(default_folder());
  return cache;
}

std::string KernelCache::key(const std::vector<std::string>& parts) {
  Hash hash = fnv1a("");
  for (const std::string& part : parts) {
    hash = fnv1a(std::to_string(part.size()) + ":", hash);  // where a part ends matters too
    hash = fnv1a(part, hash);
  }
  std::string digits(32, '0');
  for (auto digit = digits.rbegin(); digit != digits.rend(); ++digit, hash >>= 4) {
    *digit = "0123456789abcdef"[size_t(hash & 15)];
  }
  return digits;
}

std::string KernelCache::path(const std::string& key) const {
  return folder_ + "/" + key + std::string(kSuffix);
}

std::optional<std::string> KernelCache::find(const std::string& key) {
  if (!disabled_because_.empty()) return std::nullopt;
  std::ifstream file(path(key), std::ios::binary);
  if (!file) return std::nullopt;
  Header header, expected;
  file.read(reinterpret_cast<char*>(&header), sizeof header);
  std::string code;
  if (file && std::memcmp(header.magic, expected.magic, sizeof header.magic) == 0) {
    code.assign(std::istreambuf_iterator<char>(file), {});
    if (code.size() == header.bytes && fnv1a(code) == header.checksum) {
      utimensat(AT_FDCWD, path(key).c_str(), nullptr, 0);  // used now
      return code;
    }
  }
  unlink(path(key).c_str());
  return std::nullopt;
}

void KernelCache::store(const std::string& key, const std::string& code) {
  if (!disabled_because_.empty()) return;
  Header header;
  header.bytes = code.size();
  header.checksum = fnv1a(code);
  std::string_view head(reinterpret_cast<const char*>(&header), sizeof header);
  if (write_whole(path(key), {head, code})) trim();
}

void KernelCache::trim() {
  struct Entry {
    fs::file_time_type used;
    size_t bytes;
    fs::path path;
  };
  std::vector<Entry> entries;
  size_t total = 0;
  auto now = fs::file_time_type::clock::now();
  std::error_code error;  // other processes delete files too
  for (fs::directory_iterator file(folder_, error), end; !error && file != end;
       file.increment(error)) {
    std::error_code gone;
    if (!file->is_regular_file(gone)) continue;
    Entry entry{file->last_write_time(gone), size_t(file->file_size(gone)), file->path()};
    if (gone) continue;
    if (entry.path.extension() == ".new" && now - entry.used > kAbandoned) {
      fs::remove(entry.path, gone);
    } else if (entry.path.extension() == kSuffix) {
      total += entry.bytes;
      entries.push_back(std::move(entry));
    }
  }
  if (total <= capacity_) return;
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.used < b.used; });
  // Some room more, so that not every kernel that follows has to look again.
  for (const Entry& entry : entries) {
    if (total <= capacity_ - capacity_ / 8) return;
    fs::remove(entry.path, error);
    total -= entry.bytes;
  }
}

std::string keep_failed_text(const std::string& name, const std::string& text) {
  std::string file;
  for (char c : name) file += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  const KernelCache& cache = KernelCache::instance();
  if (cache.disabled_because().empty()) {
    std::string path = cache.folder() + "/" + file + ".cu";
    if (write_whole(path, {text})) return path;
  }
  std::string path = fs::temp_directory_path() / ("rushlight_" + file + "_XXXXXX.cu");
  int descriptor = mkstemps(path.data(), 3);
  if (descriptor < 0) return "(nowhere: no folder can be written to)";
  bool written = write(descriptor, text.data(), text.size()) == ssize_t(text.size());
  close(descriptor);
  return written ? path : "(nowhere: " + path + " cannot be written)";
}

}  // namespace rushlight
