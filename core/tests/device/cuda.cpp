// CUDA's host side: without a driver, and on the shim that plays driver, NVRTC and GPU.
// The shim (tests/shim) is another target; where it was not built, only the first part runs.
#include "core/device/cuda.h"

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <numeric>
#include <thread>
#include <vector>

#include "core/device/cuda_kernel.h"
#include "core/device/cuda_memory.h"
#include "core/device/cuda_pinned.h"
#include "core/device/cuda_stream.h"
#include "core/tests/device/fork.h"
#include "core/tests/expect.h"

using namespace rushlight;

namespace {

constexpr Device kCuda{DeviceType::cuda, 0};
constexpr Device kCpu{};

constexpr const char* kText = R"(
#include "core/device/device_types.cuh"
extern "C" __global__ void scale(T* x, T factor, int64_t n) {
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= factor;
}
extern "C" __global__ void last_of_shared(int32_t* out, int32_t count) {
  extern __shared__ int32_t values[];
  for (int32_t i = threadIdx.x; i < count; i += blockDim.x) values[i] = i;
  __syncthreads();
  if (threadIdx.x == 0) *out = values[count - 1];
}
extern "C" __global__ void both_kinds_of_shared(int32_t* out, int32_t count) {
  __shared__ int32_t own[256];
  extern __shared__ int32_t values[];
  own[threadIdx.x] = values[count - 1 - threadIdx.x] = threadIdx.x;
  __syncthreads();
  if (threadIdx.x == 0) *out = own[5] + values[count - 3];
}
)";

cuda::CudaModule text("test<float>", kText, "#define T float\n");
cuda::CudaKernel scale(text, "scale");
cuda::CudaKernel last_of_shared(text, "last_of_shared");
cuda::CudaKernel both_kinds_of_shared(text, "both_kinds_of_shared");

void without_a_driver_one_error_says_what_helps() {
  setenv("RUSHLIGHT_CUDA_DRIVER", "/nowhere/libcuda.so.1", 1);
  expect_child_succeeds([] {
    expect(!cuda::is_available() && cuda::device_count() == 0 && !cuda::is_initialized());
    for (auto use :
         {+[] { cuda::require(); }, +[] { cuda::activate(0); },
          +[] { cuda::device_index({DeviceType::cuda, -1}); }, +[] { cuda::set_device(1); },
          +[] { cuda::allocate(8, 0); }, +[] { cuda::pinned_allocate(8); }}) {
      expect_error(ErrorKind::kRuntime, "/nowhere/libcuda.so.1 was not found", use);
    }
    cuda::set_device(0);  // is the current one
    expect(!cuda::is_pinned(&text));
    cuda::free(nullptr);
    cuda::empty_cache();
  });
}

void a_library_that_is_no_driver_is_refused() {
  setenv("RUSHLIGHT_CUDA_DRIVER", "libm.so.6", 1);
  expect_child_succeeds([] {
    expect(!cuda::is_available());
    expect_error(ErrorKind::kRuntime, "libm.so.6 has no function cuInit", [] { cuda::require(); });
  });
}

cuda::CudaKernelFamily family([] { new cuda::CudaModule("made<late>", kText, "#define T int\n"); });

void modules_are_listed_once_by_name() {
  for (int call = 0; call < 2; ++call) {
    std::vector<cuda::CudaModule*> modules = cuda::all_cuda_modules();
    expect(modules.size() == 3);
    expect(modules[0]->name() == "cuda_graph");  // of core/device itself
    expect(modules[1]->name() == "made<late>" && modules[2]->name() == "test<float>");
  }
  std::string whole = text.whole_text();
  expect(whole.starts_with("#line 1 \"core/device/device_types.cuh\"\n"));
  expect(whole.find("#define T float\n#line 1 \"kernel\"\n") != std::string::npos);
  expect(whole.find("#include \"") == std::string::npos &&
         whole.find("#pragma once") == whole.npos);
  expect(whole.find("#line 3 \"kernel\"\nextern \"C\" __global__ void scale") != std::string::npos);
}

std::vector<float> counted(size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 1.0f);
  return values;
}

