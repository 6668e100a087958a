#if RUSHLIGHT_ONEDNN

#include "core/device/onednn_plan.h"

#include <memory>
#include <optional>

#include "core/device/allocator.h"

namespace rushlight::onednn {
namespace {

// A few hundred shapes cover a model; each plan costs some kilobytes.
constexpr size_t kPlansPerThread = 512;

constexpr size_t aligned(size_t bytes) { return (bytes + 63) / 64 * 64; }

}  // namespace

const Functions* functions() {
  static const auto table = []() -> std::optional<Functions> {
    // pip puts the library into <prefix>/lib, two folders above site-packages, or into lib below
    // the folder that --target names.
    LibrarySpec spec{"oneDNN", {"libdnnl.so.3"}, {"", "../..", "lib"}, "onednn-cpu-gomp"};
    try {
      return Functions{DynamicLibrary(spec)};
    } catch (const Error&) {
      return std::nullopt;
    }
  }();
  return table ? &*table : nullptr;
}

dnnl_engine_t engine() {
  // Lives as long as the process, as the plans of all threads need it.
  static const dnnl_engine_t cpu = [] {
    dnnl_engine_t created;
    check(functions()->dnnl_engine_create(&created, dnnl_cpu, 0));
    return created;
  }();
  return cpu;
}

void check(dnnl_status_t status) {
  CHECK(status != dnnl_out_of_memory, ErrorKind::kOutOfMemory, "out of memory in oneDNN.");
  CHECK(status == dnnl_success, "oneDNN refused the call with status ", int(status),
        ". Please report this.");
}

std::string_view code_name(const PrimitiveDesc& desc) {
  const char* name = nullptr;
  check(functions()->dnnl_primitive_desc_query(desc.get(), dnnl_query_impl_info_str, 0, &name));
  return name;
}

bool is_slow(const PrimitiveDesc& desc) { return code_name(desc).starts_with("ref"); }

Plan::Plan(const PrimitiveDesc& desc, std::vector<Operand> operands) {
  const Functions& f = *functions();
  stream_ = make<Stream>(f.dnnl_stream_create, engine(), dnnl_stream_default_flags);
  primitive_ = make<Primitive>(f.dnnl_primitive_create, desc.get());

  const_dnnl_memory_desc_t scratchpad =
      f.dnnl_primitive_desc_query_md(desc.get(), dnnl_query_scratchpad_md, 0);
  scratchpad_ = make<Memory>(f.dnnl_memory_create, scratchpad, engine(), nullptr);
  arguments_.push_back({DNNL_ARG_SCRATCHPAD, scratchpad_.get()});
  buffer_bytes_ = aligned(f.dnnl_memory_desc_get_size(scratchpad));

  for (Operand& operand : operands) {
    bool is_attribute = operand.argument & (DNNL_ARG_ATTR_SCALES | DNNL_ARG_ATTR_ZERO_POINTS);
    const_dnnl_memory_desc_t inner =
        is_attribute
            ? operand.desc.get()
            : f.dnnl_primitive_desc_query_md(desc.get(), dnnl_query_exec_arg_md, operand.argument);
    Binding& binding = bindings_.emplace_back();
    binding.is_output = operand.is_output;
    binding.inner = make<Memory>(f.dnnl_memory_create, inner, engine(), nullptr);
    arguments_.push_back({operand.argument, binding.inner.get()});
    if (f.dnnl_memory_desc_equal(inner, operand.desc.get())) continue;

    const_dnnl_memory_desc_t outer = operand.desc.get();
    binding.outer = make<Memory>(f.dnnl_memory_create, outer, engine(), nullptr);
    PrimitiveDesc reorder =
        make<PrimitiveDesc>(f.dnnl_reorder_primitive_desc_create, operand.is_output ? inner : outer,
                            engine(), operand.is_output ? outer : inner, engine(), nullptr);
    binding.reorder = make<Primitive>(f.dnnl_primitive_create, reorder.get());
    binding.offset = buffer_bytes_;
    buffer_bytes_ += aligned(f.dnnl_memory_desc_get_size(inner));
  }
}

void Plan::run(std::span<void* const> arrays) {
  const Functions& f = *functions();
  CpuBuffer buffer(buffer_bytes_);
  check(f.dnnl_memory_set_data_handle(scratchpad_.get(), buffer.data()));

  auto reorder = [&](const Binding& binding, const Memory& from, const Memory& to) {
    dnnl_exec_arg_t arguments[] = {{DNNL_ARG_FROM, from.get()}, {DNNL_ARG_TO, to.get()}};
    check(f.dnnl_primitive_execute(binding.reorder.get(), stream_.get(), 2, arguments));
  };
  for (size_t i = 0; i < bindings_.size(); ++i) {
    const Binding& binding = bindings_[i];
    if (!binding.reorder) {
      check(f.dnnl_memory_set_data_handle(binding.inner.get(), arrays[i]));
      continue;
    }
    check(f.dnnl_memory_set_data_handle(binding.outer.get(), arrays[i]));
    check(f.dnnl_memory_set_data_handle(binding.inner.get(),
                                        static_cast<char*>(buffer.data()) + binding.offset));
    if (!binding.is_output) reorder(binding, binding.outer, binding.inner);
  }
  check(f.dnnl_primitive_execute(primitive_.get(), stream_.get(), int(arguments_.size()),
                                 arguments_.data()));
  for (const Binding& binding : bindings_) {
    if (binding.reorder && binding.is_output) reorder(binding, binding.inner, binding.outer);
  }
}

PlanSlot& plan_slot(const PlanKey& key) {
  // See Note [Static TLS].
  thread_local auto plans = std::make_unique<RecentMap<PlanSlot>>(kPlansPerThread);
  return (*plans)[key];
}

}  // namespace rushlight::onednn

#endif
