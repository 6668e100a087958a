// Owns the fibers, the scheduler of a block and the handler of faults.
//
// Fibers are switched with __builtin_setjmp, which saves no signal mask: some ten nanoseconds.
#include "tests/shim/launch.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "tests/shim/memory.h"
#include "tests/shim/order.h"
#include "tests/shim/races.h"
#include "tests/shim/special.h"

extern "C" void* __tls_get_addr(size_t*);  // {module, offset}, in the C library

namespace shim {
namespace {

constexpr unsigned kWarp = 32;
constexpr size_t kStack = size_t(128) << 10, kSharedLimit = size_t(256) << 10;
constexpr int kSignals[] = {SIGSEGV, SIGBUS, SIGILL, SIGTRAP, SIGFPE};

struct Fiber {
  ucontext_t context;
  void* resume[5];  // where it waits, once it has started
  bool has_started = false;
};

enum class State : unsigned char { kReady, kAtBarrier, kInWarpOperation, kExited };

struct Thread {
  State state;
  bool predicate;
  bool orders;  // the warp operation is __syncwarp()
  int line;
  unsigned mask;
  unsigned long long value;
  Fiber* fiber;
};

struct Fault {
  int signal = 0;
  void* address = nullptr;
  const char* message = nullptr;  // of __trap
};

// Everything of the launch that is running. There is one at a time.
struct Machine {
  const Launch* launch;
  Order order;
  std::vector<Fiber> fibers;
  std::vector<Fiber*> free_fibers;
  char* stacks = nullptr;
  char* shared = nullptr;  // kSharedLimit bytes and a guard page
  char* signal_stack = nullptr;

  std::vector<Thread> threads;
  unsigned thread_count, exited, barrier_count;
  unsigned long long exchanged[1024];  // what the lanes of each warp see
  Thread* current;
  void* scheduler[5];

