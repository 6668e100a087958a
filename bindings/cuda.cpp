// Owns the native side of rushlight.cuda: plain functions on device numbers and stream handles, and
// the class of events. What waits for the GPU lets other Python threads run.
#include "core/device/cuda.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings/python.h"
#include "core/device/cublaslt.h"
#include "core/device/cuda_graph.h"
#include "core/device/cuda_kernel.h"
#include "core/device/cuda_memory.h"
#include "core/device/cuda_pinned.h"
#include "core/device/cuda_pool.h"
#include "core/device/cuda_stream.h"
#include "core/device/cudnn.h"
#include "core/device/kernel_cache.h"
#include "core/device/nvml.h"
#include "core/device/nvrtc.h"
#include "core/device/nvtx.h"
#include "core/tensor/fusion.h"
#include "core/tensor/generator.h"
#include "core/tensor/tile_loop.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace rushlight::python {
namespace {

using cuda::Stream;
using NoGil = nb::call_guard<ReleaseGil>;

Stream stream_of(int device, uintptr_t handle) {
  return {cuda::device_index({DeviceType::cuda, int8_t(cuda::slot_of(device))}),
          reinterpret_cast<cuda::CUstream>(handle)};
}

uintptr_t handle_of(Stream stream) { return reinterpret_cast<uintptr_t>(stream.handle); }

nb::dict describe(const cuda::Properties& p) {
  nb::dict out;
  out["name"] = p.name;
  out["uuid"] = nb::bytes(p.uuid.data(), p.uuid.size());
  out["total_memory"] = p.total_memory;
  out["major"] = p.major;
  out["minor"] = p.minor;
  out["multi_processor_count"] = p.multiprocessors;
  out["warp_size"] = p.warp_size;
  out["max_threads_per_block"] = p.max_threads_per_block;
  out["max_threads_per_multi_processor"] = p.max_threads_per_multiprocessor;
  out["regs_per_multiprocessor"] = p.registers_per_multiprocessor;
  out["shared_memory_per_block"] = p.shared_memory_per_block;
  out["shared_memory_per_block_optin"] = p.shared_memory_per_block_optin;
  out["shared_memory_per_multiprocessor"] = p.shared_memory_per_multiprocessor;
  out["L2_cache_size"] = p.l2_cache_size;
  out["is_integrated"] = p.is_integrated;
  return out;
}

// By PyTorch's names, as in the two that follow.
void put_count(nb::dict& out, const std::string& name, const MemoryCount& count) {
  out[(name + ".current").c_str()] = count.current;
  out[(name + ".peak").c_str()] = count.peak;
  out[(name + ".allocated").c_str()] = count.total;
  out[(name + ".freed").c_str()] = count.total - count.current;
}

nb::dict describe(const cuda::MemoryStats& stats) {
  nb::dict out;
  put_count(out, "allocated_bytes.all", stats.allocated);
  put_count(out, "allocation.all", stats.allocations);
  out["reserved_bytes.all.current"] = stats.reserved.current;
  out["reserved_bytes.all.peak"] = stats.reserved.peak;
  out["inactive_bytes.all.current"] = stats.cached;
  out["num_alloc_retries"] = stats.retries;
  out["num_ooms"] = stats.out_of_memory;
  return out;
}

nb::dict describe(const cuda::PinnedStats& stats) {
  nb::dict out;
  put_count(out, "active_bytes", stats.bytes_used);
  put_count(out, "active_requests", stats.blocks_used);
  put_count(out, "allocated_bytes", stats.bytes);
  put_count(out, "allocations", stats.blocks);
  return out;
}

// What set_sync_debug_mode asks for: 0 nothing, 1 a warning, 2 an error.
std::atomic<int> sync_debug_mode{0};

void report_wait() {
  constexpr const char* kText = "called a synchronizing CUDA operation";
  CHECK(sync_debug_mode != 2, kText);
  nb::gil_scoped_acquire gil;
  checked(warn_program(kText));
}

Tensor pinned_copy(const Tensor& tensor) {
  CHECK(tensor.device().is_cpu(), "pin_memory: only tensors on the CPU can be pinned, not on ",
        tensor.device());
  size_t bytes = size_t(tensor.numel()) * tensor.itemsize();
  void* data = cuda::pinned_allocate(bytes);
  Storage storage = StorageImpl::wrap(data, bytes, Device(), cuda::pinned_free, data, false);
  Tensor copy = from_storage(std::move(storage), tensor.sizes(), contiguous_strides(tensor.sizes()),
                             tensor.dtype());
  copy_into(copy, tensor);
  return copy;
}

cuda::CudaModule* module_named(const std::string& name) {
  for (cuda::CudaModule* module : cuda::all_cuda_modules()) {
    if (module->name() == name) return module;
  }
  detail::fail("there is no kernel '", name, "'.");
}

void add_devices(nb::module_& m) {
  m.def("_cuda_is_available", &cuda::is_available, "Whether CUDA can be used.");
  m.def("_cuda_is_initialized", &cuda::is_initialized, "Whether a device was used.");
  m.def("_cuda_require", &cuda::require, "Raises what is missing unless CUDA can be used.");
  m.def("_cuda_initialize", [] { cuda::activate(cuda::current_device()); });
  m.def("_cuda_device_count", &cuda::device_count, "The number of devices.");
  m.def("_cuda_current_device", &cuda::current_device, "The current device of this thread.");
  m.def("_cuda_set_device", &cuda::set_device, "device"_a, "Sets the current device.");
  m.def(
      "_cuda_properties", [](int device) { return describe(cuda::properties(device)); }, "device"_a,
      "What the driver says about a device.");
  m.def(
      "_cuda_synchronize",
      [](int device) {
        settle_device(device);
        cuda::synchronize(device);
      },
      "device"_a, NoGil(), "Waits for a device.");
}

void add_memory(nb::module_& m) {
  m.def("_cuda_memory_info", &cuda::memory_info, "device"_a, "Free and total bytes of a device.");
  m.def(
      "_cuda_memory_stats", [](int device) { return describe(cuda::memory_stats(device)); },
      "device"_a, "Bytes and numbers of blocks of a device.");
  m.def("_cuda_reset_peak_memory_stats", &cuda::reset_peak_memory_stats, "device"_a,
        "Starts the peaks again.");
  m.def("_cuda_reset_accumulated_memory_stats", &cuda::reset_accumulated_memory_stats, "device"_a,
        "Starts the totals again.");
  m.def("_cuda_limit_memory", &cuda::limit_memory, "device"_a, "bytes"_a,
        "The most bytes that tensors may have.");
  m.def(
      "_cuda_memory_blocks",
      [](int device) {
        nb::list blocks;
        for (const cuda::BlockInfo& block : cuda::memory_blocks(device))
          blocks.append(nb::make_tuple(block.address, block.bytes, handle_of(block.stream),
                                       block.is_used,
                                       nb::make_tuple(block.pool[0], block.pool[1])));
        return blocks;
      },
      "device"_a, "Address, size, stream, use and pool of all blocks.");
  m.def(
      "_cuda_pinned_stats", [] { return describe(cuda::pinned_stats()); },
      "Bytes and numbers of pinned blocks.");
  m.def("_cuda_reset_pinned_stats", &cuda::reset_pinned_stats, "peaks"_a, "totals"_a,
        "Starts the peaks or the totals again.");
  m.def(
      "_cuda_allocate",
      [](size_t bytes, int device, uintptr_t handle) {
        cuda::StreamGuard guard(stream_of(device, handle));
        return reinterpret_cast<uintptr_t>(cuda::allocate(bytes, device));
      },
      "bytes"_a, "device"_a, "stream"_a, "A block of memory, not its address.");
  m.def(
      "_cuda_block_address",
      [](uintptr_t block) {
        return reinterpret_cast<uintptr_t>(cuda::data(reinterpret_cast<cuda::Block*>(block)));
      },
      "block"_a, "The address of a block of _cuda_allocate.");
  m.def(
      "_cuda_free", [](uintptr_t block) { cuda::free(reinterpret_cast<cuda::Block*>(block)); },
      "block"_a, "Frees a block of _cuda_allocate.");
  m.def("_cuda_empty_cache", &cuda::empty_cache, NoGil(), "Gives cached memory back.");
  m.def(
      "_cuda_record_stream",
      [](nb::handle tensor, int device, uintptr_t handle) {
        const Storage& storage = expect_tensor(tensor.ptr(), "self").storage();
        storage->data();  // is queued now, if it was deferred
        cuda::record_stream(storage->cuda_block(), stream_of(device, handle));
      },
      "tensor"_a, "device"_a, "stream"_a, "Tells that a stream uses the tensor.");
  m.def(
      "_cuda_pinned_copy",
      [](nb::handle tensor) {
        return nb::steal(wrap(pinned_copy(expect_tensor(tensor.ptr(), "self"))));
      },
      "tensor"_a, "A copy in pinned memory.");
  m.def(
      "_cuda_is_pinned",
      [](nb::handle tensor) {
        return cuda::is_pinned(expect_tensor(tensor.ptr(), "self").storage()->data());
      },
      "tensor"_a, "Whether the memory is pinned.");
}

// A private pool of a part of a program, which lives as long as this object.
struct UserPool {
  std::shared_ptr<cuda::PrivatePool> pool;
};

void add_pools(nb::module_& m) {
  nb::class_<UserPool>(m, "_CudaPool")
      .def("__init__",
           [](UserPool* self) {
             cuda::require();
             new (self) UserPool{cuda::PrivatePool::named(cuda::new_pool_id(true))};
           })
      .def("id", [](const UserPool& self) { return self.pool->id(); })
      .def("use", [](const UserPool& self, int device) { cuda::use_pool(device, self.pool); })
      .def("use_count", [](const UserPool& self) { return self.pool.use_count(); });
  m.def(
      "_cuda_leave_pool", [](int device) { cuda::use_pool(device, nullptr); }, "device"_a,
      "Lets this thread allocate from the driver's pool again.");
}

void add_questions(nb::module_& m) {
  m.def("_cuda_can_access_peer", &cuda::can_access_peer, "device"_a, "peer"_a,
        "Whether kernels of a device may read the memory of another.");
  m.def(
      "_cuda_set_sync_debug_mode",
      [](int mode) {
        sync_debug_mode = mode;
        cuda::set_wait_observer(mode == 0 ? nullptr : report_wait);
      },
      "mode"_a, "What happens when an op waits: 0 nothing, 1 a warning, 2 an error.");
  m.def("_cuda_get_sync_debug_mode", [] { return sync_debug_mode.load(); }, "What was set.");
  m.def(
      "_cuda_error_text",
      [](int code) {
        const char* text = nullptr;
        cuda::driver().cuGetErrorString(code, &text);
        return std::string(text ? text : "unrecognized error code");
      },
      "code"_a, "The driver's words for an error.");
  m.def(
      "_cuda_profile",
      [](bool starts) {
        cuda::activate(cuda::current_device());
        return starts ? cuda::driver().cuProfilerStart() : cuda::driver().cuProfilerStop();
      },
      "starts"_a, "Tells a profiler to begin or to end; the driver's code.");
  m.def(
      "_cuda_host_register",
      [](uintptr_t data, size_t bytes, unsigned flags) {
        cuda::activate(cuda::current_device());
        return cuda::driver().cuMemHostRegister_v2(reinterpret_cast<void*>(data), bytes, flags);
      },
      "data"_a, "bytes"_a, "flags"_a, "Pins memory; the driver's code.");
  m.def(
      "_cuda_host_unregister",
      [](uintptr_t data) {
        cuda::activate(cuda::current_device());
        return cuda::driver().cuMemHostUnregister(reinterpret_cast<void*>(data));
      },
      "data"_a, "Ends that; the driver's code.");

  m.def(
      "_nvml_read", [](int device, int what) { return nvml::read(device, nvml::Reading(what)); },
      "device"_a, "what"_a, "A reading of NVML, by its number in core/device/nvml.h.");
  m.def(
      "_nvml_processes",
      [](int device) {
        std::vector<std::pair<int64_t, int64_t>> all;
        for (const nvml::Process& each : nvml::processes(device))
          all.emplace_back(each.id, each.bytes);
        return all;
      },
      "device"_a, "The processes on a device, and the bytes that each uses.");
  m.def("_nvtx_is_available", &nvtx::is_available, "Whether marks reach a profiler.");
  m.def("_nvtx_push", &nvtx::push, "message"_a, "Begins a range; its depth.");
  m.def("_nvtx_pop", &nvtx::pop, "Ends it; its depth.");
  m.def("_nvtx_start", &nvtx::start, "message"_a, "Begins a range that may overlap others.");
  m.def("_nvtx_end", &nvtx::end, "range"_a, "Ends it.");
  m.def("_nvtx_mark", &nvtx::mark, "message"_a, "Marks a point in time.");
}

void add_streams(nb::module_& m) {
  m.def(
      "_cuda_pool_stream",
      [](int device, int priority) { return handle_of(cuda::pool_stream(device, priority)); },
      "device"_a, "priority"_a, "The next stream of the pool.");
  m.def(
      "_cuda_current_stream",
      [](int device) { return handle_of(cuda::current_stream(stream_of(device, 0).device)); },
      "device"_a, "The current stream of this thread.");
  m.def(
      "_cuda_set_stream",
      [](int device, uintptr_t handle) { cuda::set_current_stream(stream_of(device, handle)); },
      "device"_a, "stream"_a, "Sets the current stream of a device.");
  m.def(
      "_cuda_stream_synchronize",
      [](int device, uintptr_t handle) {
        settle_device(device);
        cuda::synchronize(stream_of(device, handle));
      },
      "device"_a, "stream"_a, NoGil(), "Waits for a stream.");
  m.def(
      "_cuda_stream_is_done",
      [](int device, uintptr_t handle) {
        settle_device(device);
        return cuda::is_done(stream_of(device, handle));
      },
      "device"_a, "stream"_a, "Whether a stream's work is done.");

  nb::class_<cuda::Event>(m, "_CudaEvent")
      .def(nb::init<bool, bool>(), "enable_timing"_a, "blocking"_a)
      .def("record",
           [](cuda::Event& event, int device, uintptr_t handle) {
             settle_device(device);
             event.record(stream_of(device, handle));
           })
      .def("block", [](const cuda::Event& event, int device,
                       uintptr_t handle) { event.block(stream_of(device, handle)); })
      .def("synchronize", &cuda::Event::synchronize, NoGil())
      .def("is_done", &cuda::Event::is_done)
      .def("elapsed_time", &cuda::Event::elapsed_time)
      .def("device_index", &cuda::Event::device)
      .def("handle",
           [](const cuda::Event& event) { return reinterpret_cast<uintptr_t>(event.handle()); });
}

void add_graphs(nb::module_& m) {
  m.def(
      "_cuda_new_pool", [](bool by_user) { return cuda::new_pool_id(by_user); }, "by_user"_a,
      "The name of a private pool that nobody uses yet.");
  m.def(
      "_cuda_is_capturing",
      [](int device) {
        cuda::activate(device);
        int status = 0;
        cuda::check(
            cuda::driver().cuStreamIsCapturing(cuda::current_stream(device).handle, &status),
            "cuStreamIsCapturing");
        return status != 0;
      },
      "device"_a, "Whether the current stream captures.");

  nb::class_<cuda::Graph>(m, "_CudaGraph")
      .def(nb::init<>())
      .def("register_generator",
           [](cuda::Graph& graph, nb::handle generator) {
             std::shared_ptr<Generator> shared = expect_generator(generator.ptr());
             cuda::DrawSource source = draw_source(*shared);
             // The graph keeps it alive.
             auto take = [shared, take = source.take](uint64_t counters) { return take(counters); };
             graph.register_source({source.id, take});
           })
      .def("capture_begin",
           [](cuda::Graph& graph, std::optional<cuda::PoolId> pool, int mode) {
             settle_device(cuda::current_device());
             graph.capture_begin(pool, cuda::CaptureMode(mode));
           })
      .def(
          "capture_end",
          [](cuda::Graph& graph, bool keeps) {
            settle_device(cuda::current_device());
            graph.capture_end(keeps);
          },
          "keeps"_a)
      .def("abandon", &cuda::Graph::abandon)
      .def("instantiate", &cuda::Graph::instantiate)
      .def("replay", &cuda::Graph::replay)
      .def("reset", &cuda::Graph::reset, NoGil())
      .def("debug_dump", &cuda::Graph::debug_dump)
      .def("nodes", &cuda::Graph::nodes)
      .def("pool", &cuda::Graph::pool)
      .def("handle",
           [](const cuda::Graph& graph) { return reinterpret_cast<uintptr_t>(graph.handle()); })
      .def("exec_handle", [](const cuda::Graph& graph) {
        return reinterpret_cast<uintptr_t>(graph.exec_handle());
      });
}

// What is loaded stays, as kernels may run when their object is gone.
class OwnKernel {
 public:
  OwnKernel(nvrtc::OwnKernel compiled, const std::string& name)
      : module_(*new cuda::CudaModule({name, std::move(compiled.code)})),
        kernel_(*new cuda::CudaKernel(module_, std::move(compiled.entry))) {}

