// Owns the number of CPU threads and parallel_for, the one way our loops use them.
//
// One OpenMP pool, shared with oneDNN. A forked child starts with one thread; set_num_threads
// gives it a pool of its own.
#pragma once

#include <cstdint>
#include <type_traits>

namespace rushlight {

// At first use: RUSHLIGHT_NUM_THREADS, else OMP_NUM_THREADS, else the physical cores that the
// affinity mask and the cgroup quota allow, divided by LOCAL_WORLD_SIZE ranks.
int num_threads();

void set_num_threads(int count);

// Whether the caller runs inside parallel_for or another OpenMP region.
bool in_parallel_region();

// While it lives, the OpenMP regions that a library opens on this thread use num_threads() threads,
// or one when threads are not worth it or in use already.
class LibraryThreads {
 public:
  explicit LibraryThreads(bool worth_it);
  ~LibraryThreads();
  LibraryThreads(const LibraryThreads&) = delete;
  LibraryThreads& operator=(const LibraryThreads&) = delete;

  int count() const { return count_; }

 private:
  int count_;
  int before_;  // what other users of OpenMP in this process count on
};

// Products of matrices need about 64^3 multiplications per thread to be worth it.
inline constexpr double kMultiplicationsPerThread = 1 << 18;

namespace detail {
using RangeBody = void (*)(void* context, int64_t begin, int64_t end);
void run_ranges(int64_t begin, int64_t end, int64_t grain, RangeBody body, void* context);
}  // namespace detail

// Calls f(begin, end) on disjoint ranges that cover [begin, end): one range, on this thread, when
// there are at most `grain` items or threads are in use already; else about equal ranges, one per
// thread. The first exception that a range throws is rethrown here.
template <class F>
void parallel_for(int64_t begin, int64_t end, int64_t grain, F&& f) {
  if (begin >= end) return;
  if (end - begin <= grain) return f(begin, end);
  using Function = std::remove_reference_t<F>;
  detail::run_ranges(
      begin, end, grain,
      [](void* context, int64_t b, int64_t e) { (*static_cast<Function*>(context))(b, e); },
      const_cast<void*>(static_cast<const void*>(&f)));
}

}  // namespace rushlight