  volatile bool in_fiber = false;
  pthread_t owner;
  Fault fault;
  struct sigaction previous[std::size(kSignals)];
};
Machine machine;

// --- Fibers

// The compiler sees jumps, not that other threads run meanwhile.
void forget_memory() { asm volatile("" ::: "memory"); }

// Of its own, because GCC loses the target of a jump that a function makes to another one.
[[noreturn, gnu::noinline]] void jump(void** target) { __builtin_longjmp(target, 1); }

// Other threads use all registers meanwhile, which noipa keeps callers from overlooking.
[[gnu::noipa]] void wait_in_fiber() {
  forget_memory();
  if (__builtin_setjmp(machine.current->fiber->resume)) {
    forget_memory();
    return;
  }
  jump(machine.scheduler);
}

void fiber_main() {
  for (;;) {
    machine.launch->kernel->call(machine.launch->arguments);
    machine.current->state = State::kExited;
    ++machine.exited;
    wait_in_fiber();
  }
}

char* stack_of(const Fiber& fiber) {
  size_t step = kStack + sysconf(_SC_PAGESIZE);
  return machine.stacks + (&fiber - machine.fibers.data()) * step;
}

// Only now, so that it begins with the signal mask and the rounding of the thread that launches.
void start(Fiber& fiber) {
  fiber.has_started = true;
  getcontext(&fiber.context);
  fiber.context.uc_stack.ss_sp = stack_of(fiber);
  fiber.context.uc_stack.ss_size = kStack;
  fiber.context.uc_link = nullptr;
  makecontext(&fiber.context, fiber_main, 0);
  setcontext(&fiber.context);
}

[[gnu::noipa]] void switch_to(Fiber& fiber) {
  forget_memory();
  if (__builtin_setjmp(machine.scheduler)) {
    forget_memory();
    return;
  }
  if (fiber.has_started) jump(fiber.resume);
  start(fiber);
}

char* map_memory(size_t size) {
  void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory != MAP_FAILED) return static_cast<char*>(memory);
  std::perror("cuda shim: mmap");
  std::abort();
}

// Once for the process. A guard page lies below each stack and above the shared memory.
void prepare_machine() {
  if (machine.stacks) return;
  size_t page = sysconf(_SC_PAGESIZE), step = kStack + page, count = std::size(machine.exchanged);
  machine.stacks = map_memory(count * step + page) + page;
  machine.fibers.resize(count);
  for (Fiber& fiber : machine.fibers) {
    mprotect(stack_of(fiber) - page, page, PROT_NONE);
    machine.free_fibers.push_back(&fiber);
  }
  machine.shared = map_memory(kSharedLimit + page);
  mprotect(machine.shared + kSharedLimit, page, PROT_NONE);
  machine.signal_stack = map_memory(kStack);
  machine.threads.resize(count);
}

// --- Errors

void report(const std::string& what) {
  const ShimIndex& block = machine.launch->registers->block_idx;
  std::fprintf(stderr, "cuda shim: kernel %s, block (%u, %u, %u): %s\n",
               machine.launch->name.c_str(), block.x, block.y, block.z, what.c_str());
}

ShimIndex index_in(const ShimIndex& size, unsigned flat) {
  return {flat % size.x, flat / size.x % size.y, flat / size.x / size.y};
}

std::string name_of(const Thread& thread) {
  ShimIndex at = index_in(machine.launch->block, &thread - machine.threads.data());
  return "thread (" + std::to_string(at.x) + ", " + std::to_string(at.y) + ", " +
         std::to_string(at.z) + ")";
}

// Called when no thread can go on. One example of each kind of thread tells what happened.
void report_divergence() {
  std::string text = "the threads do not meet. ";
  std::vector<std::string> seen;
  for (unsigned i = 0; i < machine.thread_count; ++i) {
    const Thread& thread = machine.threads[i];
    std::string line = std::to_string(thread.line), does;
    char mask[20];
    std::snprintf(mask, sizeof(mask), "0x%08x", thread.mask);
    switch (thread.state) {
      case State::kAtBarrier: does = "waits at the barrier in line " + line; break;
      case State::kInWarpOperation:
        does = "waits in line " + line + " for the lanes " + mask + " of its warp";
        break;
      case State::kExited: does = "has left the kernel"; break;
      case State::kReady: continue;
    }
    if (std::find(seen.begin(), seen.end(), does) != seen.end()) continue;
    text += (seen.empty() ? "" : ", ") + name_of(thread) + " " + does;
    seen.push_back(does);
  }
  report(text);
}

// Runs on its own stack, because the fiber's may be what overflowed.
void on_fault(int signal, siginfo_t* info, void*) {
  bool ours = machine.in_fiber && pthread_equal(pthread_self(), machine.owner);
  if (!ours) {  // the handler that was there before sees it when the instruction is repeated
    for (size_t i = 0; i < std::size(kSignals); ++i) {
      if (kSignals[i] == signal) sigaction(signal, &machine.previous[i], nullptr);
    }
    return;
  }
  if (signal == SIGSEGV || signal == SIGBUS) {
    Allocation* touched = device_memory.find_pages(info->si_addr);
    if (touched && !touched->is_open && touched->device == machine.launch->device) {
      device_memory.open(*touched);
      return;
    }
  }
  machine.fault = {signal, info->si_addr, nullptr};
  jump(machine.scheduler);
}

void catch_faults(stack_t& previous_stack) {
  stack_t stack = {};
  stack.ss_sp = machine.signal_stack;
  stack.ss_size = kStack;
  sigaltstack(&stack, &previous_stack);
  struct sigaction action = {};
  action.sa_sigaction = on_fault;
  // The handler does not return to where it was called, so the signal must not stay blocked.
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  for (size_t i = 0; i < std::size(kSignals); ++i) {
    sigaction(kSignals[i], &action, &machine.previous[i]);
  }
}

void release_faults(const stack_t& previous_stack) {
  for (size_t i = 0; i < std::size(kSignals); ++i) {
    sigaction(kSignals[i], &machine.previous[i], nullptr);
  }
  sigaltstack(&previous_stack, nullptr);
}

Outcome explain_fault() {
  const Fault& fault = machine.fault;
  std::string who = name_of(*machine.current) + " ";
  if (fault.message) {
    report(who + fault.message);
    return Outcome::kFailed;
  }
  switch (fault.signal) {
    case SIGILL:
    case SIGTRAP:
      report(who +
             "loads a vector from an unaligned address, indexes outside of an array, or runs "
             "into __builtin_unreachable()");
      return Outcome::kMisalignedAddress;
    case SIGFPE: report(who + "divides an integer by zero"); return Outcome::kFailed;
    default: break;
  }
  char* address = static_cast<char*>(fault.address);
  char text[40];
  std::snprintf(text, sizeof(text), "touches address %p, ", fault.address);
  std::string where = device_memory.describe(address);
  if (address >= machine.shared && address < machine.shared + kSharedLimit + kStack) {
    where = std::to_string(address - machine.shared - kSharedLimit) +
            " bytes after the end of the dynamic shared memory";
  }
  for (const Fiber& fiber : machine.fibers) {
    char* stack = stack_of(fiber);
    if (address < stack && address >= stack - sysconf(_SC_PAGESIZE)) {
      where = "below its stack of " + std::to_string(kStack >> 10) + " KB";
    }
  }
  report(who + text + where);
  return Outcome::kIllegalAddress;
}

// --- What a kernel calls

[[gnu::noinline]] unsigned barrier(bool predicate, int line) {
  Thread& thread = *machine.current;
  thread.state = State::kAtBarrier;
  thread.predicate = predicate;
  thread.line = line;
  wait_in_fiber();
  return machine.barrier_count;
}

const unsigned long long* wait_for_lanes(unsigned mask, unsigned long long value, bool orders,
                                         int line) {
  Thread& thread = *machine.current;
  thread.state = State::kInWarpOperation;
  thread.orders = orders;
  thread.mask = mask;
  thread.value = value;
  thread.line = line;
  size_t warp = (&thread - machine.threads.data()) / kWarp;
  wait_in_fiber();
  return machine.exchanged + warp * kWarp;
}

[[gnu::noinline]] const unsigned long long* exchange(unsigned mask, unsigned long long value,
                                                     int line) {
  return wait_for_lanes(mask, value, false, line);
}

[[gnu::noinline]] void sync_warp(unsigned mask, int line) { wait_for_lanes(mask, 0, true, line); }

void trap(const char* message) {
  machine.fault = {0, nullptr, message};
  wait_in_fiber();
}

void watch_touch(const void* address, unsigned long size, int how) {
  unsigned thread = unsigned(machine.current - machine.threads.data());
  static std::string wrong;
  wrong = touch(address, size, Touch(how), thread);
  if (!wrong.empty()) trap(wrong.c_str());
}

const ShimRuntime kRuntime = {barrier, exchange, sync_warp, watch_touch, trap, erfinv, erfcinv};

// --- One block

// Runs the thread until it waits or leaves; false on a fault.
bool step(Thread& thread, unsigned i) {
  ShimRegisters& registers = *machine.launch->registers;
  if (!thread.fiber) {
    thread.fiber = machine.free_fibers.back();
    machine.free_fibers.pop_back();
  }
  machine.current = &thread;
  registers.thread_idx = index_in(machine.launch->block, i);
  registers.lane = i % kWarp;
  machine.in_fiber = true;
  switch_to(*thread.fiber);
  machine.in_fiber = false;
  if (machine.fault.signal || machine.fault.message) return false;
  if (thread.state == State::kExited) {
    machine.free_fibers.push_back(thread.fiber);
    thread.fiber = nullptr;
  }
  return true;
}

// Lets the lanes go on whose warp operation all named lanes have reached; false if there are none.
// All that go on read what was exchanged before the warp is looked at again.
bool complete_operations(unsigned warp) {
  unsigned count = std::min(kWarp, machine.thread_count - warp * kWarp);
  Thread* lanes = machine.threads.data() + warp * kWarp;
  unsigned long long* exchanged = machine.exchanged + warp * kWarp;
  unsigned all = count == kWarp ? ~0u : (1u << count) - 1;
  bool any = false;
  for (unsigned lane = 0; lane < count; ++lane) {
    if (lanes[lane].state != State::kInWarpOperation) continue;
    const Thread first = lanes[lane];
    bool complete = first.mask >> lane & 1;
    for (unsigned other = 0; other < count; ++other) {
      const Thread& thread = lanes[other];
      complete &=
          !(first.mask >> other & 1) || (thread.state == State::kInWarpOperation &&
                                         thread.mask == first.mask && thread.line == first.line);
    }
    if (!complete) continue;
    any = true;
    if (first.orders && (first.mask & all) == all) order_warp(warp);
    for (unsigned other = 0; other < kWarp; ++other) {
      if (other >= count) {
        exchanged[other] = ~0ull;
      } else if (first.mask >> other & 1) {
        exchanged[other] = lanes[other].value;
        lanes[other].state = State::kReady;
      }
    }
  }
  return any;
}

enum class Pace { kGoing, kWaiting, kFaulty };

// Lets the warp go on by some of its operations, or to the next barrier.
Pace run_warp(unsigned warp) {
  unsigned first = warp * kWarp, count = std::min(kWarp, machine.thread_count - first);
  for (unsigned left = machine.order.patience(); left > 0; --left) {
    auto lanes = machine.order.of(count);
    for (unsigned i = 0; i < count; ++i) {
      unsigned thread = first + unsigned(lanes(i));
      Thread& lane = machine.threads[thread];
      if (lane.state == State::kReady && !step(lane, thread)) return Pace::kFaulty;
    }
    if (!complete_operations(warp)) return Pace::kWaiting;
  }
  return Pace::kGoing;
}

// Runs all warps to the next barrier or their end; false on a fault.
bool run_warps() {
  unsigned count = (machine.thread_count + kWarp - 1) / kWarp;
  for (bool going = true; going;) {
    going = false;
    auto warps = machine.order.of(count);
    for (unsigned i = 0; i < count; ++i) {
      Pace pace = run_warp(unsigned(warps(i)));
      if (pace == Pace::kFaulty) return false;
      going |= pace == Pace::kGoing;
    }
  }
  return true;
}

// Lets all threads go on if all wait at the same barrier.
bool release_barrier() {
  machine.barrier_count = 0;
  for (unsigned i = 0; i < machine.thread_count; ++i) {
    const Thread& thread = machine.threads[i];
    if (thread.state != State::kAtBarrier || thread.line != machine.threads[0].line) return false;
    machine.barrier_count += thread.predicate;
  }
  for (unsigned i = 0; i < machine.thread_count; ++i) machine.threads[i].state = State::kReady;
  order_block();
  return true;
}

Outcome run_block() {
  const Launch& launch = *machine.launch;
  char* static_shared = nullptr;
  if (launch.static_shared) {
    size_t variable[] = {launch.tls_module, 0};
    static_shared = static_cast<char*>(__tls_get_addr(variable));
    std::memset(static_shared, kPoison, launch.static_shared);
  }
  char* dynamic_shared = static_cast<char*>(launch.registers->dynamic_shared);
  std::memset(dynamic_shared, kPoison, launch.dynamic_shared);
  if (watches_races())
    watch_block(static_shared, launch.static_shared, dynamic_shared, launch.dynamic_shared);
  machine.exited = 0;
  std::fill_n(machine.threads.begin(), machine.thread_count, Thread{});
  for (;;) {
    if (!run_warps()) return explain_fault();
    if (machine.exited == machine.thread_count) return Outcome::kSuccess;
    if (!release_barrier()) {
      report_divergence();
      return Outcome::kFailed;
    }
  }
}

Outcome run_blocks() {
  const Launch& launch = *machine.launch;
  size_t blocks = size_t(launch.grid.x) * launch.grid.y * launch.grid.z;
  auto order = machine.order.of(blocks);
  for (size_t i = 0; i < blocks; ++i) {
    size_t block = order(i);
    size_t row = block / launch.grid.x;
    launch.registers->block_idx = {unsigned(block % launch.grid.x), unsigned(row % launch.grid.y),
                                   unsigned(row / launch.grid.y)};
    if (Outcome outcome = run_block(); outcome != Outcome::kSuccess) {
      for (unsigned j = 0; j < machine.thread_count; ++j) {  // they stand somewhere in the kernel
        Fiber* fiber = machine.threads[j].fiber;
        if (!fiber) continue;
        fiber->has_started = false;
        machine.free_fibers.push_back(fiber);
      }
      return outcome;
    }
  }
  return Outcome::kSuccess;
}

// What the arguments point to is opened at once, which is cheaper than a fault for each. Memory
// that is reached another way is opened by the fault.
void open_arguments() {
  const Launch& launch = *machine.launch;
  for (unsigned i = 0; i < launch.kernel->count; ++i) {
    const char* argument = static_cast<const char*>(launch.arguments[i]);
    for (size_t at = 0; at + sizeof(void*) <= launch.kernel->sizes[i]; at += sizeof(void*)) {
      void* pointer;
      std::memcpy(&pointer, argument + at, sizeof(pointer));
      Allocation* found = device_memory.find_pages(pointer);
      if (found && found->device == launch.device) device_memory.open(*found);
    }
  }
}

}  // namespace