  void launch(std::array<unsigned, 3> grid, std::array<unsigned, 3> block, unsigned shared_bytes,
              const std::vector<nb::bytes>& arguments) {
    std::vector<const void*> addresses;
    for (const nb::bytes& argument : arguments) addresses.push_back(argument.data());
    addresses.push_back(nullptr);
    kernel_.launch_with({grid[0], grid[1], grid[2]}, {block[0], block[1], block[2]}, shared_bytes,
                        addresses.data());
  }

 private:
  cuda::CudaModule& module_;
  cuda::CudaKernel& kernel_;
};

void add_kernels(nb::module_& m) {
  m.def(
      "_cuda_kernels",
      [] {
        std::vector<std::string> names;
        for (cuda::CudaModule* module : cuda::all_cuda_modules()) names.push_back(module->name());
        return names;
      },
      "The names of all kernel texts.");
  m.def(
      "_cuda_kernel_text", [](const std::string& name) { return module_named(name)->whole_text(); },
      "name"_a, "The text that is compiled.");
  m.def(
      "_cuda_compile_kernel",
      [](const std::string& name, const std::string& arch, bool cached) {
        cuda::CudaModule* module = module_named(name);
        std::string code;
        {
          ReleaseGil released;
          code = cached ? module->code(arch) : module->compile(arch);
        }
        return nb::bytes(code.data(), code.size());
      },
      "name"_a, "arch"_a, "cached"_a, "Compiles a kernel; its code.");
  m.def(
      "_cuda_compile_text",
      [](const std::string& name, const std::string& text, const std::string& arch) {
        return nvrtc::compile(name, text, arch).size();
      },
      "name"_a, "text"_a, "arch"_a, NoGil(), "Compiles a text; the size of its code.");
  nb::class_<OwnKernel>(m, "_CudaKernel", "A kernel of a program's own.")
      .def("launch", &OwnKernel::launch, "grid"_a, "block"_a, "shared_bytes"_a, "arguments"_a,
           "Queues it on the current stream; an argument is the bytes of its value.");
  m.def(
      "_cuda_own_kernel",
      [](const std::string& text, const std::string& function, const std::string& arch,
         const std::vector<std::string>& options) {
        return OwnKernel(nvrtc::compile_own(text, function, arch, options), function);
      },
      "text"_a, "function"_a, "arch"_a, "options"_a, NoGil(),
      "Compiles a kernel of a program's own.");
  m.def("_cuda_allow_tf32", &cublaslt::allow_tf32, "allow"_a,
        "Lets products of float32 round their factors to TF32.");
  m.def("_cuda_allows_tf32", &cublaslt::allows_tf32, "Whether they may.");
  m.def(
      "_cudnn_set",
      [](bool enabled, bool allow_tf32, bool benchmark, int benchmark_limit) {
        cudnn::set({enabled, allow_tf32, benchmark, benchmark_limit});
      },
      "enabled"_a, "allow_tf32"_a, "benchmark"_a, "benchmark_limit"_a,
      "How cuDNN is used for convolutions.");
  m.def("_cudnn_version", &cudnn::version, "The version of cuDNN, or 0 when there is none.");
  m.def("_nvrtc_version", &nvrtc::version, "The version of NVRTC, which is opened.");
  m.def("_nvrtc_path", &nvrtc::library_path, "The file of NVRTC, which is opened.");
  m.def(
      "_cuda_cache",
      [] {
        KernelCache& cache = KernelCache::instance();
        return std::pair(cache.folder(), cache.disabled_because());
      },
      "The folder of compiled kernels, and why it is not used, or ''.");
}

}  // namespace

void add_cuda(PyObject* module) {
  nb::module_ m = nb::borrow<nb::module_>(module);
  // A graph that lives to the end of the program is no mistake: callables keep theirs in cycles.
  nb::set_leak_warnings(false);
  add_devices(m);
  add_memory(m);
  add_streams(m);
  add_graphs(m);
  add_pools(m);
  add_questions(m);
  add_kernels(m);
}

}  // namespace rushlight::python
