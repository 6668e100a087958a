// Owns the meeting of processes in memory that they share: each takes its seat with the number of
// the meeting and waits for the others, first awake, then asleep. Who sits is of no concern here.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace rushlight {

// The seat of one process, which alone writes `meeting`. Zeros are a seat that nobody took yet.
struct alignas(64) Seat {
  std::atomic<uint32_t> meeting;
  std::atomic<uint32_t> sleepers;  // those who wait for this process, and must be woken
};
static_assert(sizeof(Seat) == 64 && std::atomic<uint32_t>::is_always_lock_free);

// Takes seat `mine`: what this process wrote before is seen by those who meet it. Numbers of
// meetings grow by one and may wrap around. Returns the first seat that is not taken in time, or
// when a signal came, else -1. Calling again with the same number waits on.
int meet(Seat* seats, int count, int mine, uint32_t meeting, std::chrono::nanoseconds awake,
         std::chrono::nanoseconds timeout);

}  // namespace rushlight
