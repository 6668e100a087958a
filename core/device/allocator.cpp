#include "core/device/allocator.h"

#include <malloc.h>
#include <pthread.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <iomanip>
#include <memory>
#include <mutex>

#include "core/base/error.h"
#include "core/device/machine.h"

namespace rushlight {
namespace {

#ifdef __SANITIZE_ADDRESS__
// Every block comes from malloc at its exact size, so that the sanitizer sees each error.
constexpr bool kCaching = false;
#else
constexpr bool kCaching = true;
#endif

constexpr size_t kSmallLimit = size_t(64) << 10;  // up to here, threads keep lists of their own
constexpr size_t kHugePage = size_t(2) << 20;     // from here on, blocks are mapped one by one
// The user's half of the address space; the sanitizer ends the process above 1 TB.
constexpr size_t kLargestBlock = size_t(1) << (kCaching ? 47 : 39);
constexpr int64_t kFlushBytes = 64 << 10;  // what a thread may leave uncounted

// Size classes: 64, 128, 192, 256, then four per power of two, so at most 20 % is unused.
constexpr int size_class(size_t bytes) {
  size_t last = bytes - 1;
  int width = std::bit_width(last | 256);
  return (width - 9) * 4 + int(last >> (width - 3));
}
constexpr size_t class_bytes(int size_class) {
  if (size_class < 4) return size_t(size_class + 1) * 64;
  return size_t(size_class % 4 + 5) << (size_class / 4 + 5);
}
static_assert(size_class(1) == 0 && size_class(64) == 0 && size_class(65) == 1);
static_assert(size_class(320) == 4 && size_class(321) == 5 && class_bytes(4) == 320);

constexpr int kSmallClasses = size_class(kSmallLimit) + 1;
constexpr int kClasses = size_class(kLargestBlock) + 1;

// A freed block holds its own links.
struct FreeBlock {
  FreeBlock* next;
  FreeBlock* prev;  // used by the shared cache only, as are the fields below
  uint64_t age;
  size_t bytes;
};
static_assert(sizeof(FreeBlock) <= class_bytes(0));

// ---- blocks of the operating system -------------------------------------------------------------

std::atomic<int64_t> held_bytes{0};  // from the operating system, in use or cached

void* map_huge(size_t bytes) {
  // Map one huge page more, and give back what lies before and after the aligned part.
  size_t mapped = bytes + kHugePage;
  void* start = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (start == MAP_FAILED) return nullptr;
  char* first = static_cast<char*>(start);
  char* block = reinterpret_cast<char*>((uintptr_t(first) + kHugePage - 1) & ~(kHugePage - 1));
  if (block > first) munmap(first, size_t(block - first));
  if (size_t after = size_t(first + mapped - (block + bytes))) munmap(block + bytes, after);
  madvise(block, bytes, MADV_HUGEPAGE);
  return block;
}

void* system_allocate(size_t bytes) {
  void* block = nullptr;
  if (kCaching && bytes >= kHugePage) {
    block = map_huge(bytes);
  } else {
    size_t alignment = bytes < kWideAlignment ? kAlignment : kWideAlignment;
    if (posix_memalign(&block, alignment, bytes) != 0) block = nullptr;
  }
  if (block) held_bytes.fetch_add(int64_t(bytes), std::memory_order_relaxed);
  return block;
}

void system_free(void* block, size_t bytes) {
  held_bytes.fetch_sub(int64_t(bytes), std::memory_order_relaxed);
  if (kCaching && bytes >= kHugePage) {
    munmap(block, bytes);
  } else {
    free(block);
  }
}

// ---- counting -----------------------------------------------------------------------------------

std::atomic<int64_t> allocated_bytes{0};
std::atomic<int64_t> peak_bytes{0};

void count(int64_t change) {
  int64_t now = allocated_bytes.fetch_add(change, std::memory_order_relaxed) + change;
  int64_t peak = peak_bytes.load(std::memory_order_relaxed);
  while (now > peak && !peak_bytes.compare_exchange_weak(peak, now, std::memory_order_relaxed)) {
  }
}

// ---- the shared cache ---------------------------------------------------------------------------

// Never destroyed, because tensors may die after static objects. The mutex guards the rest.
class SharedCache {
 public:
  static SharedCache& instance() {
    static SharedCache* cache = [] {
      cpu_register_fork_handlers();
      return new SharedCache;
    }();
    return *cache;
  }

  // A thread that forks holds the mutex, so that the child gets consistent lists.
  void lock() { mutex_.lock(); }
  void unlock() { mutex_.unlock(); }

  // Moves up to `wanted` blocks of a class, linked by `next`, to the caller.
  FreeBlock* take(int size_class, int wanted, int* taken) {
    std::lock_guard lock(mutex_);
    FreeBlock* chain = nullptr;
    for (*taken = 0; *taken < wanted && lists_[size_class].newest; ++*taken) {
      FreeBlock* block = lists_[size_class].newest;
      remove_newest(size_class);
      block->next = chain;
      chain = block;
    }
    return chain;
  }

