// parallel_for covers its range once, passes exceptions on, and survives forks.
#include "core/device/threads.h"

#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "core/device/allocator.h"
#include "core/device/machine.h"
#include "core/device/openmp.h"
#include "core/tests/device/fork.h"
#include "core/tests/expect.h"

using namespace rushlight;

namespace {

// How many ranges a parallel_for over plenty of items is split into; checks the cover.
int ranges_of(int64_t items, int64_t grain) {
  std::vector<std::atomic<int>> visits(items);
  std::atomic<int> ranges = 0;
  parallel_for(0, items, grain, [&](int64_t begin, int64_t end) {
    ++ranges;
    expect(begin < end);
    for (int64_t i = begin; i < end; ++i) ++visits[i];
  });
  for (auto& count : visits) expect(count == 1);
  return ranges;
}

void every_item_is_visited_once() {
  set_num_threads(3);
  for (int64_t items : {0, 1, 2, 3, 4, 5, 99, 100, 101, 1000}) {
    for (int64_t grain : {0, 1, 7, 50, 2000}) expect(ranges_of(items, grain) <= 3);
  }
  expect(ranges_of(1000, 10) == 3);
  expect(ranges_of(1000, 1000) == 1);
  expect(ranges_of(1000, 999) == 2);
  int64_t sum = 0;
  parallel_for(-5, 6, 100, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) sum += i * i;
  });
  expect(sum == 110);
}

void one_thread_means_the_caller() {
  set_num_threads(1);
  std::thread::id caller = std::this_thread::get_id();
  int calls = 0;
  parallel_for(0, 1000, 1, [&](int64_t begin, int64_t end) {
    ++calls;
    expect(begin == 0 && end == 1000 && std::this_thread::get_id() == caller);
    expect(!in_parallel_region());
  });
  expect(calls == 1);
}

void nested_loops_run_serially() {
  set_num_threads(3);
  parallel_for(0, 3, 1, [](int64_t, int64_t) {
    expect(in_parallel_region());
    expect(ranges_of(100, 1) == 1);
  });
}

void exceptions_reach_the_caller() {
  set_num_threads(3);
  for (int64_t bad : {0, 50, 99}) {
    expect_error(ErrorKind::kIndex, "item", [&] {
      parallel_for(0, 100, 1, [&](int64_t begin, int64_t end) {
        CHECK(bad < begin || bad >= end, ErrorKind::kIndex, "item ", bad);
      });
    });
  }
  expect(ranges_of(100, 1) == 3);
}

void counts_must_be_positive() {
  for (int count : {0, -1}) {
    expect_error(ErrorKind::kRuntime, "set_num_threads expects a positive integer",
                 [&] { set_num_threads(count); });
  }
}

// The default is chosen once per process, so each case starts this program anew.
void expect_default(const char* omp, const char* own, int count) {
  expect_child_succeeds([&] {
    omp ? setenv("OMP_NUM_THREADS", omp, 1) : unsetenv("OMP_NUM_THREADS");
    own ? setenv("RUSHLIGHT_NUM_THREADS", own, 1) : unsetenv("RUSHLIGHT_NUM_THREADS");
    execl("/proc/self/exe", "threads", std::to_string(count).c_str(), nullptr);
  });
}

void environment_sets_the_default() {
  expect_default(nullptr, nullptr, usable_cores());
  expect_default("5", nullptr, 5);
  expect_default("5,2", nullptr, 5);
  expect_default("5", "4", 4);
  expect_default(nullptr, "0", usable_cores());
}

void a_forked_child_runs_with_one_thread() {
  set_num_threads(3);
  expect(ranges_of(100, 1) == 3);  // the pool is open
  expect_child_succeeds([] {
    expect(num_threads() == 1);
    expect(ranges_of(100, 1) == 1);
  });
  expect(num_threads() == 3 && ranges_of(100, 1) == 3);
}

void a_forked_child_may_ask_for_threads() {
  set_num_threads(3);
  expect(ranges_of(100, 1) == 3);
  expect_child_succeeds([] {
    set_num_threads(2);
    expect(ranges_of(100, 1) == 2);
    expect_child_succeeds([] {
      set_num_threads(3);
      expect(ranges_of(100, 1) == 3);
    });
  });
}

void threads_that_a_fork_ends_return_their_memory() {
  set_num_threads(3);
  for (int round = 0; round < 3; ++round) {
    parallel_for(0, 3, 1, [](int64_t, int64_t) { cpu_free(cpu_allocate(1000), 1000); });
    alarm(20);  // the parent would wait for them for ever
    expect_child_succeeds([] { cpu_free(cpu_allocate(1000), 1000); });
    alarm(0);
  }
}

int threads_of_a_library_region() {
  std::atomic<int> threads = 0;
  GOMP_parallel([](void* threads) { ++*static_cast<std::atomic<int>*>(threads); }, &threads, 0, 0);
  return threads;
}

void a_library_region_in_a_child_does_not_hang() {
  set_num_threads(3);
  expect(ranges_of(100, 1) == 3);
  expect_child_succeeds([] {
    threads_of_a_library_region();
    LibraryThreads threads(true);
    expect(threads.count() == 1 && threads_of_a_library_region() == 1);
  });
}

void libraries_follow_the_count_on_every_thread() {
  set_num_threads(3);
  std::thread([] {
    int before = threads_of_a_library_region();
    {
      LibraryThreads threads(true);
      expect(threads.count() == 3 && threads_of_a_library_region() == 3);
    }
    {
      LibraryThreads threads(false);
      expect(threads.count() == 1 && threads_of_a_library_region() == 1);
    }
    expect(threads_of_a_library_region() == before);
  }).join();
  parallel_for(0, 3, 1, [](int64_t, int64_t) { expect(LibraryThreads(true).count() == 1); });
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2) {
    expect(num_threads() == std::atoi(argv[1]));
    return 0;
  }
  environment_sets_the_default();
  every_item_is_visited_once();
  one_thread_means_the_caller();
  nested_loops_run_serially();
  exceptions_reach_the_caller();
  counts_must_be_positive();
  a_forked_child_runs_with_one_thread();
  a_forked_child_may_ask_for_threads();
  threads_that_a_fork_ends_return_their_memory();
  a_library_region_in_a_child_does_not_hang();
  libraries_follow_the_count_on_every_thread();
}