Outcome run(const Launch& launch) {
  prepare_machine();
  machine.launch = &launch;
  machine.thread_count = launch.block.x * launch.block.y * launch.block.z;
  machine.owner = pthread_self();
  machine.fault = {};
  machine.order = Order::wanted();
  if (watches_races()) watch_launch();
  ShimRegisters& registers = *launch.registers;
  registers.block_dim = launch.block;
  registers.grid_dim = launch.grid;
  registers.dynamic_shared = machine.shared + kSharedLimit - (launch.dynamic_shared + 15) / 16 * 16;
  registers.runtime = &kRuntime;
  open_arguments();
  stack_t previous_stack;
  catch_faults(previous_stack);
  Outcome outcome = run_blocks();
  if (std::string wrong = last_touch(); !wrong.empty() && outcome == Outcome::kSuccess) {
    report(wrong);
    outcome = Outcome::kFailed;
  }
  release_faults(previous_stack);
  for (const Allocation& damaged : device_memory.close_all()) {
    std::fprintf(
        stderr,
        "cuda shim: kernel %s: writes next to the %zu bytes at %p, of device %d, less than "
        "a page before or behind them\n",
        launch.name.c_str(), damaged.size, static_cast<void*>(damaged.begin), damaged.device);
    if (outcome == Outcome::kSuccess) outcome = Outcome::kIllegalAddress;
  }
  return outcome;
}

}  // namespace shim