void devices_are_described() {
  expect(cuda::is_available() && cuda::device_count() >= 1);
  const cuda::Properties& p = cuda::properties(0);
  expect(!p.name.empty() && p.total_memory > 0 && p.multiprocessors > 0 && p.warp_size == 32);
  expect(p.arch() == "sm_" + std::to_string(p.major * 10 + p.minor));
  expect(cuda::device_index({DeviceType::cuda, -1}) == 0);
  expect_error(ErrorKind::kRuntime, "invalid device ordinal", [] { cuda::set_device(31); });
  expect_error(ErrorKind::kRuntime, "invalid device ordinal", [] { cuda::properties(-1); });
}

void bytes_go_there_and_back() {
  std::vector<float> values = counted(1000), back(1000);
  size_t bytes = values.size() * sizeof(float);
  cuda::CudaBuffer first(bytes, 0), second(bytes, 0);
  cuda::copy_bytes(first.data(), kCuda, values.data(), kCpu, bytes);
  cuda::copy_bytes(second.data(), kCuda, first.data(), kCuda, bytes);
  cuda::copy_bytes(back.data(), kCpu, second.data(), kCuda, bytes);
  expect(back == values);
  cuda::fill_bytes(second.data(), kCuda, 0, bytes);
  cuda::copy_bytes(back.data(), kCpu, second.data(), kCuda, bytes);
  expect(back == std::vector<float>(1000, 0));
  cuda::copy_bytes(nullptr, kCuda, nullptr, kCpu, 0);
}

void devices_work_side_by_side() {
  expect(cuda::device_count() == 2);  // of the shim
  constexpr Device kOther{DeviceType::cuda, 1};
  std::vector<float> values = counted(1000), back(1000);
  size_t bytes = values.size() * sizeof(float);
  cuda::CudaBuffer here(bytes, 0), there(bytes, 1);
  cuda::copy_bytes(here.data(), kCuda, values.data(), kCpu, bytes);
  cuda::copy_bytes(there.data(), kOther, here.data(), kCuda, bytes);
  {
    cuda::DeviceGuard guard(1);
    expect(cuda::current_device() == 1 && cuda::device_index({DeviceType::cuda, -1}) == 1);
    std::thread([] { expect(cuda::current_device() == 0); }).join();
    scale.launch({4}, {256}, 0, static_cast<float*>(there.data()), 2.0f, int64_t(1000));
    cuda::Event event;
    event.record(cuda::current_stream(1));
    expect_error(ErrorKind::kRuntime, "the event belongs to cuda:1",
                 [&] { event.record(cuda::current_stream(0)); });
    event.block(cuda::current_stream(0));
  }
  expect(cuda::current_device() == 0);
  cuda::copy_bytes(back.data(), kCpu, there.data(), kOther, bytes);
  for (size_t i = 0; i < back.size(); ++i) expect(back[i] == 2 * values[i]);
  expect(cuda::memory_stats(1).allocated.current >= int64_t(bytes));
}

void freed_blocks_serve_the_same_stream_again() {
  cuda::empty_cache();
  cuda::reset_peak_memory_stats(0);
  cuda::MemoryStats before = cuda::memory_stats(0);
  cuda::Block* block = cuda::allocate(1000, 0);
  void* address = cuda::data(block);
  expect(cuda::memory_stats(0).allocated.current == before.allocated.current + 1024);
  cuda::free(block);
  expect(cuda::memory_stats(0).cached == before.cached + 1024);

  cuda::Stream other = cuda::pool_stream(0);
  {
    cuda::StreamGuard guard(other);
    cuda::CudaBuffer elsewhere(1000, 0);
    expect(elsewhere.data() != address);
  }
  cuda::CudaBuffer again(900, 0);
  expect(again.data() == address);
  cuda::MemoryStats now = cuda::memory_stats(0);
  expect(now.allocations.current == before.allocations.current + 1);
  expect(now.allocated.peak == before.allocated.current + 1024);
  expect(now.allocations.total == before.allocations.total + 3);
  expect(cuda::allocate(0, 0) == nullptr && cuda::data(nullptr) == nullptr);
  cuda::empty_cache();
  expect(cuda::memory_stats(0).cached == 0);
}

