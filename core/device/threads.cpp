#include "core/device/threads.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <exception>

#include "core/base/ceil_div.h"
#include "core/base/error.h"
#include "core/device/allocator.h"
#include "core/device/machine.h"
#include "core/device/openmp.h"

namespace rushlight {
namespace {

std::atomic<int> thread_count{0};  // 0: not decided yet

// A positive number at the start of the variable, or 0: OMP_NUM_THREADS may be a list.
int count_from_environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? std::max(0, std::atoi(value)) : 0;
}

int default_count() {
  if (int count = count_from_environment("RUSHLIGHT_NUM_THREADS")) return count;
  if (int count = count_from_environment("OMP_NUM_THREADS")) return count;
  return usable_cores();
}

// libgomp's pool belongs to the thread that opened it. A child inherits the record of threads that
// fork did not copy and would wait for them for ever, so the pool is closed before the fork; the
// parent opens another at its next parallel region.
void before_fork() { omp_pause_resource(1, omp_get_initial_device()); }
void in_child() { thread_count.store(1, std::memory_order_relaxed); }

void register_fork_handlers() {
  cpu_register_fork_handlers();  // before ours, see there
  static const int registered = pthread_atfork(before_fork, nullptr, in_child);
  ASSERT(registered == 0);
}

}  // namespace

int num_threads() {
  int count = thread_count.load(std::memory_order_relaxed);
  if (count > 0) [[likely]]
    return count;
  register_fork_handlers();
  int expected = 0;
  // A set_num_threads that came in between wins.
  thread_count.compare_exchange_strong(expected, default_count(), std::memory_order_relaxed);
  return thread_count.load(std::memory_order_relaxed);
}

void set_num_threads(int count) {
  CHECK(count > 0, "set_num_threads expects a positive integer, but got ", count, ".");
  register_fork_handlers();
  thread_count.store(count, std::memory_order_relaxed);
}

bool in_parallel_region() { return omp_in_parallel(); }

LibraryThreads::LibraryThreads(bool worth_it)
    : count_(!worth_it || omp_in_parallel() ? 1 : num_threads()), before_(omp_get_max_threads()) {
  omp_set_num_threads(count_);
}

LibraryThreads::~LibraryThreads() { omp_set_num_threads(before_); }

namespace detail {

void run_ranges(int64_t begin, int64_t end, int64_t grain, RangeBody body, void* context) {
  int64_t range = end - begin;
  grain = std::max<int64_t>(grain, 1);
  int64_t ranges_wanted = std::min<int64_t>(num_threads(), ceil_div(range, grain));
  if (ranges_wanted == 1 || omp_in_parallel()) return body(context, begin, end);

  std::atomic_flag failed = ATOMIC_FLAG_INIT;
  std::exception_ptr failure;
  auto run_one = [&] {
    int64_t ranges = std::min<int64_t>(omp_get_num_threads(), ranges_wanted);
    int64_t thread = omp_get_thread_num();
    if (thread >= ranges) return;
    int64_t from = begin + range / ranges * thread + std::min(thread, range % ranges);
    int64_t to = from + range / ranges + (thread < range % ranges);
    try {
      body(context, from, to);
    } catch (...) {
      if (!failed.test_and_set()) failure = std::current_exception();
    }
  };
  // Always the whole team: libgomp ends threads that a smaller team leaves out, and starting them
  // again costs more than letting them pass.
  using RunOne = decltype(run_one);
  GOMP_parallel([](void* self) { (*static_cast<RunOne*>(self))(); }, &run_one,
                unsigned(num_threads()), 0);
  if (failure) std::rethrow_exception(failure);
}

}  // namespace detail
}  // namespace rushlight
