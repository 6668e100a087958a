// Owns what the oneDNN wrappers share: the table of functions, handles, and Plan, a primitive that
// is ready to run again. Only onednn*.cpp includes it, and only in builds that have the headers.
#pragma once

#include <oneapi/dnnl/dnnl.h>

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "core/base/recent_map.h"
#include "core/device/dynamic_library.h"

namespace rushlight::onednn {

#define ONEDNN_FUNCTIONS(_)                            \
  _(dnnl_get_effective_cpu_isa)                        \
  _(dnnl_engine_create)                                \
  _(dnnl_stream_create)                                \
  _(dnnl_stream_destroy)                               \
  _(dnnl_memory_desc_create_with_strides)              \
  _(dnnl_memory_desc_create_with_tag)                  \
  _(dnnl_memory_desc_destroy)                          \
  _(dnnl_memory_desc_clone)                            \
  _(dnnl_memory_desc_equal)                            \
  _(dnnl_memory_desc_get_size)                         \
  _(dnnl_memory_create)                                \
  _(dnnl_memory_destroy)                               \
  _(dnnl_memory_set_data_handle)                       \
  _(dnnl_primitive_attr_create)                        \
  _(dnnl_primitive_attr_destroy)                       \
  _(dnnl_primitive_attr_set_scratchpad_mode)           \
  _(dnnl_primitive_attr_set_post_ops)                  \
  _(dnnl_primitive_attr_set_scales_mask)               \
  _(dnnl_primitive_attr_set_zero_points_mask)          \
  _(dnnl_post_ops_create)                              \
  _(dnnl_post_ops_destroy)                             \
  _(dnnl_post_ops_append_eltwise)                      \
  _(dnnl_post_ops_append_sum)                          \
  _(dnnl_matmul_primitive_desc_create)                 \
  _(dnnl_convolution_forward_primitive_desc_create)    \
  _(dnnl_convolution_backward_data_primitive_desc_create)    \
  _(dnnl_convolution_backward_weights_primitive_desc_create) \
  _(dnnl_reorder_primitive_desc_create)                \
  _(dnnl_primitive_desc_query)                         \
  _(dnnl_primitive_desc_query_md)                      \
  _(dnnl_primitive_desc_destroy)                       \
  _(dnnl_primitive_create)                             \
  _(dnnl_primitive_destroy)                            \
  _(dnnl_primitive_execute)

struct Functions {
  DynamicLibrary library;
#define ONEDNN_FUNCTION(name) LIBRARY_FUNCTION(name, decltype(::name))
  ONEDNN_FUNCTIONS(ONEDNN_FUNCTION)
#undef ONEDNN_FUNCTION
};

// Null when the library was not found.
const Functions* functions();

// Only after functions() was not null.
dnnl_engine_t engine();

void check(dnnl_status_t status);

template <auto destroy>
struct Destroy {
  template <class T>
  void operator()(T* handle) const {
    (functions()->*destroy)(handle);
  }
};
template <class Handle, auto destroy>
using Owned = std::unique_ptr<std::remove_pointer_t<Handle>, Destroy<destroy>>;
using MemoryDesc = Owned<dnnl_memory_desc_t, &Functions::dnnl_memory_desc_destroy>;
using Memory = Owned<dnnl_memory_t, &Functions::dnnl_memory_destroy>;
using PrimitiveDesc = Owned<dnnl_primitive_desc_t, &Functions::dnnl_primitive_desc_destroy>;
using Primitive = Owned<dnnl_primitive_t, &Functions::dnnl_primitive_destroy>;
using Attributes = Owned<dnnl_primitive_attr_t, &Functions::dnnl_primitive_attr_destroy>;
using PostOps = Owned<dnnl_post_ops_t, &Functions::dnnl_post_ops_destroy>;
using Stream = Owned<dnnl_stream_t, &Functions::dnnl_stream_destroy>;

// Calls a create function of oneDNN: make<Memory>(f->dnnl_memory_create, desc, engine(), nullptr).
template <class T, class... Parameters, class... Arguments>
T make(dnnl_status_t (*create)(Parameters...), Arguments... arguments) {
  typename T::pointer handle = nullptr;
  check(create(&handle, arguments...));
  return T(handle);
}

// The name of the code that was chosen, "jit_dw:avx512_core".
std::string_view code_name(const PrimitiveDesc& desc);

// Whether oneDNN has only its reference code, which is slower than any way the caller has.
bool is_slow(const PrimitiveDesc& desc);

// The same for a primitive; null when oneDNN has no fast code for it.
template <class... Parameters, class... Arguments>
PrimitiveDesc describe(dnnl_status_t (*create)(Parameters...), Arguments... arguments) {
  dnnl_primitive_desc_t handle = nullptr;
  dnnl_status_t status = create(&handle, arguments...);
  if (status == dnnl_unimplemented) return nullptr;
  check(status);
  PrimitiveDesc desc(handle);
  return is_slow(desc) ? nullptr : std::move(desc);
}

// An array that a primitive reads or writes, and how it lies in the caller's memory. Scales and
// zero points are operands like others.
struct Operand {
  int argument;  // DNNL_ARG_SRC...
  bool is_output;
  MemoryDesc desc;
};

// A primitive with its operands. Where the primitive wants another memory format than the caller
// has, the plan reorders on the way in or out, in memory that it allocates for the call alone.
// A plan belongs to one thread.
class Plan {
 public:
  Plan(const PrimitiveDesc& desc, std::vector<Operand> operands);

  // The arrays stand in the order of the operands.
  void run(std::span<void* const> arrays);

 private:
  struct Binding {
    bool is_output;
    Memory inner;       // what the primitive sees
    Memory outer;       // the caller's array, when that differs
    Primitive reorder;  // between the two
    size_t offset;      // of the inner array in the call's buffer
  };

  Stream stream_;
  Primitive primitive_;
  std::vector<Binding> bindings_;
  std::vector<dnnl_exec_arg_t> arguments_;
  Memory scratchpad_;
  size_t buffer_bytes_ = 0;  // the scratchpad first, then the inner arrays
};

// What makes two calls the same: sizes, dtypes, strides and the number of threads.
using PlanKey = NumbersKey;

// Empty at first; the plan stays null when oneDNN has no code for the case.
struct PlanSlot {
  bool is_built = false;
  std::unique_ptr<Plan> plan;
};

// The calling thread's slot for a key. Slots that were not used for long make room for new ones.
PlanSlot& plan_slot(const PlanKey& key);

// The plan for a key, made by build() when the thread meets the key for the first time.
template <class Build>
Plan* plan_for(const PlanKey& key, Build&& build) {
  PlanSlot& slot = plan_slot(key);
  if (!slot.is_built) {
    slot.plan = build();
    slot.is_built = true;
  }
  return slot.plan.get();
}

}  // namespace rushlight::onednn
