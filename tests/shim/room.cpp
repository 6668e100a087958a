#include "tests/shim/room.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

namespace shim {
namespace {

namespace fs = std::filesystem;

std::string name_of(const char* what, int rank) { return what + std::to_string(rank); }

struct flock whole_file() {
  struct flock lock = {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  return lock;
}

std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

Room::Room(const std::string& id, int size, int rank, const std::string& card)
    : folder_(fs::temp_directory_path() / ("nccl_shim_" + id)), size_(size), rank_(rank) {
  fs::create_directories(folder_);
  lock_ = open(path(name_of("lock_", rank)).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  struct flock lock = whole_file();
  fcntl(lock_, F_SETLK, &lock);
  leave(name_of("card_", rank), card);
  for (int other = 0; other < size; ++other)
    cards_.push_back(wait_for(name_of("card_", other), other));
}

Room::~Room() { close(); }

void Room::leave(const std::string& name, const std::string& bytes) {
  std::string unfinished = path(name) + name_of(".of_", rank_);
  std::ofstream(unfinished, std::ios::binary) << bytes;
  fs::rename(unfinished, path(name));
}

std::string Room::wait_for(const std::string& name, int from) {
  auto pause = std::chrono::microseconds(50);
  for (;;) {
    // Asked before looking: what a rank leaves before it ends is there by then.
    bool was_here = is_locked(from) || !fs::exists(path(name_of("card_", from)));
    if (fs::exists(path(name))) return content_of(path(name));
    if (has_given_up_) throw Departed{"the communicator was aborted"};
    if (!was_here) throw Departed{"remote process exited: rank " + std::to_string(from)};
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, std::chrono::microseconds(2000));
  }
}

void Room::remove(const std::string& name) {
  std::error_code ignored;
  fs::remove(path(name), ignored);
}

void Room::close() {
  if (lock_ < 0) return;
  leave(name_of("left_", rank_), "");
  ::close(lock_);
  lock_ = -1;
  bool is_last = true;
  for (int rank = 0; rank < size_; ++rank) is_last &= !is_locked(rank);
  std::error_code ignored;
  if (is_last) fs::remove_all(folder_, ignored);
}

int Room::find_dead() const {
  for (int rank = 0; rank < size_; ++rank)
    if (!is_locked(rank) && !fs::exists(path(name_of("left_", rank)))) return rank;
  return -1;
}

bool Room::is_locked(int rank) const {
  if (rank == rank_) return lock_ >= 0;  // to open it again would end the lock
  int file = open(path(name_of("lock_", rank)).c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) return false;
  struct flock lock = whole_file();
  fcntl(file, F_GETLK, &lock);
  ::close(file);
  return lock.l_type != F_UNLCK;
}

}  // namespace shim