  // Takes a chain of blocks of one class; what exceeds the cap goes back to the system.
  void put(FreeBlock* chain, int size_class) {
    FreeBlock* evicted = nullptr;
    {
      std::lock_guard lock(mutex_);
      while (chain) {
        FreeBlock* block = chain;
        chain = chain->next;
        add_newest(block, size_class);
      }
      while (bytes_ > cap_) {
        FreeBlock* block = remove_oldest();
        block->next = evicted;
        evicted = block;
      }
    }
    release(evicted);
  }

  void clear() {
    FreeBlock* evicted = nullptr;
    {
      std::lock_guard lock(mutex_);
      for (int c = 0; c < kClasses; ++c) {
        while (FreeBlock* block = lists_[c].newest) {
          remove_newest(c);
          block->next = evicted;
          evicted = block;
        }
      }
    }
    release(evicted);
  }

 private:
  struct List {
    FreeBlock* newest = nullptr;
    FreeBlock* oldest = nullptr;
  };

  void add_newest(FreeBlock* block, int size_class) {
    List& list = lists_[size_class];
    *block = {list.newest, nullptr, clock_++, class_bytes(size_class)};
    (list.newest ? list.newest->prev : list.oldest) = block;
    list.newest = block;
    bytes_ += block->bytes;
  }

  void remove_newest(int size_class) {
    List& list = lists_[size_class];
    bytes_ -= list.newest->bytes;
    list.newest = list.newest->next;
    (list.newest ? list.newest->prev : list.oldest) = nullptr;
  }

  FreeBlock* remove_oldest() {
    List* oldest = nullptr;
    for (List& list : lists_) {
      if (list.oldest && (!oldest || list.oldest->age < oldest->oldest->age)) oldest = &list;
    }
    FreeBlock* block = oldest->oldest;
    bytes_ -= block->bytes;
    oldest->oldest = block->prev;
    (block->prev ? block->prev->next : oldest->newest) = nullptr;
    return block;
  }

  // Outside the lock: unmapping is slow.
  static void release(FreeBlock* chain) {
    while (chain) {
      FreeBlock* block = chain;
      chain = chain->next;
      system_free(block, block->bytes);
    }
  }

  std::mutex mutex_;
  List lists_[kClasses];
  size_t bytes_ = 0;
  uint64_t clock_ = 0;
  // What a training step frees and needs again, yet little enough for a machine's other programs.
  const size_t cap_ = std::min(size_t(usable_memory()) / 8, size_t(4) << 30);
};

// ---- the cache of a thread ----------------------------------------------------------------------

// How many blocks of a class a thread keeps: at most 64, and 256 KB unless four are more.
constexpr auto kThreadLimits = [] {
  std::array<int, kSmallClasses> limits{};
  for (int c = 0; c < kSmallClasses; ++c) {
    limits[c] = int(std::clamp<size_t>((size_t(256) << 10) / class_bytes(c), 4, 64));
  }
  return limits;
}();

struct ThreadCache {
  ThreadCache();
  ~ThreadCache();

  void count(int64_t change) {
    uncounted += change;
    if (uncounted > kFlushBytes || uncounted < -kFlushBytes) [[unlikely]]
      flush_count();
  }
  void flush_count() {
    rushlight::count(uncounted);
    uncounted = 0;
  }
  // Hands the newest `number` blocks of a class to the shared cache.
  void hand_over(int size_class, int number) {
    FreeBlock* chain = blocks[size_class];
    FreeBlock* last = chain;
    for (int i = 1; i < number; ++i) last = last->next;
    blocks[size_class] = last->next;
    last->next = nullptr;
    counts[size_class] -= number;
    SharedCache::instance().put(chain, size_class);
  }
  void clear() {
    for (int c = 0; c < kSmallClasses; ++c) {
      if (counts[c] > 0) hand_over(c, counts[c]);
    }
    flush_count();
  }

