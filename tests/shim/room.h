// Owns the place where the ranks of a pretended communicator exchange bytes: a folder of files,
// named by the communicator's id, that the processes of this machine share. Simple, not fast.
//
// Each rank holds a lock on a file of its own, which the kernel drops when the process ends.
#pragma once

#include <atomic>
#include <string>
#include <vector>

namespace shim {

// What ends a wait for another rank.
struct Departed {
  std::string why;
};

class Room {
 public:
  // Returns when all ranks are here; `card` is a line that the others can read.
  Room(const std::string& id, int size, int rank, const std::string& card);
  Room(const Room&) = delete;
  ~Room();

  int size() const { return size_; }
  int rank() const { return rank_; }
  const std::string& card(int rank) const { return cards_[size_t(rank)]; }

  // Leaves bytes under a name, which others may wait for and take away.
  void leave(const std::string& name, const std::string& bytes);
  // Throws Departed when the rank that should leave them has ended, or this one gave up.
  std::string wait_for(const std::string& name, int from);
  void remove(const std::string& name);

  // Ends all waiting here, from another thread.
  void give_up() { has_given_up_ = true; }
  // Leaves it for good; the others do not take this rank for dead.
  void close();
  // A rank whose process ended without closing; -1 if there is none.
  int find_dead() const;

 private:
  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  bool is_locked(int rank) const;

  std::string folder_;
  int size_, rank_, lock_ = -1;
  std::vector<std::string> cards_;
  std::atomic<bool> has_given_up_{false};
};

}  // namespace shim