void blocks_wait_for_recorded_streams() {
  cuda::Stream other = cuda::pool_stream(0);
  cuda::Block* block = cuda::allocate(4000, 0);
  void* address = cuda::data(block);
  cuda::record_stream(block, other);
  cuda::record_stream(block, cuda::current_stream(0));  // its own: nothing to wait for
  cuda::free(block);
  cuda::synchronize(other);
  cuda::CudaBuffer again(4000, 0);
  expect(again.data() == address);
}

void too_much_memory_is_an_error_of_its_own() {
  int64_t before = cuda::memory_stats(0).out_of_memory;
  expect_error(ErrorKind::kOutOfMemory, "CUDA out of memory. Tried to allocate",
               [] { cuda::allocate(size_t(1) << 50, 0); });
  cuda::MemoryStats now = cuda::memory_stats(0);
  expect(now.out_of_memory == before + 1 && now.retries >= 1);
  cuda::CudaBuffer after(100, 0);  // the next one works
}

void kernels_run() {
  std::vector<float> values = counted(1000), back(1000);
  size_t bytes = values.size() * sizeof(float);
  cuda::CudaBuffer buffer(bytes, 0);
  cuda::copy_bytes(buffer.data(), kCuda, values.data(), kCpu, bytes);
  float* x = static_cast<float*>(buffer.data());
  scale.launch({4}, {256}, 0, x, 3.0f, int64_t(1000));
  scale.launch({0}, {256}, 0, x, 3.0f, int64_t(1000));  // an empty grid
  cuda::copy_bytes(back.data(), kCpu, buffer.data(), kCuda, bytes);
  for (size_t i = 0; i < back.size(); ++i) expect(back[i] == 3 * values[i]);

  // More shared memory than a kernel has without asking.
  cuda::CudaBuffer out(4, 0);
  int32_t last = 0, count = 15000;
  last_of_shared.launch({1}, {32}, unsigned(count) * 4, static_cast<int32_t*>(out.data()), count);
  cuda::copy_bytes(&last, kCpu, out.data(), kCuda, 4);
  expect(last == count - 1);
  // As much as there is without asking, but the kernel has some of its own.
  count = (48 << 10) / 4;
  both_kinds_of_shared.launch({1}, {32}, unsigned(count) * 4, static_cast<int32_t*>(out.data()),
                              count);
  cuda::copy_bytes(&last, kCpu, out.data(), kCuda, 4);
  expect(last == 5 + 2);
  expect_error(ErrorKind::kRuntime, "bytes of shared memory",
               [&] { last_of_shared.launch({1}, {32}, 1u << 30, nullptr, count); });
  expect(scale.max_threads_per_block() >= 32);

  // First use from several threads at once, each on its own stream.
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      cuda::StreamGuard guard(cuda::pool_stream(0));
      cuda::CudaBuffer mine(bytes, 0);
      std::vector<float> result(1000);
      cuda::copy_bytes(mine.data(), kCuda, values.data(), kCpu, bytes);
      scale.launch({4}, {256}, 0, static_cast<float*>(mine.data()), 2.0f, int64_t(1000));
      cuda::copy_bytes(result.data(), kCpu, mine.data(), kCuda, bytes);
      for (size_t i = 0; i < result.size(); ++i) expect(result[i] == 2 * values[i]);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

void a_text_that_does_not_compile_names_itself() {
  static cuda::CudaModule broken("broken<float>", "int f() { return no_such_name; }\n");
  static cuda::CudaKernel kernel(broken, "f");
  expect_error(ErrorKind::kRuntime, "broken<float>: NVRTC ", [] { kernel.launch({1}, {1}, 0); });
  static cuda::CudaModule unknown("unknown", "#include \"core/nowhere.cuh\"\n");
  expect_error(ErrorKind::kRuntime, "includes core/nowhere.cuh", [] { unknown.whole_text(); });
}

void streams_and_events_order_work() {
  cuda::Stream before = cuda::current_stream(0), high = cuda::pool_stream(0, -1);
  expect(before == cuda::default_stream(0) && high != cuda::pool_stream(0, -1));
  {
    cuda::StreamGuard guard(high);
    expect(cuda::current_stream(0) == high);
    std::thread([] { expect(cuda::current_stream(0) == cuda::default_stream(0)); }).join();
  }
  expect(cuda::current_stream(0) == before);

  cuda::Event start(true), end(true), plain;
  expect(start.is_done() && start.handle() == nullptr && start.device() == -1);
  start.synchronize();
  start.block(high);
  expect_error(ErrorKind::kValue, "must be recorded", [&] { start.elapsed_time(end); });
  start.record(before);
  end.record(before);
  end.synchronize();
  end.block(high);
  cuda::synchronize(high);
  cuda::synchronize(0);
  expect(start.is_done() && end.is_done() && cuda::is_done(high) && start.device() == 0);
  expect(start.elapsed_time(end) >= 0);
  plain.record(before);
  expect_error(ErrorKind::kValue, "enable_timing=True", [&] { start.elapsed_time(plain); });
  cuda::order(before, high);
}

void pinned_memory_is_kept_and_known() {
  void* first = cuda::pinned_allocate(10000);
  expect(cuda::is_pinned(first) && cuda::is_pinned(static_cast<char*>(first) + 9999));
  expect(!cuda::is_pinned(&first) && cuda::pinned_allocate(0) == nullptr);
  std::memset(first, 7, 10000);
  cuda::CudaBuffer buffer(10000, 0);
  cuda::copy_bytes(buffer.data(), kCuda, first, kCpu, 10000, true);
  std::vector<char> back(10000);
  cuda::copy_bytes(back.data(), kCpu, buffer.data(), kCuda, 10000, true);  // pageable: waits
  expect(back == std::vector<char>(10000, 7));
  cuda::pinned_free(first);
  void* second = cuda::pinned_allocate(12000);
  expect(second == first);
  cuda::pinned_free(second);
  cuda::empty_cache();
  expect(!cuda::is_pinned(first));
}

void a_forked_child_is_told_so() {
  cuda::Block* block = cuda::allocate(1000, 0);
  void* pinned = cuda::pinned_allocate(1000);
  auto event = std::make_unique<cuda::Event>();
  event->record(cuda::current_stream(0));
  expect_child_succeeds([&] {
    expect(!cuda::is_available() && cuda::device_count() == 0 && !cuda::is_initialized());
    expect_error(ErrorKind::kRuntime, "Cannot re-initialize CUDA in forked subprocess",
                 [] { cuda::allocate(500, 0); });
    expect_error(ErrorKind::kRuntime, "forked subprocess",
                 [] { scale.launch({1}, {1}, 0, nullptr, 1.0f, int64_t(0)); });
    cuda::free(block);  // the parent's: nothing happens
    cuda::pinned_free(pinned);
    cuda::empty_cache();
    event.reset();
  });
  cuda::free(block);
  cuda::pinned_free(pinned);
}

void errors_carry_the_driver_s_words() {
  expect_error(ErrorKind::kRuntime, "CUDA error: ", [] { cuda::check(1, "cuLaunchKernel"); });
  expect_error(ErrorKind::kRuntime, " from cuLaunchKernel)",
               [] { cuda::check(1, "cuLaunchKernel"); });
  expect_error(ErrorKind::kOutOfMemory, "CUDA error: ", [] { cuda::check(2, "cuMemAllocHost"); });
}

}  // namespace

int main() {
  without_a_driver_one_error_says_what_helps();
  a_library_that_is_no_driver_is_refused();
  modules_are_listed_once_by_name();

  const char* shim = std::getenv("RUSHLIGHT_TEST_SHIM");
  if (!shim || !std::filesystem::exists(shim)) {
    std::cout << "no shim: the rest is skipped\n";
    return 0;
  }
  char folder[] = "/tmp/rushlight_kernels_XXXXXX";
  setenv("RUSHLIGHT_CACHE", mkdtemp(folder), 1);
  setenv("RUSHLIGHT_CUDA_DRIVER", shim, 1);
  setenv("RUSHLIGHT_NVRTC", shim, 1);
  devices_are_described();
  bytes_go_there_and_back();
  devices_work_side_by_side();
  freed_blocks_serve_the_same_stream_again();
  blocks_wait_for_recorded_streams();
  too_much_memory_is_an_error_of_its_own();
  kernels_run();
  a_text_that_does_not_compile_names_itself();
  streams_and_events_order_work();
  pinned_memory_is_kept_and_known();
  errors_carry_the_driver_s_words();
  a_forked_child_is_told_so();
  std::filesystem::remove_all(folder);
}
