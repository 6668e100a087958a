// The cache of compiled kernels: damage, other owners, many processes at once, and its size.
#include "core/device/kernel_cache.h"

#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "core/tests/device/fork.h"
#include "core/tests/expect.h"

using namespace rushlight;
namespace fs = std::filesystem;

namespace {

fs::path temporary_folder() {
  char name[] = "/tmp/rushlight_cache_XXXXXX";
  return mkdtemp(name);
}

fs::path only_file(const fs::path& folder) {
  fs::directory_iterator files(folder);
  return files->path();
}

void what_is_stored_is_found(const fs::path& root) {
  fs::path folder = root / "new" / "kernels";
  KernelCache cache(folder);
  expect(cache.disabled_because().empty());
  struct stat status;
  expect(stat(folder.c_str(), &status) == 0 && (status.st_mode & 0777) == 0700);

  std::string key = KernelCache::key({"text", "sm_90", "13.0"});
  expect(key.size() == 32);
  expect(!cache.find(key));
  std::string code("cubin\0with zeros", 16);
  cache.store(key, code);
  expect(cache.find(key) == code);
  expect(KernelCache(folder).find(key) == code);
  cache.store(key, "");
  expect(cache.find(key) == "");
}

void keys_differ_by_every_part() {
  auto key = [](std::vector<std::string> parts) { return KernelCache::key(parts); };
  expect(key({"a", "b"}) == key({"a", "b"}));
  expect(key({"a", "b"}) != key({"ab", ""}) && key({"a", "b"}) != key({"a", "b", ""}));
  expect(key({"a"}) != key({"b"}));
}

void damaged_files_are_not_found(const fs::path& root) {
  fs::path folder = root / "damaged";
  KernelCache cache(folder);
  std::string key = KernelCache::key({"k"}), code(1000, 'c');
  auto damage = [&](auto change) {
    cache.store(key, code);
    std::string bytes;
    {
      std::ifstream file(only_file(folder), std::ios::binary);
      bytes.assign(std::istreambuf_iterator<char>(file), {});
    }
    change(bytes);
    std::ofstream(only_file(folder), std::ios::binary) << bytes;
    expect(!cache.find(key));
    expect(fs::is_empty(folder));  // so that it is made anew
  };
  damage([](std::string& bytes) { bytes.clear(); });
  damage([](std::string& bytes) { bytes.resize(20); });
  damage([](std::string& bytes) { bytes.resize(bytes.size() - 1); });
  damage([](std::string& bytes) { bytes += 'x'; });
  for (size_t position : {0, 8, 16, 31, 500}) {
    damage([=](std::string& bytes) { bytes[position] ^= 1; });
  }
  cache.store(key, code);
  expect(cache.find(key) == code);
}

void folders_of_others_are_refused(const fs::path& root) {
  fs::path open = root / "open";
  fs::create_directory(open);
  fs::permissions(open, fs::perms::all);
  KernelCache writable(open);
  expect(writable.disabled_because().find("may be written by other users") != std::string::npos);
  writable.store("key", "code");
  expect(!writable.find("key") && fs::is_empty(open));

  fs::create_directory_symlink(root, root / "link");
  expect(KernelCache(root / "link").disabled_because().find("is not a folder") !=
         std::string::npos);
  std::ofstream(root / "file") << "text";
  expect(!KernelCache(root / "file").disabled_because().empty());
  expect(!KernelCache(root / "file" / "below").disabled_because().empty());
  expect(!KernelCache("").disabled_because().empty());

  if (geteuid() == 0) {  // only root may give a folder away
    fs::path foreign = root / "foreign";
    fs::create_directory(foreign);
    fs::permissions(foreign, fs::perms::owner_all);
    expect(chown(foreign.c_str(), 12345, gid_t(-1)) == 0);
    expect(KernelCache(foreign).disabled_because().find("belongs to another user") !=
           std::string::npos);
  }
}

void the_files_used_longest_ago_go_first(const fs::path& root) {
  fs::path folder = root / "bounded";
  KernelCache cache(folder, 10000);
  std::string code(1000, 'c');
  auto key = [](int i) { return KernelCache::key({std::to_string(i)}); };
  auto age = [&](int i, int hours) {
    fs::path file = folder / (key(i) + ".kernel");
    fs::last_write_time(file, fs::file_time_type::clock::now() - std::chrono::hours(hours));
  };
  for (int i = 0; i < 9; ++i) {
    cache.store(key(i), code);
    age(i, 100 - i);
  }
  expect(bool(cache.find(key(0))));  // now it is the youngest
  cache.store(key(9), code);
  expect(bool(cache.find(key(0))) && bool(cache.find(key(9))) && !cache.find(key(1)));
  size_t total = 0;
  for (const auto& file : fs::directory_iterator(folder)) total += file.file_size();
  expect(total <= 10000);

  // What a killed process left half written goes too, once it is old.
  std::ofstream(folder / "x.new") << "half";
  fs::last_write_time(folder / "x.new", fs::file_time_type::clock::now() - std::chrono::hours(2));
  cache.store(key(10), code);
  expect(!fs::exists(folder / "x.new"));
}

void processes_may_share_a_folder(const fs::path& root) {
  fs::path folder = root / "shared";
  constexpr int kProcesses = 4, kKeys = 20;
  auto work = [&] {
    KernelCache cache(folder, 20000);
    for (int round = 0; round < 50; ++round) {
      for (int i = 0; i < kKeys; ++i) {
        std::string key = KernelCache::key({std::to_string(i)}), code(2000 + size_t(i), char(i));
        std::optional<std::string> found = cache.find(key);
        expect(!found || *found == code);  // whole or not at all
        if (!found) cache.store(key, code);
      }
    }
  };
  std::vector<pid_t> children;
  for (int i = 0; i < kProcesses; ++i) {
    pid_t child = fork();
    if (child == 0) {
      alarm(60);
      work();
      _exit(0);
    }
    children.push_back(child);
  }
  for (pid_t child : children) {
    int status = -1;
    waitpid(child, &status, 0);
    expect(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  for (const auto& file : fs::directory_iterator(folder)) {
    expect(file.path().extension() == ".kernel");
  }
}

}  // namespace

int main() {
  fs::path root = temporary_folder();
  what_is_stored_is_found(root);
  keys_differ_by_every_part();
  damaged_files_are_not_found(root);
  folders_of_others_are_refused(root);
  the_files_used_longest_ago_go_first(root);
  processes_may_share_a_folder(root);
  fs::remove_all(root);
}
