// Owns the module rushlight._C: puts its parts together.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings/meeting.h"
#include "bindings/module_call.h"
#include "bindings/nccl.h"
#include "bindings/override.h"
#include "bindings/python.h"
#include "bindings/steps.h"
#include "core/device/allocator.h"
#include "core/device/cpu_features.h"
#include "core/device/denormals.h"
#include "core/device/dynamic_library.h"
#include "core/device/onednn.h"
#include "core/device/threads.h"
#include "core/tensor/default_device.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace rushlight::python {
namespace {

// One row of the op table, for stubs, docs and tests.
nb::dict describe(const OpEntry& entry) {
  auto text = [](std::string_view s) { return nb::str(s.data(), s.size()); };
  nb::dict row;
  row["name"] = text(entry.schema.name);
  row["overload"] = text(entry.schema.overload);
  row["home"] = entry.home;
  row["alias_of"] = text(entry.alias_of);
  row["doc"] = entry.doc;
  row["no_gpu"] = entry.no_gpu;
  row["file"] = entry.file;
  row["line"] = entry.line;
  row["function"] = bool(entry.variants & function);
  row["method"] = bool(entry.variants & method);
  row["inplace"] = entry.call_inplace != nullptr;
  row["differentiable"] = entry.differentiable;
  static constexpr const char* rules[] = {"",           "own",      "by_elements",  "by_dims",
                                          "by_new_dim", "by_sizes", "by_last_dims", "by_matrices",
                                          "by_images"};
  static_assert(std::size(rules) == size_t(BatchRule::images) + 1);
  row["batch"] = rules[size_t(entry.batch_rule)];
  static constexpr const char* casts[] = {"", "lower", "single", "widest", "as_given"};
  row["autocast"] =
      nb::make_tuple(casts[size_t(entry.autocast.cpu)], casts[size_t(entry.autocast.cuda)]);
  row["formula"] = entry.formula ? nb::object(nb::str(entry.formula->name)) : nb::none();
  nb::list dtypes;
  for (int i = 0; i < kDTypeCount; ++i)
    if (entry.dtypes.contains(DType(i))) dtypes.append(nb::steal(wrap_dtype(DType(i))));
  row["dtypes"] = dtypes;
  nb::list args;
  for (int i = 0; i < entry.schema.arg_count; ++i) {
    const Arg& arg = entry.schema.args[size_t(i)];
    nb::dict a;
    a["name"] = text(arg.name);
    a["type"] = text(text_of(arg.type));
    a["expand_to"] = arg.expand_to;
    a["takes_number"] = arg.takes_number;
    a["one_by_one"] = arg.one_by_one;
    a["keyword_only"] = arg.keyword_only;
    a["default"] = arg.has_default ? nb::object(text(arg.default_text)) : nb::none();
    args.append(a);
  }
  row["args"] = args;
  row["view"] = entry.is_view;
  row["draws"] = entry.draws;
  nb::list returns;
  for (int i = 0; i < entry.schema.return_count; ++i)
    returns.append(nb::make_tuple(text(entry.schema.returns[size_t(i)].type),
                                  text(entry.schema.returns[size_t(i)].name)));
  row["returns"] = returns;
  return row;
}

void add_op_table(nb::module_& m) {
  m.def(
      "ops",
      [homes = nb::dict(m.attr("_op_homes"))](nb::str home) {
        return homes.contains(home) ? nb::dict(homes[home]) : nb::dict();
      },
      "home"_a,
      "The ops of one module, by name: 'torch', 'nn.functional', ... or 'Tensor' for methods.");
  m.def(
      "_op_table",
      [] {
        nb::list rows;
        for (const OpEntry& entry : op_table()) rows.append(describe(entry));
        return rows;
      },
      "The op table, a dict per op.");
  m.def(
      "_return_type",
      [](const std::string& name) -> nb::object {
        PyObject* found = find_return_type(name);
        return found ? nb::borrow(found) : nb::none();
      },
      "name"_a, "The type of an op's named results, None if there is none.");
}

void add_settings(nb::module_& m) {
  m.def(
      "_make_return_type",
      [](const std::string& name, const std::vector<std::string>& fields) {
        return nb::steal(reinterpret_cast<PyObject*>(make_return_type(name, fields)));
      },
      "name"_a, "fields"_a, "Makes the type of named results of a function that is no op.");
  m.def(
      "_set_library_search_path",
      [](std::vector<std::string> folders) { set_library_search_path(std::move(folders)); },
      "folders"_a, "Where oneDNN and OpenBLAS are looked for.");
  m.def("get_num_threads", &num_threads, "The number of threads that ops use.");
  m.def(
      "set_num_threads",
      [](int count) {
        CHECK(count > 0, "set_num_threads: expects a positive integer, got ", count);
        set_num_threads(count);
      },
      "num"_a, "Sets the number of threads that ops use.");
  m.def("set_flush_denormal", &set_flush_denormal, "mode"_a,
        "Makes numbers below the normal range count as zero; returns whether the processor can.");
  m.def(
      "_cpu_isa", [] { return std::string(isa_name(active_isa())); },
      "The instruction set that kernels run with.");
  m.def("_onednn_is_available", &onednn::available, "Whether oneDNN was found and is used.");
  m.def("_onednn_enable", &onednn::set_enabled, "enabled"_a, "Whether ops use oneDNN.");
  m.def("_empty_cache", &cpu_empty_cache, "Gives cached CPU memory back to the operating system.");
  m.def(
      "_memory_stats",
      [] {
        CpuMemoryStats stats = cpu_memory_stats();
        nb::dict out;
        out["allocated"] = stats.allocated;
        out["cached"] = stats.cached;
        out["peak"] = stats.peak;
        return out;
      },
      "Bytes of CPU memory: allocated, cached, and the peak.");
}

void add_dtypes(nb::module_& m) {
  m.def(
      "get_default_dtype", [] { return nb::steal(wrap_dtype(default_dtype())); },
      "The dtype of new float tensors.");
  m.def(
      "set_default_dtype",
      [](nb::handle d) {
        DType dtype;
        CHECK(read_dtype(d.ptr(), dtype), ErrorKind::kType,
              "set_default_dtype: invalid dtype object: it must be a torch.dtype such as "
              "torch.float64, not ",
              Py_TYPE(d.ptr())->tp_name, ".");
        set_default_dtype(dtype);
      },
      "d"_a, "Sets the dtype of new float tensors.");
  m.def(
      "_default_device", [] { return nb::steal(wrap_device(default_device())); },
      "The device of new tensors.");
  m.def(
      "_set_default_device",
      [](nb::handle d) {
        Device device;
        CHECK(read_device(d.ptr(), device), ErrorKind::kType,
              "set_default_device: expected a device or its name, got ", Py_TYPE(d.ptr())->tp_name);
        set_default_device(device);
      },
      "d"_a, "Sets the device of new tensors in this thread.");
}

}  // namespace
}  // namespace rushlight::python

NB_MODULE(_C, m) {
  using namespace rushlight;
  using namespace rushlight::python;
  nb::register_exception_translator(
      [](const std::exception_ptr& error, void*) {
        try {
          std::rethrow_exception(error);
        } catch (const Error&) {
          set_python_error();
        }
      },
      nullptr);
  m.doc() = "The native core of Rushlight. Use the rushlight package.";
  active_isa();  // a bad RUSHLIGHT_CPU is told at import

  PyObject* module = m.ptr();
  try {
    add_objects(module);
    add_override(module);
    add_told(module);
    add_dispatch(module);
    add_tensor(module);
    add_ops(module);
    add_autograd(module);
    add_function(module);
    add_lift(module);
    add_watchers(module);
    add_interchange(module);
    add_construct(module);
    add_extension(module);
    add_promotion(module);
    add_storage(module);
    add_dlpack(module);
    add_generator(module);
    add_cuda(module);
    add_nccl(module);
    add_module_call(module);
    add_meeting(module);
    add_steps(module);
  } catch (const PythonError&) {
    throw nb::python_error();
  }
  add_op_table(m);
  add_settings(m);
  add_dtypes(m);
}
