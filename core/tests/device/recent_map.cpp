// What was used last stays; what was not makes room.
#include "core/base/recent_map.h"

#include "core/tests/expect.h"

using namespace rushlight;

int main() {
  RecentMap<int> map(2);
  map[{1}] = 10;
  map[{2}] = 20;
  expect(map[{1}] == 10);  // 2 is the one that was not used for longest now
  int& third = map[{1, 2}];
  third = 30;
  expect(map.size() == 2 && map[{1}] == 10 && &map[{1, 2}] == &third && third == 30);
  expect(map[{2}] == 0 && map.size() == 2);
  expect(map[{1, 2}] == 30 && map[{1}] == 0);
}
