// Processes meet: what one wrote before is seen by the others after, late ones are named.
#include "core/device/meeting.h"

#include <sys/mman.h>

#include <new>

#include "core/tests/device/fork.h"

using namespace rushlight;
using namespace std::chrono_literals;

namespace {

constexpr int kProcesses = 3;
constexpr uint32_t kMeetings = 2000;

struct Room {
  Seat seats[kProcesses];
  uint32_t numbers[kProcesses];
};

Room& shared_room() {
  void* memory =
      mmap(nullptr, sizeof(Room), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  expect(memory != MAP_FAILED);
  return *new (memory) Room();
}

// Each writes its number before a meeting and reads those of the others before the next one.
void meet_often(Room& room, int mine, uint32_t first, std::chrono::nanoseconds awake) {
  for (uint32_t i = 0; i < kMeetings; ++i) {
    room.numbers[mine] = i;
    expect(meet(room.seats, kProcesses, mine, first + 2 * i, awake, 20s) == -1);
    for (uint32_t number : room.numbers) expect(number == i);
    expect(meet(room.seats, kProcesses, mine, first + 2 * i + 1, awake, 20s) == -1);
  }
}

void all_see_what_was_written(uint32_t first, std::chrono::nanoseconds awake) {
  Room& room = shared_room();
  for (Seat& seat : room.seats) seat.meeting = first - 1;
  expect_child_succeeds([&] {
    for (int mine = 1; mine < kProcesses; ++mine) {
      if (fork() == 0) {
        alarm(20);
        meet_often(room, mine, first, awake);
        _exit(0);
      }
    }
    meet_often(room, 0, first, awake);
  });
}

void who_is_late_is_named() {
  Room& room = shared_room();
  expect(meet(room.seats, kProcesses, 0, 1, 0ns, 1ms) == 1);
  expect(meet(room.seats, 1, 0, 1, 0ns, 1ms) == -1);
  room.seats[1].meeting = 2;  // already at the next one
  expect(meet(room.seats, kProcesses, 0, 1, 1us, 1ms) == 2);
}

}  // namespace

int main() {
  all_see_what_was_written(1, 50us);
  all_see_what_was_written(uint32_t(-1000), 0ns);  // the numbers wrap around
  who_is_late_is_named();
}
