// The CPU allocator: reuse, alignment, counting, threads, forks, and the error when memory ends.
#include "core/device/allocator.h"

#include <unistd.h>

#include <atomic>
#include <cstring>
#include <fstream>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "core/tests/device/fork.h"
#include "core/tests/expect.h"

using namespace rushlight;

namespace {

#ifdef __SANITIZE_ADDRESS__
constexpr bool kCaching = false;
#else
constexpr bool kCaching = true;
#endif

using Blocks = std::vector<std::pair<char*, size_t>>;

void blocks_are_aligned_and_do_not_overlap() {
  Blocks blocks;
  for (size_t bytes = 1; bytes < (size_t(8) << 20); bytes += bytes / 3 + 1) {
    for (size_t near : {bytes, bytes + 63}) {
      char* block = static_cast<char*>(cpu_allocate(near));
      size_t alignment = near < kWideAlignment ? kAlignment : kWideAlignment;
      expect(reinterpret_cast<uintptr_t>(block) % alignment == 0);
      std::memset(block, int(near % 251), near);
      blocks.push_back({block, near});
    }
  }
  for (auto [block, bytes] : blocks) {
    expect(block[0] == char(bytes % 251) && block[bytes / 2] == block[0]);
    expect(block[bytes - 1] == block[0]);
    cpu_free(block, bytes);
  }
}

void zero_bytes_are_null() {
  expect(cpu_allocate(0) == nullptr);
  cpu_free(nullptr, 0);
}

void freed_blocks_come_back() {
  if (!kCaching) return;
  for (size_t bytes : {size_t(100), size_t(4096), size_t(1) << 20, size_t(9) << 20}) {
    void* first = cpu_allocate(bytes);
    cpu_free(first, bytes);
    void* second = cpu_allocate(bytes - 1);  // of the same class
    expect(first == second);
    cpu_free(second, bytes - 1);
  }
}

void stats_follow_allocations() {
  CpuMemoryStats before = cpu_memory_stats();
  constexpr size_t kBytes = size_t(5) << 20;
  void* large = cpu_allocate(kBytes);
  void* small = cpu_allocate(64);
  CpuMemoryStats during = cpu_memory_stats();
  expect(during.allocated == before.allocated + int64_t(kBytes) + 64);
  expect(during.peak >= during.allocated);
  cpu_free(large, kBytes);
  cpu_free(small, 64);
  CpuMemoryStats after = cpu_memory_stats();
  expect(after.allocated == before.allocated);
  expect(after.peak >= during.allocated);
  if (kCaching) expect(after.cached >= int64_t(kBytes) + 64);
  cpu_empty_cache();
  expect(cpu_memory_stats().cached == 0);
}

int64_t resident_bytes() {
  int64_t total, resident;
  std::ifstream("/proc/self/statm") >> total >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

void memory_stays_flat_over_random_shapes() {
  std::mt19937_64 random(0);
  int64_t after_warm_up = 0;
  for (int i = 0; i < 10000; ++i) {
    Blocks blocks;
    for (int live = 0; live < 3; ++live) {
      size_t bytes = size_t(1) << (random() % 21);
      bytes += random() % bytes;
      char* block = static_cast<char*>(cpu_allocate(bytes));
      for (size_t page = 0; page < bytes; page += 4096) block[page] = 1;
      blocks.push_back({block, bytes});
    }
    for (auto [block, bytes] : blocks) cpu_free(block, bytes);
    if (i == 2000) after_warm_up = resident_bytes();
  }
  if (kCaching) expect(resident_bytes() < after_warm_up + (int64_t(16) << 20));
}

void blocks_may_die_on_another_thread() {
  constexpr int kCount = 20000;
  std::vector<std::atomic<char*>> mailbox(64);
  std::thread consumer([&] {
    for (int i = 0; i < kCount; ++i) {
      char* block;
      while (!(block = mailbox[i % 64].exchange(nullptr))) std::this_thread::yield();
      expect(block[0] == char(i));
      cpu_free(block, size_t(i) % 5000 + 1);
    }
  });
  for (int i = 0; i < kCount; ++i) {
    char* block = static_cast<char*>(cpu_allocate(size_t(i) % 5000 + 1));
    block[0] = char(i);
    char* empty = nullptr;
    while (!mailbox[i % 64].compare_exchange_weak(empty, block)) {
      empty = nullptr;
      std::this_thread::yield();
    }
  }
  consumer.join();
}

void a_thread_that_exits_returns_its_cache() {
  cpu_empty_cache();
  CpuMemoryStats before = cpu_memory_stats();
  std::thread([] {
    for (size_t bytes = 64; bytes <= 65536; bytes *= 2) cpu_free(cpu_allocate(bytes), bytes);
  }).join();
  if (kCaching) expect(cpu_memory_stats().cached > before.cached);
  cpu_empty_cache();
  expect(cpu_memory_stats().cached == 0);
  expect(cpu_memory_stats().allocated == before.allocated);
}

// Built before the thread's cache, so it dies after it.
struct FreesLate {
  void* block = nullptr;
  ~FreesLate() { cpu_free(block, 1000); }
};

void thread_local_objects_may_free_after_the_cache_is_gone() {
  int64_t before = cpu_memory_stats().allocated;
  std::thread([] {
    thread_local FreesLate late;
    late.block = nullptr;
    late.block = cpu_allocate(1000);
  }).join();
  expect(cpu_memory_stats().allocated == before);
}

void a_forked_child_can_allocate_while_threads_do() {
  if (!kCaching) return;  // the sanitizer's own allocator may hang in the child
  std::atomic<bool> stop = false;
  std::vector<std::thread> busy;
  for (int t = 0; t < 2; ++t) {
    busy.emplace_back([&] {
      while (!stop) cpu_free(cpu_allocate(100000), 100000);
    });
  }
  for (int i = 0; i < 50; ++i) {
    expect_child_succeeds([] {
      for (size_t bytes : {100, 100000, 5000000}) cpu_free(cpu_allocate(bytes), bytes);
      cpu_empty_cache();
    });
  }
  stop = true;
  for (std::thread& thread : busy) thread.join();
}

void absurd_sizes_raise_out_of_memory() {
  expect_error(ErrorKind::kOutOfMemory, "out of memory: tried to allocate 1048576.00 GiB on CPU",
               [] { cpu_allocate(size_t(1) << 50); });
  expect_error(ErrorKind::kOutOfMemory, "out of memory", [] { cpu_allocate(~size_t(0)); });
  expect_error(ErrorKind::kOutOfMemory, "out of memory", [] { cpu_allocate(size_t(1) << 47); });
}

}  // namespace

int main() {
  blocks_are_aligned_and_do_not_overlap();
  zero_bytes_are_null();
  freed_blocks_come_back();
  stats_follow_allocations();
  memory_stays_flat_over_random_shapes();
  blocks_may_die_on_another_thread();
  a_thread_that_exits_returns_its_cache();
  thread_local_objects_may_free_after_the_cache_is_gone();
  a_forked_child_can_allocate_while_threads_do();
  absurd_sizes_raise_out_of_memory();
}
