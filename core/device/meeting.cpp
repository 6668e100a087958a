// Defines the meeting of processes, on Linux's futex.
#include "core/device/meeting.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <ctime>

namespace rushlight {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int kLooksPerTime = 32;  // reading the clock costs as much as some looks

bool has_come(const Seat& seat, uint32_t meeting) {
  return int32_t(seat.meeting.load(std::memory_order_acquire) - meeting) >= 0;
}

void pause_briefly() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// The futex of a word that other processes map too.
long futex(std::atomic<uint32_t>& word, int action, uint32_t value, const timespec* timeout) {
  return syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), action, value, timeout, nullptr, 0);
}

bool wait_awake(const Seat& seat, uint32_t meeting, Clock::time_point end) {
  do {
    for (int i = 0; i < kLooksPerTime; ++i) {
      if (has_come(seat, meeting)) return true;
      pause_briefly();
    }
  } while (Clock::now() < end);
  return false;
}

// Sleeping and waking order their accesses in one total order: either the sleeper sees the new
// number, or the one who comes sees the sleeper.
bool wait_asleep(Seat& seat, uint32_t meeting, Clock::time_point end) {
  bool came = false, interrupted = false;
  seat.sleepers.fetch_add(1);
  while (!interrupted) {
    uint32_t seen = seat.meeting.load();
    came = int32_t(seen - meeting) >= 0;
    auto rest = std::chrono::nanoseconds(end - Clock::now()).count();
    if (came || rest <= 0) break;
    timespec timeout{time_t(rest / 1'000'000'000), long(rest % 1'000'000'000)};
    interrupted = futex(seat.meeting, FUTEX_WAIT, seen, &timeout) != 0 && errno == EINTR;
  }
  seat.sleepers.fetch_sub(1);
  return came;
}

}  // namespace

int meet(Seat* seats, int count, int mine, uint32_t meeting, std::chrono::nanoseconds awake,
         std::chrono::nanoseconds timeout) {
  seats[mine].meeting.store(meeting);
  if (seats[mine].sleepers.load() != 0) futex(seats[mine].meeting, FUTEX_WAKE, INT_MAX, nullptr);
  auto now = Clock::now();
  for (int i = 0; i < count; ++i) {
    Seat& seat = seats[i];
    if (has_come(seat, meeting)) continue;
    if (wait_awake(seat, meeting, now + std::min(awake, timeout))) continue;
    if (!wait_asleep(seat, meeting, now + timeout)) return i;
  }
  return -1;
}

}  // namespace rushlight