  FreeBlock* blocks[kSmallClasses] = {};
  int counts[kSmallClasses] = {};
  int64_t uncounted = 0;
};

// Note [Static TLS]
// Two words of static TLS give a fast path without a call. One such variable puts all thread-local
// variables of the module there, where the C library has some 1,600 bytes for all libraries that a
// program loads late: what is large, like the cache itself, is behind a pointer.
[[gnu::tls_model("initial-exec")]] constinit thread_local ThreadCache* this_thread = nullptr;
[[gnu::tls_model("initial-exec")]] constinit thread_local bool exiting = false;

ThreadCache::ThreadCache() {
  SharedCache::instance();
  this_thread = this;
}
ThreadCache::~ThreadCache() {
  clear();
  this_thread = nullptr;
  exiting = true;
}

// Null when the thread's cache is gone already: other thread-local objects may still free.
ThreadCache* thread_cache() {
  if (!kCaching || exiting) return nullptr;
  thread_local auto cache = std::make_unique<ThreadCache>();
  return cache.get();
}

void* take_cached(size_t bytes) {
  if (!kCaching) return nullptr;
  int c = size_class(bytes), taken;
  ThreadCache* cache = bytes <= kSmallLimit ? thread_cache() : nullptr;
  FreeBlock* chain = SharedCache::instance().take(c, cache ? kThreadLimits[c] / 2 : 1, &taken);
  if (taken > 1) {
    cache->blocks[c] = chain->next;
    cache->counts[c] = taken - 1;
  }
  return chain;
}

struct GiB {
  size_t bytes;
};
std::ostream& operator<<(std::ostream& out, GiB size) {
  return out << std::fixed << std::setprecision(2) << double(size.bytes) / double(1 << 30)
             << " GiB";
}

[[gnu::noinline]] void* allocate_slow(size_t bytes) {
  if (bytes == 0) return nullptr;
  void* block = nullptr;
  size_t block_bytes = bytes;
  if (bytes <= kLargestBlock) {
    if (kCaching) block_bytes = class_bytes(size_class(bytes));
    block = take_cached(bytes);
    if (!block) block = system_allocate(block_bytes);
    if (!block) {
      cpu_empty_cache();
      block = system_allocate(block_bytes);
    }
  }
  // Programs that retry with a smaller batch look for the phrase "DefaultCPUAllocator: can't
  // allocate memory".
  CHECK(block, ErrorKind::kOutOfMemory, "out of memory: tried to allocate ", GiB{bytes},
        " on CPU (DefaultCPUAllocator: can't allocate memory); tensors use ",
        GiB{size_t(cpu_memory_stats().allocated)},
        ". Use a smaller batch or dtype, or free tensors first.");
  count(int64_t(block_bytes));
  return block;
}

[[gnu::noinline]] void free_slow(void* block, size_t bytes) {
  if (!block) return;
  if (!kCaching) {
    count(-int64_t(bytes));
    system_free(block, bytes);
    return;
  }
  int c = size_class(bytes);
  FreeBlock* freed = static_cast<FreeBlock*>(block);
  count(-int64_t(class_bytes(c)));
  ThreadCache* cache = bytes <= kSmallLimit ? thread_cache() : nullptr;
  if (!cache) {
    freed->next = nullptr;
    SharedCache::instance().put(freed, c);
    return;
  }
  if (cache->counts[c] >= kThreadLimits[c]) cache->hand_over(c, kThreadLimits[c] / 2);
  freed->next = cache->blocks[c];
  cache->blocks[c] = freed;
  ++cache->counts[c];
}

}  // namespace

void* cpu_allocate(size_t bytes) {
  ThreadCache* cache = this_thread;
  if (bytes - 1 < kSmallLimit && cache) [[likely]] {  // 0 - 1 wraps round
    int c = size_class(bytes);
    if (FreeBlock* block = cache->blocks[c]) [[likely]] {
      cache->blocks[c] = block->next;
      --cache->counts[c];
      cache->count(int64_t(class_bytes(c)));
      return block;
    }
  }
  return allocate_slow(bytes);
}

void cpu_free(void* block, size_t bytes) noexcept {
  ThreadCache* cache = this_thread;
  if (bytes - 1 < kSmallLimit && cache) [[likely]] {
    int c = size_class(bytes);
    if (cache->counts[c] < kThreadLimits[c]) [[likely]] {
      FreeBlock* freed = static_cast<FreeBlock*>(block);
      freed->next = cache->blocks[c];
      cache->blocks[c] = freed;
      ++cache->counts[c];
      cache->count(-int64_t(class_bytes(c)));
      return;
    }
  }
  free_slow(block, bytes);
}

void cpu_empty_cache() {
  if (!kCaching) return;
  if (ThreadCache* cache = thread_cache()) cache->clear();
  SharedCache::instance().clear();
  malloc_trim(0);  // malloc keeps freed small blocks otherwise
}

void cpu_register_fork_handlers() {
  static const int failed = pthread_atfork([] { SharedCache::instance().lock(); },
                                           [] { SharedCache::instance().unlock(); },
                                           [] { SharedCache::instance().unlock(); });
  ASSERT(!failed);
}

CpuMemoryStats cpu_memory_stats() {
  if (ThreadCache* cache = thread_cache()) cache->flush_count();
  int64_t allocated = allocated_bytes.load(std::memory_order_relaxed);
  int64_t held = held_bytes.load(std::memory_order_relaxed);
  return {allocated, held - allocated, peak_bytes.load(std::memory_order_relaxed)};
}

}  // namespace rushlight
